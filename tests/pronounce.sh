#!/bin/sh
# pronounce.sh -- examples/pronounce: a small network of random weights beside its formulas in Python; the real one's words, where its
# weights are (examples/pronounce_weights FILE, before); files that are not what it reads. TAP; needs no network.
set -u
programs=${top_builddir-.} srcdir=${top_srcdir-.} PYTHON=${PYTHON-python3}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 failed=0

# ok WORDS STATUS WORD COMMAND...: the command ends with that status and says WORD.
ok()
{
  words=$1 status=$2 word=$3 n=$((n + 1))
  shift 3
  timeout 120 "$@" >"$tmp/said" 2>&1 </dev/null
  got=$?
  if [ $got = "$status" ] && grep -qF -e "$word" "$tmp/said"; then echo "ok $n - $words"
  else
    echo "not ok $n - $words"
    echo "# status $got, wanted $status and the word \"$word\""
    head -n 20 "$tmp/said" | sed 's/^/# /'
    failed=$((failed + 1))
  fi
}
skip()
{
  n=$((n + 1))
  echo "ok $n - $1 # SKIP $2"
}
pronounce() { ok "$1" "$2" "$3" "$programs/examples/pronounce" --weights "$4" --check "$5"; }

if "$PYTHON" --version >/dev/null 2>&1; then
  "$PYTHON" "$srcdir/tests/pronounce.py" "$tmp" || exit 1
  pronounce 'a small network of random weights' 0 '40 of 40 words' "$tmp/small.npz" "$tmp/words"
  pronounce 'a wrong phoneme is told' 1 '39 of 40 words' "$tmp/small.npz" "$tmp/wrong"
  pronounce 'a compressed file' 2 'is compressed' "$tmp/compressed.npz" "$tmp/words"
  pronounce 'a file cut off' 2 'is no .npz' "$tmp/cut.npz" "$tmp/words"
  pronounce 'an offset beyond the end' 2 'damaged' "$tmp/offset.npz" "$tmp/words"
  pronounce 'doubles' 2 'is not float32' "$tmp/doubles.npz" "$tmp/words"
  pronounce 'other dims' 2 'enc_b_hh has other dims' "$tmp/dims.npz" "$tmp/words"
  pronounce 'an array that is not there' 2 'has no array fc_b' "$tmp/less.npz" "$tmp/words"
else
  skip 'a small network' "$PYTHON, which writes it, is not here"
fi
pronounce 'a file that is not there' 2 'cannot be read' "$tmp/nowhere.npz" "$srcdir/examples/data/words.txt"
ok 'a word too long' 2 'at most 47 letters' "$programs/examples/pronounce" --weights "$tmp/small.npz" \
  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
weights=$programs/examples/g2p_en.npz
if [ -f "$weights" ]; then pronounce 'known words' 0 '54 of 54 words' "$weights" "$srcdir/examples/data/words.txt"
else skip 'known words' 'examples/pronounce_weights build/examples/g2p_en.npz fetches the weights'
fi
echo "1..$n"
exit $failed
