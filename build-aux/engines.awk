# engines.awk -- what the build makes of a backend's engines.def, which describes its lines.
#
#   -v emit=make      engines.mk, for automake (by ./bootstrap): the files of each way to compile, as BACKEND_WAY; and for together.awk
#                     how these, CUDA files of one way, eight in each, are put together
#   -v emit=table     engines.c: the backend's table of lists
#   -v emit=sources   the files, one a line
#   -v emulated=1     without those that are not emulated
function fail(text) { print FILENAME ":" FNR ": " text >"/dev/stderr"; failed = 1; exit 1 }

/^#/ || !NF { next }
$1 == "table" { table = $2; symbol = $3; header = $4; next }
NF < 2 { fail($1 ": how is it compiled?") }
{
  file = $1
  part = /^ /
  condition = $3 == "if" ? $4 : ""
  sub(/,$/, "", condition)
  if (!/not emulated/) left_out = part && owner_left_out
  else if (/not emulated: ./) left_out = 1
  else fail("not emulated: why?")
  if (!part) owner_left_out = left_out
  if (left_out && emulated) next
  if (emit == "sources") print file
  if (emit == "make") {
    if (!($2 in files)) ways[++n_ways] = $2
    if (condition) conditional[$2] = conditional[$2] "if " condition "\n" "BACKEND_" $2 " += DIR/" file "\nendif\n"
    else files[$2] = files[$2] " \\\n  DIR/" file
    if (file ~ /\.cu$/) {
      unit = $2 "_" int((n_cu[$2]++) / 8)
      if (!(unit in held)) units[++n_units] = unit
      held[unit] = held[unit] " " file
    }
  }
  if (emit == "table" && !part) {
    name = file
    sub(/.*\//, "", name)
    sub(/\.[^.]*$/, "", name)
    name = sprintf(symbol, name)
    begin = condition ? "#ifdef " condition "\n" : ""
    end = condition ? "#endif\n" : ""
    declarations = declarations begin "extern const qn_engine_list " name ";\n" end
    rows = rows begin "  &" name ",\n" end
  }
}

END {
  if (failed) exit 1
  if (emit == "table")
    printf "/* Made from engines.def. */\n#include <stddef.h>\n#include \"%s\"\n\n%s\nconst qn_engine_list *const %s[] = {\n%s  NULL\n};\n",
      header, declarations, table, rows
  if (emit == "make") {
    dir = FILENAME
    sub(/\/[^\/]*$/, "", dir)
    sub(/^.*backends\//, "backends/", dir)
    backend = dir
    sub(/.*\//, "", backend)
    print "# Made from engines.def."
    for (i = 1; i <= n_ways; i++) {
      text = "BACKEND_" ways[i] " =" files[ways[i]] "\n" conditional[ways[i]]
      gsub(/BACKEND/, backend, text)
      gsub(/DIR/, dir, text)
      printf "%s", text
    }
    for (i = 1; i <= n_units; i++) {
      unit = units[i]
      together = together " \\\n  " dir "/together/" unit ".cu"
      print backend "_together_" unit " =" held[unit]
      gsub(/ /, " " dir "/", held[unit])
      print dir "/together/" unit ".cu:" held[unit]
    }
    if (together) print backend "_together =" together
  }
}
