# quern.m4 -- checks that configure.ac makes more than once, or that are long.

# QN_CC_FLAG(FLAGS, VARIABLE): appends FLAGS to VARIABLE if the C compiler accepts them, and substitutes it.
AC_DEFUN([QN_CC_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $1])
  qn_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $2="${$2:+$$2 }$1"], [AC_MSG_RESULT([no])])
  CFLAGS=$qn_saved_CFLAGS
  AC_SUBST([$2])])

# QN_LD_FLAG(FLAGS, VARIABLE): the same for the linker, tested on a shared object.
AC_DEFUN([QN_LD_FLAG], [
  AC_MSG_CHECKING([whether the linker takes $1])
  qn_saved_LDFLAGS=$LDFLAGS
  LDFLAGS="$LDFLAGS -shared -fPIC $1"
  AC_LINK_IFELSE([AC_LANG_SOURCE([int qn_conftest(void) { return 0; }])],
    [AC_MSG_RESULT([yes]); $2="${$2:+$$2 }$1"], [AC_MSG_RESULT([no])])
  LDFLAGS=$qn_saved_LDFLAGS
  AC_SUBST([$2])])

# QN_LINK_FLAG(FLAGS, VARIABLE): for flags of both compiler and linker.
AC_DEFUN([QN_LINK_FLAG], [
  AC_MSG_CHECKING([whether $CC compiles and links with $1])
  qn_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $2="${$2:+$$2 }$1"], [AC_MSG_RESULT([no])])
  CFLAGS=$qn_saved_CFLAGS
  AC_SUBST([$2])])

# QN_AUTO(NAME): --with-NAME is auto, yes or no; the library's location is given by other means.
AC_DEFUN([QN_AUTO], [
  AS_CASE([$with_$1], [auto|yes|no], [],
    [AC_MSG_ERROR([--with-$1=$with_$1: known are auto, yes and no; CPPFLAGS and LDFLAGS say where it lies])])])

# QN_OPENBLAS: sets OPENBLAS_CFLAGS, OPENBLAS_LIBS, QN_HAVE_OPENBLAS and $openblas_said. OpenBLAS's OpenMP build
# is preferred: it shares our threads and detects calls from inside a parallel region.
AC_DEFUN([QN_OPENBLAS], [
  OPENBLAS_CFLAGS= OPENBLAS_LIBS= openblas_said="no: matrix products by our own blocked loop"
  AS_IF([test "x$with_openblas" != xno], [
    AC_MSG_CHECKING([for OpenBLAS])
    AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists openblas],
      [OPENBLAS_CFLAGS=`$PKG_CONFIG --cflags openblas` OPENBLAS_LIBS=`$PKG_CONFIG --libs openblas`],
      [OPENBLAS_LIBS=-lopenblas])
    qn_saved_LIBS=$LIBS qn_saved_CPPFLAGS=$CPPFLAGS
    LIBS="$OPENBLAS_LIBS $LIBS" CPPFLAGS="$CPPFLAGS $OPENBLAS_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]],
        [[openblas_set_num_threads(1);
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1);]])],
      [AC_MSG_RESULT([yes])
       openblas_said="yes"
       AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]], [[return openblas_get_parallel() != 2;]])],
         [openblas_said="yes, its OpenMP build"],
         [openblas_said="yes, but not its OpenMP build (Debian: libopenblas-openmp-dev), which shares our threads"],
         [:])
       AC_DEFINE([QN_HAVE_OPENBLAS], [1], [OpenBLAS is linked, and <cblas.h> is there])],
      [AC_MSG_RESULT([no])
       OPENBLAS_CFLAGS= OPENBLAS_LIBS=
       AS_IF([test "x$with_openblas" = xyes], [AC_MSG_ERROR([--with-openblas: no usable OpenBLAS (Debian: libopenblas-openmp-dev)])])])
    LIBS=$qn_saved_LIBS CPPFLAGS=$qn_saved_CPPFLAGS])
  AM_CONDITIONAL([HAVE_OPENBLAS], [test -n "$OPENBLAS_LIBS"])
  AC_SUBST([OPENBLAS_CFLAGS])
  AC_SUBST([OPENBLAS_LIBS])])

