#!/bin/sh
# cli.sh -- the programs on bad input: one clear sentence on standard error, exit status 2, and nothing else. TAP.

set -u
programs=${top_builddir-.}
line='relu x=f32/4'
out=$(mktemp) err=$(mktemp)
trap 'rm -f "$out" "$err"' EXIT
n=0 failed=0

# verdict WORDS STATUS WANTED-STATUS LINES WORD: judges the program whose output is in $out and $err.
verdict()
{
  n=$((n + 1))
  lines=$(grep -c . "$err")
  if [ "$2" = "$3" ] && { [ "$4" = any ] || [ "$lines" = "$4" ]; } && grep -qF -e "$5" "$err" "$out"; then echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    echo "# status $2, wanted $3; $lines lines on standard error, wanted $4; wanted the word \"$5\""
    sed 's/^/# /' "$err"
    failed=$((failed + 1))
  fi
}

# bad WORDS WORD COMMAND...
bad()
{
  words=$1 word=$2
  shift 2
  timeout 60 "$@" >"$out" 2>"$err" </dev/null
  verdict "$words" $? 2 1 "$word"
}

good()
{
  words=$1 word=$2
  shift 2
  timeout 60 "$@" >"$out" 2>"$err" </dev/null
  verdict "$words" $? 0 any "$word"
}

beside()        # beside FOLDER: a plugin path with FOLDER before the folders of this build's own plugins
{
  echo "$(cd "$1" && pwd)${QUERN_PLUGIN_PATH:+:$QUERN_PLUGIN_PATH}"
}

each()          # each NAME COMMAND... : a program that takes a problem line as its last argument
{
  name=$1
  shift
  bad "$name: QUERN_BACKEND=nonesuch" nonesuch env QUERN_BACKEND=nonesuch "$@" "$line"
  bad "$name: a backend's path that is relative" absolute env QUERN_BACKEND=./quern_x.so "$@" "$line"
  bad "$name: QUERN_ENGINE of an engine that is not here" nonesuch env QUERN_ENGINE=relu=nonesuch "$@" "$line"
  bad "$name: QUERN_ENGINE that is no list" QUERN_ENGINE env QUERN_ENGINE=fast "$@" "$line"
  bad "$name: QUERN_MATH that is none" QUERN_MATH env QUERN_MATH=sloppy "$@" "$line"
  bad "$name: QUERN_DETERMINISTIC that is none" QUERN_DETERMINISTIC env QUERN_DETERMINISTIC=maybe "$@" "$line"
  bad "$name: QUERN_TUNE that is none" QUERN_TUNE env QUERN_TUNE=always "$@" "$line"
  bad "$name: QUERN_THREADS that is no number" QUERN_THREADS env QUERN_THREADS=many "$@" "$line"
  bad "$name: QUERN_WORKSPACE_LIMIT that is no size" QUERN_WORKSPACE_LIMIT env QUERN_WORKSPACE_LIMIT=-3 "$@" "$line"
  bad "$name: QUERN_FALLBACK that is none" QUERN_FALLBACK env QUERN_FALLBACK=cloud "$@" "$line"
  bad "$name: a line of an unknown op" frobnicate "$@" 'frobnicate x=f32/4'
  bad "$name: a line with an unknown dtype" f33 "$@" 'relu x=f33/4'
  bad "$name: a line that stops short" '' "$@" 'relu x='
  bad "$name: a line with an unknown attribute" colour "$@" 'relu x=f32/4 colour=red'
  bad "$name: a line whose shapes do not fit" '' "$@" 'matmul a=f32/4x5 b=f32/6x7'
  bad "$name: no line" '' "$@" ''
}

program()       # program NAME PATH: checks common to all programs
{
  good "$1 --help" "$1" "$2" --help
  good "$1 --version" "$1" "$2" --version
  timeout 60 "$2" --nonesuch >"$out" 2>"$err" </dev/null
  verdict "$1: an unknown option" $? 2 any nonesuch
}

info=$programs/info/quern-info bench=$programs/bench/quern-bench conform=$programs/conformance/quern-conform
program quern-info "$info"
program quern-bench "$bench"
program quern-conform "$conform"
each "quern-info --explain" "$info" --explain
each "quern-bench --case" "$bench" --time 0.01 --case
each "quern-conform --case" "$conform" --case

