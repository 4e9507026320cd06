#!/bin/sh
# floors.sh -- core's folders are floors: running, watching, tuning, planning, loading, ranks, checking, settings, language, and below them
# core's own files. A file uses functions and variables of its own floor and of lower ones; core/calls.c uses all. TAP: one point per file,
# of the symbols of its object.

set -u
nm=${NM-nm}
object=$(find "${top_builddir-.}/core" -name 'libcore_la-status.o' | sort | tail -n 1)
if [ -z "$object" ] || ! "$nm" "$object" >/dev/null 2>&1; then
  echo "1..0 # SKIP no nm is here that reads this build's objects"
  exit 0
fi
for source in "${top_srcdir-.}"/core/*.c "${top_srcdir-.}"/core/*/*.c "${top_builddir-.}"/core/*.c; do
  file=${source##*/core/}
  name=$(basename "$file" .c) dir=$(dirname "${top_builddir-.}/core/$file")
  for object in "$dir/.libs/libcore_la-$name.o" "$dir/libcore_la-$name.o"; do
    if [ -e "$object" ]; then
      "$nm" "$object" | awk -v file="$file" '
        NF == 2 && $1 == "U" { print file, "uses", $2 }
        NF == 3 && $2 ~ /[TDBRC]/ { print file, "has", $3 }'
      break
    fi
  done
done | sort -u | awk '
  function floor_of(file) {
    if (file ~ /^schema_table/) return floor["language"]
    if (file ~ /^calls/) return floors + 1
    return floor[substr(file, 1, index(file, "/") - 1)] + 0
  }
  BEGIN {
    floors = split("language settings checking ranks loading planning tuning watching running", room, " ")
    for (i = 1; i <= floors; i++) floor[room[i]] = i
  }
  !($1 in seen) { seen[$1]; name[++files] = $1 }
  $2 == "has" { owner[$3] = $1 }
  $2 == "uses" { user[++uses] = $1; used[uses] = $3 }
  END {
    for (i = 1; i <= uses; i++) {
      to = owner[used[i]]
      if (to != "" && floor_of(to) > floor_of(user[i])) up[user[i]] = up[user[i]] "# " user[i] " uses " used[i] " of " to "\n"
    }
    for (i = 1; i <= files; i++) {
      bad = name[i] in up
      failed = failed || bad
      printf "%sok %d - %s uses nothing of a higher floor\n%s", bad ? "not " : "", i, name[i], bad ? up[name[i]] : ""
    }
    print "1.." files + 0
    exit failed || files < 40
  }'