# QN_ONEDNN: sets ONEDNN_LIBS, the condition HAVE_ONEDNN and $onednn_said.
AC_DEFUN([QN_ONEDNN], [
  ONEDNN_LIBS= onednn_said="no: not asked for"
  AS_IF([test "x$with_onednn" != xno && test "x$enable_shared" != xyes],
    [onednn_said="no: it is a plugin, and --disable-shared builds none"],
   [test "x$with_onednn" != xno && test -z "$OPENMP_CFLAGS"],
    [onednn_said="no: its threads are OpenMP's"],
   [test "x$with_onednn" != xno],
    [AC_MSG_CHECKING([for oneDNN 2])
     qn_saved_LIBS=$LIBS
     LIBS="-ldnnl $LIBS"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <dnnl.h>
#if DNNL_VERSION_MAJOR != 2
#error
#endif]], [[return dnnl_version()->major;]])],
       [AC_MSG_RESULT([yes])
        ONEDNN_LIBS=-ldnnl onednn_said="yes: the plugin onednn"],
       [AC_MSG_RESULT([no])
        onednn_said="no: its headers of version 2 were not found (Debian: libdnnl-dev)"])
     LIBS=$qn_saved_LIBS])
  AS_IF([test "x$with_onednn" = xyes && test -z "$ONEDNN_LIBS"], [AC_MSG_ERROR([--with-onednn: $onednn_said])])
  AM_CONDITIONAL([HAVE_ONEDNN], [test -n "$ONEDNN_LIBS"])
  AC_SUBST([ONEDNN_LIBS])])

# QN_MPI: sets MPI_CPPFLAGS, MPI_LIBS, the condition HAVE_MPI and $mpi_said, by what mpicc says that it adds.
AC_DEFUN([QN_MPI], [
  AC_ARG_VAR([MPICC], [compiler wrapper of the MPI that the plugin mpi is for])
  MPI_CPPFLAGS= MPI_LIBS= mpi_said="no: not asked for"
  AS_IF([test "x$with_mpi" != xno && test "x$enable_shared" != xyes],
    [mpi_said="no: it is a plugin, and --disable-shared builds none"],
   [test "x$with_mpi" != xno],
    [AC_PATH_PROG([MPICC], [mpicc])
     mpi_said="no: mpicc was not found (Debian: libopenmpi-dev)"
     AS_IF([test -n "$MPICC"],
       [qn_adds=`$MPICC --showme:compile 2>/dev/null` && qn_links=`$MPICC --showme:link 2>/dev/null` ||
          { qn_adds=`$MPICC -compile_info 2>/dev/null | sed 's/^@<:@^ @:>@* //'`
            qn_links=`$MPICC -link_info 2>/dev/null | sed 's/^@<:@^ @:>@* //'`; }
        qn_adds=`AS_ECHO([" $qn_adds"]) | sed 's/ -I/ -isystem /g'`
        AC_MSG_CHECKING([whether $MPICC is of an MPI 3])
        qn_saved_LIBS=$LIBS qn_saved_CPPFLAGS=$CPPFLAGS
        LIBS="$qn_links $LIBS" CPPFLAGS="$CPPFLAGS $qn_adds"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error
#endif]], [[return MPI_Init(0, 0);]])],
          [AC_MSG_RESULT([yes])
           MPI_CPPFLAGS=$qn_adds MPI_LIBS=$qn_links mpi_said="yes: the plugin mpi, by $MPICC"],
          [AC_MSG_RESULT([no])
           mpi_said="no: $MPICC compiles for no MPI 3"])
        LIBS=$qn_saved_LIBS CPPFLAGS=$qn_saved_CPPFLAGS])])
  AS_IF([test "x$with_mpi" = xyes && test -z "$MPI_LIBS"], [AC_MSG_ERROR([--with-mpi: $mpi_said])])
  AM_CONDITIONAL([HAVE_MPI], [test -n "$MPI_LIBS"])
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])])