if [ -w /dev/full ]; then
  lost() { timeout 60 "$@" >/dev/full 2>"$err" </dev/null; }
  lost "$info"; verdict "quern-info: a full disk" $? 2 1 "standard output cannot be written"
  lost "$bench" --time 0.01 --case "$line"; verdict "quern-bench: a full disk" $? 2 1 "standard output cannot be written"
  lost "$conform" --backend cpu_ref --case "$line"; verdict "quern-conform: a full disk" $? 2 1 "standard output cannot be written"
fi

good "QUERN_PLUGIN_PATH of a folder that is not there is warned of" "no plugins in /nonexistent" \
  env QUERN_PLUGIN_PATH="/nonexistent${QUERN_PLUGIN_PATH:+:$QUERN_PLUGIN_PATH}" "$info"
bad "a device model that is none" "known are" env QUERN_DEVICE_MODEL=nonesuch "$info" --backend cpu_ref
bad "quern-info: a command and --explain" both "$info" config --explain "$line"
bad "quern-info: --device-model without --explain" "goes with --explain" "$info" --device-model h200
bad "QUERN_ENGINE of a variant that is none" "no variant" env QUERN_ENGINE=matmul=cpu_ref/blocked:nonesuch "$info" --backend cpu_ref
bad "QUERN_ENGINE of a family without engines of its own" "one by one" env QUERN_ENGINE=contraction=direct "$info" --backend cpu_ref
bench_line() { timeout 60 env "$@" "$bench" --backend cpu_ref --time 0.01 --case "$line" >"$out" 2>"$err" </dev/null; }
bench_line QUERN_OVERRIDE='engine=relu=direct threads=1' QUERN_LOG=info
verdict "QUERN_OVERRIDE beats the program's own options" $? 0 any "cpu_ref/direct"
bench_line QUERN_OVERRIDE='threads=1 threats=2'; verdict "QUERN_OVERRIDE of an option that is none" $? 2 1 'QUERN_OVERRIDE: "threats" is not an option'
bench_line QUERN_OVERRIDE=math=sloppy; verdict "QUERN_OVERRIDE of a value that is none" $? 2 1 'QUERN_OVERRIDE: math: "sloppy"'
bench_line QUERN_OVERRIDE=backend=nonesuch; verdict "QUERN_OVERRIDE of a backend that is not here" $? 2 1 nonesuch
bench_line QUERN_BACKEND=nonesuch QUERN_LOG=info
verdict "a variable that an option overrules is mentioned" $? 0 any "QUERN_BACKEND=nonesuch is overruled by an option"
bad "an override as a program's option" "QUERN_OVERRIDE" "$info" --set override=threads=1 --explain "$line"
good "QUERN_BACKEND that ends in any passes over what is not here" cpu_ref/ env QUERN_BACKEND=nonesuch,any "$info" --explain "$line"
good "QUERN_LOG=plan has the plan of what is explained" "plan: of 2 parts" sh -c "QUERN_LOG=plan \"$info\" --backend cpu_ref --explain \
  'in a f32/8x8 | c = matmul a=a b=a | out d = softmax x=c' 2>&1"
good "QUERN_BACKEND=any is what is here" cpu_ref/ env QUERN_BACKEND=any "$info" --explain "$line"
bad "QUERN_BACKEND that has any before its end" any env QUERN_BACKEND=any,cpu_ref "$info" --explain "$line"
for size in 16MiB 1g 64m 2G 4096B 1TiB; do
  good "QUERN_WORKSPACE_LIMIT=$size" cpu_ref/ env QUERN_WORKSPACE_LIMIT=$size "$info" --backend cpu_ref --explain "$line"
done
for size in 16MX MiB 1gg 99999999999G; do
  bad "QUERN_WORKSPACE_LIMIT=$size" "$size" env QUERN_WORKSPACE_LIMIT=$size "$info" --backend cpu_ref --explain "$line"
