#!/bin/sh
# install.sh -- the result of `make install`, used by a program that knows nothing of this tree: as C99 and as C++17,
# against the shared library and against a static one. TAP; run by `make check`.
# shellcheck disable=SC2086,SC2046  # flags are words

set -u
tmp=$(pwd)/tests/install.tmp
srcdir=$(cd "${top_srcdir-.}" && pwd)
builddir=$(cd "${top_builddir-.}" && pwd)
: "${CC=gcc}" "${CXX=g++}" "${MAKE=make}" "${PKG_CONFIG:=pkg-config}" "${SANITIZER_CFLAGS=}"
strict="-pedantic -Wall -Wextra -Werror -O1 $SANITIZER_CFLAGS"
unset MAKEFLAGS MFLAGS DESTDIR
rm -rf "$tmp"
mkdir -p "$tmp"

n=0 failed=0
# ok WORDS COMMAND...: a test; shows the command's output if it fails.
ok()
{
  words=$1
  shift
  n=$((n + 1))
  if "$@" >"$tmp/said" 2>&1; then echo "ok $n - $words"
  else
    echo "not ok $n - $words"
    echo "# $*"
    tail -n 40 "$tmp/said" | sed 's/^/# /'
    failed=$((failed + 1))
    return 1
  fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
give_up() { echo "1..$n"; exit 1; }

pc()            # pc PREFIX ARG...: pkg-config on the copy of Quern installed below PREFIX
{
  root=$1
  shift
  file=$(find "$root" -name quern.pc)
  libdir=$(dirname "$(dirname "$file")")
  includedir=$(dirname "$(dirname "$(find "$root" -name quern.h)")")
  PKG_CONFIG_PATH=$libdir/pkgconfig "$PKG_CONFIG" \
    --define-variable=libdir="$libdir" --define-variable=includedir="$includedir" "$@" quern
}

have_cxx() { echo 'int main() {}' >"$tmp/x.cc" && $CXX -o "$tmp/x" "$tmp/x.cc" >/dev/null 2>&1; }

# use KIND PREFIX LIBS...: builds and runs foreign.c, in both languages.
use()
{
  kind=$1 root=$2
  shift 2
  flags=$(pc "$root" --cflags)
  ok "$kind: compiles and links as C99" $CC -std=c99 $strict $flags -o "$tmp/c99" "$srcdir/tests/foreign.c" "$@" &&
    ok "$kind: as C99 it computes what it should" "$tmp/c99"
  if have_cxx; then
    ok "$kind: compiles and links as C++17" $CXX -std=c++17 $strict $flags -o "$tmp/cxx17" -x c++ "$srcdir/tests/foreign.c" -x none "$@" &&
      ok "$kind: as C++17 it computes what it should" "$tmp/cxx17"
  else
    skip "$kind: as C++17" "$CXX does not work here"
  fi
}

if ! command -v "$PKG_CONFIG" >/dev/null; then
  echo "1..0 # SKIP pkg-config is not here"
  exit 0
fi

# ---- this build, installed ------------------------------------------------------------------------

ok "make install" $MAKE -C "$builddir" install DESTDIR="$tmp/this" || give_up
headers=$(find "$tmp/this" -path '*/include/quern/*.h' | sort)
flags=$(pc "$tmp/this" --cflags)
for header in $headers; do
  name=quern/$(basename "$header")
  printf '#include <%s>\n#include <%s>\nint quern_header(void) { return 0; }\n' "$name" "$name" >"$tmp/header.c"
  ok "<$name> stands alone as C99" $CC -std=c99 $strict $flags -c -o "$tmp/header.o" "$tmp/header.c"
  if have_cxx; then
    ok "<$name> stands alone as C++17" $CXX -std=c++17 $strict $flags -x c++ -c -o "$tmp/header.o" "$tmp/header.c"
  else
    skip "<$name> stands alone as C++17" "$CXX does not work here"
  fi
done

libdir=$(dirname "$(dirname "$(find "$tmp/this" -name quern.pc)")")
QUERN_PLUGIN_PATH=$libdir/quern/1
export QUERN_PLUGIN_PATH

if [ -e "$libdir/libquern.so" ]; then
  exports() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'; }
  only_qn() { ! exports "$libdir/libquern.so" | grep -v '^qn_[^_]'; }
  versioned() { nm -D --defined-only "$libdir/libquern.so" | grep -q ' qn_version@@QUERN_1$'; }
  ok "libquern.so exports qn_ names only" only_qn
  ok "its symbols are versioned" versioned
  for plugin in "$libdir"/quern/*/quern_*.so; do
    [ -e "$plugin" ] || continue
    entry_only() { [ "$(exports "$plugin")" = quern_plugin_entry_v1 ]; }
    links_not() { ! readelf -d "$plugin" | grep -q libquern; }
    ok "$(basename "$plugin") exports its entry only" entry_only
    ok "$(basename "$plugin") does not link libquern" links_not
  done
  unversioned() { ! find "$libdir/quern" -name '*.la' | grep .; }
  ok "no .la files beside plugins" unversioned
  LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  use shared "$tmp/this" $(pc "$tmp/this" --libs)
fi
for program in quern-info quern-conform quern-bench; do
  grep -q "/$program\$(EXEEXT)" "$builddir/Makefile" || continue
  installed=$(find "$tmp/this" -name $program -type f)
  ok "$program --version" "${installed:-$program}" --version
  ok "$program --help" "${installed:-$program}" --help
  grep -q "/$program\.1" "$builddir/Makefile" || continue         # cross-compiled: it could not be asked
  page=$(find "$tmp/this" -name $program.1)
  tells() { for option in $("$installed" --help | grep -o '^ *\(-., \)\?--[a-z-]*' | grep -o -e '--.*'); do
    sed 's/\\//g' "$page" | grep -q "^.B .*$option" || { echo "nothing of $option"; return 1; }; done; }
  ok "$program.1 tells of every option" tells
  if command -v groff >/dev/null; then
    formats() { [ -z "$(groff -man -ww -Tascii "$page" 2>&1 >/dev/null)" ]; }
    ok "$program.1 is a manual page" formats
  fi
done

if [ -e "$libdir/libquern.so" ]; then
  awk '/^```/ { inside = $0 == "```c"; next } inside' "$srcdir/README.md" >"$tmp/readme.c"
  ok "the README's program compiles" $CC -std=c99 $strict $flags -o "$tmp/readme" "$tmp/readme.c" $(pc "$tmp/this" --libs) &&
    right() { QUERN_BACKEND=cpu_ref "$tmp/readme" | grep -x 'cpu: 4 5 10 11'; } && ok "and prints what it should" right
  example=$(dirname "$(find "$tmp/this" -name cnn_digits.c)")
  ok "the installed example compiles where it lies" $CC -O1 $SANITIZER_CFLAGS $flags -o "$tmp/cnn_digits" "$example/cnn_digits.c" \
    $(pc "$tmp/this" --libs) -lm &&
    learns() { QUERN_BACKEND=cpu_ref "$tmp/cnn_digits" --data "$example/data/digits.csv" --width 4,4 --epochs 1 | grep '^  a [0-9], read as'; } &&
    ok "and shows the digits" learns
fi

# cmake KIND TARGET PREFIX: a program built by CMake, which is told of the copy below PREFIX and finds it.
by_cmake()
{
  mkdir -p "$tmp/cmake-$1" && cp "$tmp/readme.c" "$tmp/cmake-$1/" && cat >"$tmp/cmake-$1/CMakeLists.txt" <<END &&
cmake_minimum_required(VERSION 3.5)
project(readme C)
set(CMAKE_C_FLAGS "$SANITIZER_CFLAGS")
find_package(quern 0.1 REQUIRED CONFIG)
find_package(quern 0.1 REQUIRED CONFIG)
add_executable(readme readme.c)
target_link_libraries(readme $2)
END
    found=$(dirname "$(find "$3" -name quern-config.cmake)") &&
    (cd "$tmp/cmake-$1" && cmake -Dquern_DIR="$found" -DCMAKE_C_COMPILER="${CC##* }" . && $MAKE) &&
    QUERN_BACKEND=cpu_ref "$tmp/cmake-$1/readme" | grep -x 'cpu: 4 5 10 11'
}
too_new() { sed -i 's/quern 0.1/quern 9.1/' "$tmp/cmake-shared/CMakeLists.txt" && ! cmake "$tmp/cmake-shared"; }
if [ -e "$libdir/libquern.so" ]; then
  if command -v cmake >/dev/null; then
    ok "find_package(quern)" by_cmake shared quern::quern "$tmp/this"
    ok "and not a later version than it is" too_new
  else
    skip "find_package(quern)" "no cmake is here"
  fi
fi

# ---- one archive: no plugin, no dlopen ------------------------------------------------------------

unset QUERN_PLUGIN_PATH
static=$tmp/this
if [ -e "$libdir/libquern.so" ] && { [ "${TEST_TIER-}" = quick ] || [ "${TEST_ARCHIVE-}" = no ]; }; then static=
elif [ -e "$libdir/libquern.so" ]; then
  static=$tmp/static
  configure() { mkdir "$tmp/static-build" && cd "$tmp/static-build" &&
    "$srcdir/configure" --quiet --prefix="$static" --disable-shared --enable-static \
      CC="$CC" CXX="$CXX" CFLAGS="-O1 $SANITIZER_CFLAGS"; }
  ok "configure --disable-shared --enable-static" configure || give_up
  ok "make install of the library alone" $MAKE -C "$tmp/static-build" -j2 install-libLTLIBRARIES \
    install-pkgincludeHEADERS install-nodist_pkgincludeHEADERS install-pkgconfigDATA install-cmakeDATA || give_up
fi
if [ -e "$libdir/libquern.so" ] && [ "${TEST_TIER-}" != quick ]; then
  refused() { mkdir -p "$tmp/refused" && (cd "$tmp/refused" && "$srcdir/configure" --quiet CC="$CC" CXX="$CXX" "$@" 2>&1) | grep "error: .*$word"; }
  word='--disable-shared builds none'
  ok "configure: a plugin asked for that cannot be built is an error" refused --with-onednn=yes --without-cuda --disable-shared --enable-static
  word='known are auto, yes and no'
  ok "configure: so is a folder where none is taken" refused --with-openblas=/nowhere
fi
one_archive() { [ "$(cd "$(dirname "$(find "$static" -name libquern.a)")" && ls -d lib*)" = "$(printf 'libquern.a\nlibquern.la')" ]; }
foreign_names() { ! nm -g --defined-only "$(find "$static" -name libquern.a)" | awk 'NF == 3 && $3 !~ /^(qn_|cpu_|__odr_asan)/ { print $3 }' | grep .; }
if [ -n "$static" ]; then
  where=$(PKG_CONFIG_PATH=$(dirname "$(find "$static" -name quern.pc)") "$PKG_CONFIG" --variable=libdir quern)
  case $where in
    "$builddir"/*)                        # a plugin of another build with the same prefix: an archive does not look there
      mkdir -p "$where/quern/1"
      cp "$srcdir/README.md" "$where/quern/1/quern_x.so" ;;
  esac
  ok "one libquern.a, and no other library" one_archive
  ok "libquern.a defines qn_, qn__ and cpu_ names only" foreign_names
  use static "$static" -DNO_DLOPEN $(pc "$static" --static --libs)
  if command -v cmake >/dev/null && [ -e "$tmp/readme.c" ]; then
    ok "find_package(quern) finds the archive" by_cmake static quern::static "$static"
    ok "which is quern::quern where it is alone" by_cmake alone quern::quern "$static"
  fi
else
  skip "one archive" "the quick tier and TEST_ARCHIVE=no build none besides a shared library"
fi

# ---- after make uninstall ------------------------------------------------------------------------------

mkdir -p "$libdir/quern/1"
touch "$libdir/quern/1/quern_theirs.so"
ok "make uninstall" $MAKE -C "$builddir" uninstall DESTDIR="$tmp/this"
only_theirs() { find "$tmp/this" ! -type d | sort; [ "$(find "$tmp/this" ! -type d)" = "$libdir/quern/1/quern_theirs.so" ]; }
ok "leaves the plugin of others, and nothing else" only_theirs

rm -rf "$tmp"
echo "1..$n"
[ $failed = 0 ]
