#!/bin/sh
# adding.sh -- docs/adding-an-op.md says as many files as its tables list, and those are there; a schema with a family more is taken, and
# mistakes in it are sentences. Speaks TAP.
src=${top_srcdir-.}
page=$src/docs/adding-an-op.md
awk_=${AWK-awk}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
n=0
point() {
  n=$((n + 1))
  if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

# ---- the page -------------------------------------------------------------------------------

$awk_ '
  BEGIN { split("one two three four five six seven eight nine ten eleven twelve thirteen fourteen", w, " "); for (i in w) number[w[i]] = i }
  function close_table() { if (said && rows != said) { print title ": " rows " rows"; wrong = 1 } said = rows = 0 }
  /^## / { close_table(); title = $0; if ($NF == "files") said = number[$(NF - 1)]; if (said) tables++ }
  /^\| `/ { rows++ }
  END { close_table(); if (tables != 3) { print tables " tables"; wrong = 1 } exit wrong }' "$page" >"$scratch/counts"
point $? "each of the page's three tables has as many rows as its heading says"
sed 's/^/# /' "$scratch/counts"

missing=
for path in $(sed -n 's/^| `\([^`]*\)`.*/\1/p; s/^`\([a-z]*\/[^`]*\)`.*/\1/p' "$page"); do
  found=
  for file in $src/$path; do [ -e "$file" ] && found=1; done
  [ "$found" ] || missing="$missing $path"
done
[ -z "$missing" ]
point $? "the files that it names are there$missing"

# ---- the schema -----------------------------------------------------------------------------

emits='opnum args table calls core conform problems'
# With the sed script $1 applied to ops.def: what the generator says, and whether it fails.
generate() {
  sed "$1" "$src/core/ops.def" >"$scratch/ops.def"
  for emit in $emits; do
    $awk_ -v emit=$emit -f "$src/core/ops.awk" "$scratch/ops.def" 2>&1 >"$scratch/$emit" || return 1
  done
}
refused() {
  said=$(generate "$1") && said="nothing, and takes it"
  case $said in *"$2"*) point 0 "$3: $2" ;; *) point 1 "$3: it says $said" ;; esac
}

said=$(generate '/^family 22 /i\
family 99 extra        a family more\
  all rule=extra bound=none rows=none fills=int flops=2*x random=extra
$a\
op 999 extra extra none - x:f -> y:f : y = x')
point $? "a family of one op is taken${said:+: $said}"
grep -q 'QN_FAMILY_EXTRA = 99' "$scratch/opnum" && grep -q 'return qn__infer_extra(p);' "$scratch/core" &&
  grep -q 'return 2 \* qn__role_elements(value, op, 0);' "$scratch/core" && grep -q 'problem_extra(r, p);' "$scratch/problems"
point $? "and its rule, FLOPs and random problems are called"

refused 's/rule=local /rules=local /' 'no field rules' "a field that is none"
refused 's/rule=local //' 'lrn has no rule, and so has its family' "a field left out"
refused 's/^  cumprod  /  cumsun   /' 'no op cumsun' "what follows from an op that is not there"
refused 's/^  cumprod  /  lrn      /' 'lrn is of family local' "or that is of another family"
refused 's/flops=8\*x/flops=8*z/' 'has no role z' "FLOPs by a role that the op lacks"
refused 's/^  cumprod /  cumprod cummax /' 'cummax has two of fills' "a field said twice"
echo "1..$n"