done
bench_line OMP_NUM_THREADS=1; verdict "quern-bench prints the spread beside each figure" $? 0 any "us spread  share"
timeout 60 env OMP_WAIT_POLICY=active "$info" doctor >"$out" 2>"$err" </dev/null
status=$?
if grep -q "note   OpenMP: none" "$out"; then echo "OpenMP: OMP_WAIT_POLICY=active" >>"$out"; fi
verdict "quern-info doctor says how OpenMP's threads wait" $status 0 any "OpenMP: OMP_WAIT_POLICY=active"
bench_line QUERN_PROFILE=-; verdict "QUERN_PROFILE prints a table" $? 0 any "relu x=f32/4"
bench_line QUERN_LOG=plan; verdict "QUERN_LOG=plan prints plans" $? 0 any "workspace=0 : relu x=f32/4"
bench_line QUERN_LOG=plans; verdict "QUERN_LOG that is none" $? 2 1 "plans"
plugins="$programs/tests/.libs"
if [ -f "$plugins/quern_fake.so" ]; then
  fake="QUERN_PLUGIN_PATH=$(beside "$plugins")" settings="QUERN_DEVICE=1 QUERN_ENGINE=matmul=fake/three"
  good "the environment's device and engines of another kind of device" cpu_ref/ env "$fake" $settings "$info" --backend cpu_ref --explain "$line"
  bad "an option for an engine of another kind of device" "no engine" env "$fake" "$info" --backend cpu_ref --set engine=matmul=fake/three --explain "$line"
  good "QUERN_BACKEND=A,B,any passes over a backend of another kind than the first" fake/ \
    env "$fake" QUERN_BACKEND=fake,cpu_ref,any "$info" --explain 'matmul a=f32/4x4 b=f32/4x4'
  good "a device model that another device than the first knows" cpu_ref/tile_avx2 env "$fake" "$info" --device-model avx2 --explain "$line"
fi
bad "an option for a second CPU" "numbered from 0" "$info" --backend cpu_ref --set device=1 --explain "$line"
good "quern-info" cpu_ref "$info"
good "quern-info --explain names the engine" direct "$info" --explain "$line"
good "quern-info ops says the default word" "nearest|linear|cubic, default linear" "$info" ops
good "quern-info config" QUERN_BACKEND "$info" config
good "quern-info ops softmax" "log_softmax_backward (softmax)" "$info" ops softmax
[ "$(grep -c '^[a-z]' "$out")" = 4 ]; verdict "tells of these ops alone" $? 0 any "softmax"
good "quern-info ops FAMILY" "cumsum (scan)" "$info" ops scan
bad "quern-info ops of a word in no name" "no op has" "$info" ops frobnicate
bad "quern-info config with another word" "no further word" "$info" config softmax
good "quern-info --gradient" "out dw = mul a=g2 b=x" "$info" --gradient 'in x f32/4 | in w f32/4 | y = mul a=x b=w | out l = reduce_sum x=y' --by w,x
verdict "and by the other" 0 0 any "out dx"
good "quern-info --gradient of one op" "out dx = cross_entropy_backward" "$info" --gradient 'cross_entropy x=f32/4x8 labels=i32/4x1 reduction=sum' --by x
bad "quern-info --gradient of a line that is none" frobnicate "$info" --gradient 'frobnicate x=f32/4'
bad "quern-info --gradient of a graph without a loss" "none of one element" "$info" --gradient 'in x f32/4 | y = exp x=x | out z = exp x=y'
bad "quern-info --by without --gradient" "goes with --gradient" "$info" --by x
timeout 60 "$info" --gradient 'in x f32/4 | i = argmax x=x | j = cast x=i y=f32/1 | out l = exp x=j' >"$out" 2>"$err" </dev/null
verdict "quern-info --gradient that is not known" $? 1 1 "the gradient of argmax is not known"
good "quern-info list softmax" cpu_ref/ "$info" list softmax
good "quern-info config: the threads in force" "threads          1  " \
  env OMP_NUM_THREADS=1 XDG_CACHE_HOME=/nonexistent/cache "$info" --backend cpu_ref config
verdict "and the tune cache's path" 0 0 any "/nonexistent/cache/quern/tune"
verdict "and the backend" 0 0 any "backend          cpu_ref"
home=$(mktemp -d)
good "quern-info doctor sees a cache that it can write" "ok     tune cache: $home" \
  env -u XDG_CACHE_HOME HOME="$home" "$info" --backend cpu_ref doctor
