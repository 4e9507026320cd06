#!/bin/sh
# cuda_kernels.sh -- what ptxas remarked on the kernels when they were compiled (build-aux/nvcc-lt keeps it): in none are the
# Tensor Cores' asynchronous products serialised (C75xx), and none spills registers that local.mk asks this of. TAP.

set -u
n=0 failed=0
for said in "${top_builddir-.}"/backends/cuda/.libs/*.o.ptxas; do
  n=$((n + 1))
  name=$(basename "$said" .o.ptxas)
  if [ ! -e "$said" ]; then echo "ok $n - # SKIP compiled before remarks were kept"
  elif grep -Eq 'spilled|\(C75[0-9][0-9]\)' "$said"; then
    echo "not ok $n - $name: no spills, no serialised products"
    grep -E 'spilled|\(C75[0-9][0-9]\)' "$said" | sort -u | sed 's/^/# /'
    failed=$((failed + 1))
  else echo "ok $n - $name: no spills, no serialised products"
  fi
done
echo "1..$n"
[ $failed = 0 ]
