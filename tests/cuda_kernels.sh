#!/bin/sh
# cuda_kernels.sh -- checks ptxas's remarks on the compiled kernels (kept by build-aux/nvcc-lt): in none are the
# Tensor Cores' asynchronous products serialised (C75xx), and none spills more registers than listed here. TAP.

set -u

# File, kernel (its symbol matches), limit on bytes of spill stores, why. Others may spill a few words, at most 40 bytes of stores.
known='
.*_direct                  .                               200  generic: slow is allowed
attention_mma_backward_.*  shapeILi.ELi192ELi128ELb1        60  two sums of 320 elements a row in registers
conv_depthwise             depthwise_strip                 160  held to the registers that let another block in
conv_depthwise             depthwise_window                 60  sm_80: any steps beside the weights of 7 x 7 windows
conv_depthwise_mma_filter  depthwise_mma_filter            140  to be brought down: windows to 7 x 7
conv_depthwise_planes      depthwise_planes                 70  held to the registers that let another block in
conv_grouped               Lb1EEv7grouped                   80  sums again where a result is not finite, which is rare
conv_first_filter          .                                60  held to the registers that let another block in
conv_winograd              gradient                         48  sums again where a result is not finite, which is rare
matmul_wgmma_tf32          Li11ELi128ELi256ELi1ELb0ELb1     80  sums of blocks of k in 3xTF32: once a block, of 8192 terms; no slower
pool_vector                pool_s                          130  averages again where a result is not finite, which is rare
sampling_sorted            gather_points                    60  sums of so many points that they are added in blocks
sampling_sorted            gather_direct                   100  generic: slow is allowed
'

n=0 failed=0
for said in "${top_builddir-.}"/backends/cuda/*/.libs/*.o.ptxas; do
  n=$((n + 1))
  name=$(basename "$said" .o.ptxas)
  if [ ! -e "$said" ]; then
    echo "ok $n - # SKIP compiled before remarks were kept"
    continue
  fi
  wrong=$(printf '%s' "$known" | awk -v file="$name" '
    FILENAME == "-" { if (NF) { pattern[++rows] = $1; kernel[rows] = $2; most[rows] = $3 }; next }
    /\(C75[0-9][0-9]\)/ { print }
    / spilled / {
      split($0, quoted, "\047")
      for (i = 1; i < NF; i++) if ($i == "bytes" && $(i + 1) == "spill" && $(i + 2) ~ /^stores/) bytes = $(i - 1)
      allowed = 40
      for (i = 1; i <= rows; i++) if (file ~ ("^" pattern[i] "$") && quoted[2] ~ kernel[i] && most[i] > allowed) allowed = most[i]
      if (bytes + 0 > allowed + 0) print
    }' - "$said" | sort -u)
  if [ -n "$wrong" ]; then
    echo "not ok $n - $name: no spills, no serialised products"
    echo "$wrong" | sed 's/^/# /'
    failed=$((failed + 1))
  else
    echo "ok $n - $name: no serialised products, no spills$(grep -q ' spilled ' "$said" && echo ' but those known')"
  fi
done
echo "1..$n"
[ $failed = 0 ]