good "quern-info doctor sees a cache that has no home" "home folder does not exist" \
  env -u XDG_CACHE_HOME HOME="$home/none" "$info" --backend cpu_ref doctor
timeout 60 env -u XDG_CACHE_HOME HOME="$home/none" QUERN_TUNE=measure "$bench" --backend cpu_ref --time 0.01 --case "$line" >"$out" 2>"$err"
[ ! -e "$home/none" ]; verdict "a home that does not exist is not made" $? 0 1 "is not written"
touch "$home/file"
timeout 60 env QUERN_TUNE_CACHE="$home/file/tune" "$info" --backend cpu_ref doctor >"$out" 2>"$err"
verdict "quern-info doctor: a tune cache named where no file can be" $? 1 any "FAULT  tune cache: $home/file/tune cannot be written"
rm -rf "$home"
for tool in "$info --explain" "$bench --time 0.01 --case" "$conform --case"; do
  timeout 60 env QUERN_NONESUCH=1 QUERN_BACKEND=cpu_ref $tool "$line" >"$out" 2>"$err"       # its first word is the program
  verdict "${tool##*/}: a warning appears once" $? 0 1 "QUERN_NONESUCH is not a variable"
done
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
  script -qec "stty cols 60; $info ops; $info config; $info" /dev/null >"$out" 2>"$err" </dev/null
  [ "$(tr -d '\r' <"$out" | awk 'length > 60' | grep -vc '[^ ]\{30\}')" = 0 ]      # but for a word that is long itself
  verdict "quern-info: lines fit a terminal" $? 0 any "QUERN_BACKEND"
fi
timeout 60 "$info" doctor --set plugin_path=/nonexistent >"$out" 2>"$err" </dev/null
verdict "quern-info doctor looks into the folders that it is given" $? 0 any "/nonexistent: no such folder"
printf 'relu x=f32/4\n\nrelu y\n# a graph\nin a f32/3\nout b = neg x=a\n\nexp x=f32/5 ; seed=1\n' |
  timeout 60 "$info" --backend cpu_ref --explain - >"$out" 2>"$err"
verdict "quern-info --explain - goes on after a line that is none" $? 2 1 "line 3, column 7"
[ "$(grep -c '^part 0: ' "$out")" = 3 ]
verdict "and explains all the others" $? 0 1 "part 0: exp x=f32/5"
printf 'relu x=f32/4\nrelu x=f32/5\n' | timeout 60 "$info" --backend nonesuch --explain - >"$out" 2>"$err"
verdict "a backend that is none is spoken of once" $? 2 1 nonesuch

graph=$(mktemp)
printf 'in a f32/8x8\nm = matmul a=a b=a\nout y = mul a=m b=a\n' >"$graph"
good "quern-bench pins the engine for mul, too, which is in matmul's name" "cpu_ref/direct + cpu_ref/di" \
  "$bench" --backend cpu_ref/direct --workload "$graph" --time 0.01
rm -f "$graph"
bad "quern-bench: a filter that leaves nothing" nonesuch "$bench" --case "$line" --filter nonesuch
good "quern-bench --selected counts who is chosen, and names the next best" "1      1        -        -  cpu_ref/direct (1)" \
  "$bench" -b cpu_ref --selected --device-model generic --case 'softmax x=f32/64x64'
good "quern-bench --selected names the family that an engine serves" "pointwise                cpu_ref/" \
  "$bench" -b cpu_ref --selected --device-model generic --case 'gelu x=f32/64x64'
bad "quern-bench --selected: a device model that is none" "nonesuch" "$bench" -b cpu_ref --selected --device-model nonesuch --case "$line"
bad "quern-bench: --csv where there is no folder" "--csv" "$bench" --case "$line" --csv /nonexistent/x.csv
bad "quern-bench: --csv without a name" "--csv" "$bench" --case "$line" --csv ''
bad "quern-bench: --plot of no known kind" .svg "$bench" --case "$line" --plot x.jpeg
bad "quern-bench: a workload that is not there" nonexistent "$bench" --workload /nonexistent.q
fifo=$(mktemp -d)
mkfifo "$fifo/csv"
timeout 60 cat "$fifo/csv" >"$fifo/copy" &
good "quern-bench --csv writes to a pipe" "$line" "$bench" --case "$line" --time 0.01 --csv "$fifo/csv"
wait $!
[ -p "$fifo/csv" ] && grep -q "$line" "$fifo/copy"
verdict "and leaves it a pipe" $? 0 any .
good "a tune cache that is no file is left alone" "no regular file" \
  env QUERN_TUNE=measure QUERN_TUNE_CACHE="$fifo/csv" "$bench" --backend cpu_ref --case "$line" --time 0.01
