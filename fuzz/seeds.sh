#!/bin/sh
# seeds.sh TARGET FOLDER -- fills FOLDER with a fuzzing target's initial corpus, one problem or setting per file, taken from
# the cases, workloads and docs of this tree. Run from the top of the tree.
set -eu
target=$1 folder=$2
mkdir -p "$folder"
case $target in
  fuzz_line)
    # a blank line ends a graph; a line of its own is a problem
    cat conformance/cases/*.q bench/workloads/*.q docs/problem-lines.md |
      awk -v folder="$folder" '
        function flush() { if (text != "") { n++; printf "%s", text > (folder "/seed-" n); close(folder "/seed-" n) } text = "" }
        /^[ \t]*(#.*)?$/ || /^```/ { flush(); next }
        { if (!/^(in|out) / && !/^[A-Za-z_0-9]+ *=/ && text !~ /^in /) flush(); text = text $0 "\n" }
        END { flush() }' ;;
  fuzz_settings)
    printf 'backend=cpu_ref\nthreads=4\ntune=off\n' >"$folder/seed-1"
    printf 'engine=conv_forward=winograd_4x4,matmul=cuda/wgmma:128x256_c2,pointwise=direct,any\n' >"$folder/seed-2"
    printf 'workspace_limit=64M\nmath=tf32\ndeterministic=batch\nfallback=host\nlog=warn\ndevice=0\n' >"$folder/seed-3"
    printf 'plugin_path=/a:/b\ntune_cache=/tmp/t\ntrace=/tmp/q\nworkspace_limit=18446744073709551615\nnone=1\n' >"$folder/seed-4" ;;
  fuzz_tune)
    printf 'quern-tune 1\nh200\td0,m1,w18446744073709551615,t0,cuda\tcopy x=f32/64\tcuda/copy:16\t0.1.0\t1234\n' >"$folder/seed-1"
    printf 'quern-tune 2\ngeneric\td0\trelu x=f32/8\tcpu_ref/direct\t1\t5\n' >"$folder/seed-2"
    printf 'quern-tune 1\nh200\td0\trelu x=f32/8\tcuda/direct\t1\t0.5\n' >"$folder/seed-3" ;;
  *) echo "seeds.sh: no target $target" >&2; exit 2 ;;
esac