# QN_CUDA: sets NVCC, NVCC_GENCODE, CUDA_CPPFLAGS, CUDA_LIBS, the condition HAVE_CUDA and $cuda_said. cudart is linked
# statically and opens the driver at run time, so the result also loads on a machine without a driver.
AC_DEFUN([QN_CUDA], [
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [its flags (-O3)])
  AC_ARG_VAR([NVCC_GENCODE], [architectures that CUDA code is compiled for])
  have_cuda=no cuda_said="no: not asked for" cuda_root=
  AS_CASE([$with_cuda], [auto|yes|no], [], [cuda_root=$with_cuda])
  AS_IF([test "x$with_cuda" != xno && test "x$enable_shared" != xyes],
    [cuda_said="no: it is a plugin, and --disable-shared builds none"
     AS_IF([test "x$with_cuda" != xauto], [AC_MSG_ERROR([--with-cuda: $cuda_said])])],
   [test "x$with_cuda" != xno],
    [AS_IF([test -z "$NVCC" && test -n "$cuda_root"], [NVCC=$cuda_root/bin/nvcc])
     AC_PATH_PROG([NVCC], [nvcc], [], [${CUDA_HOME:-/usr/local/cuda}/bin$PATH_SEPARATOR$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
     cuda_said="no: nvcc was not found"
     AS_IF([test -n "$NVCC" && test -x "$NVCC"], [
       AS_IF([test "x$enable_quick_cuda" != xno],
         [$NVCC --help 2>/dev/null | grep -e --Ofast-compile >/dev/null ||
            AC_MSG_ERROR([--enable-quick-cuda: $NVCC has no --Ofast-compile (CUDA 13.0 has)])
          : ${NVCCFLAGS=-Ofc=max}],
         [: ${NVCCFLAGS=-O3}])
       : ${NVCC_GENCODE="-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=[[sm_80,compute_80]] -gencode=arch=compute_75,code=compute_75"}
       AS_IF([test -z "$cuda_root"], [cuda_root=`echo "$NVCC" | sed 's,/bin/nvcc$,,'`])
       qn_libdir=
       for qn_dir in "$cuda_root/lib64" "$cuda_root/targets/$host_cpu-linux/lib" "$cuda_root/lib" \
                     "/usr/lib/$host_cpu-linux-gnu"; do
         AS_IF([test -z "$qn_libdir" && test -f "$qn_dir/libcudart_static.a"], [qn_libdir=$qn_dir])
       done
       CUDA_CPPFLAGS="-I$cuda_root/include"
       CUDA_LIBS="-L$qn_libdir -lcudart_static -lpthread -lrt -ldl -lstdc++"
       AC_MSG_CHECKING([whether $NVCC works])
       AS_ECHO(['__global__ void k(int *p) { *p = 1; }
extern "C" int qn_conftest(void) { int n; k<<<1,1>>>((int *)0); return (int)cudaGetDeviceCount(&n); }']) > conftest.cu
       AS_IF([test -n "$qn_libdir" &&
              AC_TRY_COMMAND([$NVCC $NVCC_GENCODE $NVCCFLAGS -Xcompiler -fPIC -c -o conftest-cu.$OBJEXT conftest.cu >&AS_MESSAGE_LOG_FD 2>&AS_MESSAGE_LOG_FD])],
         [qn_saved_LIBS=$LIBS
          LIBS="conftest-cu.$OBJEXT $CUDA_LIBS $LIBS"
          AC_LINK_IFELSE([AC_LANG_PROGRAM([[int qn_conftest(void);]], [[return qn_conftest();]])], [have_cuda=yes])
          LIBS=$qn_saved_LIBS])
       rm -f conftest.cu conftest-cu.$OBJEXT
       AC_MSG_RESULT([$have_cuda])
       AS_IF([test $have_cuda = yes],
         [cuda_said="yes: `$NVCC --version | sed -n 's/.*\(release [[0-9.]]*\).*/\1/p'`, $NVCC"
          AS_IF([test "x$enable_quick_cuda" != xno], [cuda_said="$cuda_said; kernels not optimized, for tests"])],
         [cuda_said="no: $NVCC is there but does not build a program (see config.log)"])])
     AS_IF([test $have_cuda = no && test "x$with_cuda" != xauto], [AC_MSG_ERROR([--with-cuda=$with_cuda: $cuda_said])])])
  AS_IF([test $have_cuda = yes && test -f "$cuda_root/include/cublasLt.h"],
    [have_cublaslt=yes cuda_said="$cuda_said; cuBLASLt is opened at run time"
     CUBLASLT_CPPFLAGS="-DHAVE_CUBLASLT -DCUDA_LIBDIR='\"$qn_libdir\"'"],
    [have_cublaslt=no CUBLASLT_CPPFLAGS=])
  AM_CONDITIONAL([HAVE_CUBLASLT], [test $have_cublaslt = yes])
  AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
  AM_CONDITIONAL([QUICK_CUDA], [test "x$enable_quick_cuda" != xno])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUBLASLT_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])])

# QN_CUDNN: sets CUDNN_CPPFLAGS, the condition HAVE_CUDNN and $cudnn_said. Needs the headers now, the library at run time.
AC_DEFUN([QN_CUDNN], [
  CUDNN_CPPFLAGS= cudnn_said="no: not asked for" have_cudnn=no qn_cudnn_root=
  AS_CASE([$with_cudnn], [auto|yes|no], [], [qn_cudnn_root=$with_cudnn])
  AS_IF([test "x$with_cudnn" != xno && test $have_cuda = no],
    [cudnn_said="no: it rides on the CUDA backend, which is not built"],
   [test "x$with_cudnn" != xno],
    [AC_MSG_CHECKING([for cuDNN 9])
     qn_saved_CPPFLAGS=$CPPFLAGS
     for qn_dir in ${qn_cudnn_root:+"$qn_cudnn_root/include"} "$cuda_root/include" "/usr/include/$host_cpu-linux-gnu" /usr/include /usr/local/include; do
       AS_IF([test $have_cudnn = no && test -f "$qn_dir/cudnn.h"],
         [CPPFLAGS="$qn_saved_CPPFLAGS $CUDA_CPPFLAGS -I$qn_dir"
          AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cudnn.h>
#if CUDNN_MAJOR != 9
#error
#endif]], [[return CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;]])],
            [have_cudnn=yes
             qn_cudnn_version=`sed -n 's/^#define CUDNN_\(MAJOR\|MINOR\|PATCHLEVEL\) *//p' "$qn_dir/cudnn_version.h" | tr '\n' '.' | sed 's/\.$//'`
             qn_cudnn_lib=/usr/lib/$host_cpu-linux-gnu
             AS_IF([test -n "$qn_cudnn_root"], [qn_cudnn_lib=$qn_cudnn_root/lib])
             CUDNN_CPPFLAGS="-I$qn_dir -DCUDNN_LIBDIR='\"$qn_cudnn_lib\"'"])])
     done
     CPPFLAGS=$qn_saved_CPPFLAGS
     AC_MSG_RESULT([$have_cudnn])
     AS_IF([test $have_cudnn = yes],
       [cudnn_said="yes: the plugin cudnn, by the headers of $qn_cudnn_version"],
       [cudnn_said="no: its headers of version 9 were not found (Debian: libcudnn9-dev-cuda-13 of NVIDIA's)"])])
  AS_IF([test $have_cudnn = no], [AS_CASE([$with_cudnn], [auto|no], [], [AC_MSG_ERROR([--with-cudnn=$with_cudnn: $cudnn_said])])])
  AM_CONDITIONAL([HAVE_CUDNN], [test $have_cudnn = yes])
  AC_SUBST([CUDNN_CPPFLAGS])])