[ -p "$fifo/csv" ]
verdict "and stays a pipe" $? 0 any .
rm -rf "$fifo"

for setting in bogus=1 z.fill=int y.fill=int x.seed=3 seed=x labels=3 as=f99 tier=soon kind=tpu plain=0; do
  bad "quern-conform: a case with the setting $setting" "setting '${setting%%=*}" "$conform" --case "$line ; $setting"
done
timeout 60 "$conform" --case "$line" --case 'exp x=f32/4' >"$out" 2>"$err" </dev/null
verdict "quern-conform: a second --case is not passed over" $? 2 any "one --case"
timeout 60 "$info" --explain "$line" --explain 'exp x=f32/4' >"$out" 2>"$err" </dev/null
verdict "quern-info: a second --explain is not passed over" $? 2 any "one --explain"
bad "quern-conform: an engine of a family is not one of its op" "under its name" "$conform" --backend cpu_ref --engine relu/direct --case "$line"
bad "quern-conform: a folder without cases" /nonexistent "$conform" --cases /nonexistent
bad "quern-conform: a backend without a name" "names no backend" "$conform" --backend , --case "$line"
good "quern-conform: an empty QUERN_BACKEND is unset" "0 failed" env QUERN_BACKEND= "$conform" --case "$line"
for option in --seed=-1 --random=many --runs=1 --kills=0 --time-limit=nan; do
  timeout 60 "$conform" $option --case "$line" >"$out" 2>"$err" </dev/null
  verdict "quern-conform $option" $? 2 any "${option%=*}: '${option#*=}' is no"
done

plugins="$programs/conformance/mutant/.libs"
if [ -f "$plugins/quern_mutant.so" ]; then
  seldom=$(beside "$plugins")
  judge() { timeout 60 env QUERN_PLUGIN_PATH="$seldom" "$conform" --backend mutant --engine tanh/seldom_otherwise \
    "$@" --case 'tanh x=f32/64 ; fill=signed:4' >"$out" 2>"$err" </dev/null; }
  judge; verdict "quern-conform: other bits in the eighth run do not show in two" $? 0 any "0 failed"
  judge --runs 20; verdict "quern-conform --runs 20: they show" $? 1 any "--runs 20 --case"
fi
folder=$(mktemp -d)        # the first takes longer than it may, the second is done before it
printf 'matmul a=f64/3000x3000 b=f64/3000x3000 ; plain=1\n\nrelu x=f32/4 ; plain=1\n\nexp x=f32/4 ; plain=1\n' >"$folder/three.q"
for jobs in 1 3; do
  timeout 60 "$conform" --backend cpu_ref --cases "$folder" --filter three.q --time-limit 0.5 --jobs $jobs >"$out" 2>"$err" </dev/null
  verdict "quern-conform --jobs $jobs: a point that hangs fails" $? 1 any "verdict: no sign of life for 0.5 s"
  sed '$d' "$out" >"$folder/$jobs"
done
cmp -s "$folder/1" "$folder/3"; verdict "quern-conform: points have one order, however many workers" $? 0 any "3 - three.q:5 exp"
rm -r "$folder"
plugins="$programs/plugins/example/.libs"
if [ -f "$plugins/quern_example.so" ]; then
  folder=$(mktemp -d)
  echo 'relu x=f32/1x64 ; plain=1' >"$folder/one.q"
  example() { timeout 60 env QUERN_PLUGIN_PATH="$(beside "$plugins")" "$conform" --backend example --cases "$folder" >"$out" 2>"$err" </dev/null; }
  example; verdict "quern-conform: what no row was compared for is not proved" $? 1 any "no case compared a row alone"
  echo 'relu x=f32/2x64 ; plain=1' >"$folder/one.q"
  example; verdict "quern-conform: two rows prove it" $? 0 any "0 failed"
  rm -r "$folder"
fi
bad_value() { timeout 60 "$conform" --backend cpu_ref --case "$1" >"$out" 2>"$err" </dev/null; verdict "quern-conform: $2" $? 1 any "$3"; }
bad_value 'relu x=f32/2x3/0:1 ; x.is=1,2,3,4' "two values for one address" "share an address"
many=$(awk 'BEGIN { printf "in x f32/4"; for (i = 0; i < 130; i++) printf " | out y%d = relu x=x", i }')
timeout 60 "$conform" --backend cpu_ref --case "$many" >"$out" 2>"$err" </dev/null
verdict "quern-conform: a problem of more tensors than it has room for" $? 1 any "131 tensors and 130 ops; the suite has room for"
good "quern-conform: the sign of a zero that a sum left is not asked of a neg" "0 failed" "$conform" --backend cpu_ref \
  --case 'in x f32/6x8 | v = neg x=x | h = rms_norm x=v | out y = neg x=h ; x.fill=const:0'

good "quern-conform: strides whose product no integer holds" "0 failed" "$conform" --backend cpu_ref \
  --case 'conv_backward_data dy=f32/1x4x1x1 w=f32/4x4x3x3 stride=1099511627776 pad=1 dx=f32/1x4x8x8'

for option in --seed=x --epochs=0 --batch=many --width=4,4x --rate=inf; do
  timeout 60 "$programs/examples/cnn_digits" $option >"$out" 2>"$err" </dev/null
  verdict "cnn_digits $option" $? 2 any "${option%=*} wants"
done

if [ -w /dev/full ]; then
  lost "$programs/examples/cnn_digits" --quiet --epochs=1 --width=1,1 --batch=1437
  verdict "cnn_digits: a full disk" $? 1 1 "standard output cannot be written"
fi
sed '7s/,[0-9]*$/,10/' "${top_srcdir-.}/examples/data/digits.csv" >"$out.csv"
bad "cnn_digits: a label that is no digit" "line 7" "$programs/examples/cnn_digits" --data "$out.csv"
rm -f "$out.csv"
bad "cnn_digits: data that is a folder" "cannot read" "$programs/examples/cnn_digits" --data "${top_srcdir-.}"

# Tuning ahead of time: one line in the file per problem, once.
tuned=$(mktemp -d)
for _ in 1 2; do
  timeout 60 "$bench" --backend cpu_ref --tune "$tuned/file" --time 0.01 --case 'relu x=f32/32x32' >"$out" 2>"$err"
done
verdict "quern-bench --tune" $? 0 any "cpu_ref/"
[ "$(grep -c 'relu x=f32/32x32' "$tuned/file")" = 1 ] && [ "$(echo "$tuned"/*)" = "$tuned/file $tuned/file.lock" ]
verdict "remembers a problem once" $? 0 any .
timeout 60 "$bench" --backend cpu_ref --tune "$tuned/file/below" --time 0.01 --case 'relu x=f32/32x32' >"$out" 2>"$err"
verdict "quern-bench --tune where no file can be" $? 1 any "nothing was remembered"
echo 'relu x=f32/4' >"$tuned/other"
for file in "$tuned" "$tuned/other" /dev/null; do
  bad "quern-bench --tune ${file#"$tuned/"}, which is no tune cache" --tune "$bench" --backend cpu_ref --tune "$file" --case "$line"
done
[ "$(cat "$tuned/other")" = 'relu x=f32/4' ]
verdict "and such a file is left alone" $? 0 any "no tune cache"
rm -rf "$tuned"

# A problem that no engine takes: every engine with its reason.
QUERN_BACKEND=cpu_ref QUERN_WORKSPACE_LIMIT=0 QUERN_ENGINE=conv_forward=gemm timeout 60 "$info" --explain \
  'conv_forward x=f32/2x8x32x32 w=f32/16x8x3x3' >"$out" 2>"$err"
verdict "a problem that nobody takes is explained" $? 1 any "cpu_ref/gemm"
verdict "with the reason" 0 0 any "limit of 0 bytes"

echo "1..$n"
[ $failed = 0 ]
