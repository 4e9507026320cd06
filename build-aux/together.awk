# together.awk -- writes one CUDA file that holds many, each within a namespace of its own: what every file begins with, the headers of CUDA
# and of C++, takes the compiler longer than most of our files, and so it is read once (--enable-quick-cuda).
#
#   awk -v root=FOLDER -f together.awk FILE... >UNIT.cu     FOLDER is in the compiler's path of headers; FILEs are relative to it
#
# Headers of C, *.h, come first, outside of the namespaces: they have the types of what files share. Of *.cuh each file gets a copy, as it
# would alone, and of kit's *.cu whose functions such a header declares. A definition at the margin whose name begins with cuda_ is one
# that a header of C declares, extern "C". Macros end with their file.
BEGIN {
  for (i = 1; i < ARGC; i++) {
    name = ARGV[i]
    gsub(/[^a-zA-Z0-9_]/, "_", name)
    text = text "namespace in_" name " {\n"
    split("", seen)
    split("", macros)
    split("", parts)
    expand(ARGV[i])
    for (part in parts) if (!(part in seen)) expand(part)
    for (macro in macros) text = text "#undef " macro "\n"
    text = text "}\n"
  }
  printf "%s%s", headers, text
  exit failed
}

function folder(file) { return sub(/[^\/]*$/, "", file) ? file : "" }
function exists(file,   line) { line = (getline line <(root "/" file)) >= 0; close(root "/" file); return line }

function expand(file,   line, number, name, status, end)
{
  seen[file]
  text = text "#line 1 \"" root "/" file "\"\n"
  while ((status = (getline line <(root "/" file))) > 0) {
    number++
    if (line ~ /^# *pragma once/) line = ""
    else if (line ~ /^# *include/ && line !~ /\.def[>"]/) {
      split(line, name, /[<>"]/)
      if (line ~ /"/) name[2] = exists(folder(file) name[2]) ? folder(file) name[2] : name[2]
      if (line ~ /\.cuh"/) {
        if (!(name[2] in seen)) {
          expand(name[2])
          sub(/h$/, "", name[2])
          if (name[2] ~ /^kit\// && exists(name[2])) parts[name[2]]
          text = text "#line " number + 1 " \"" root "/" file "\"\n"
          continue
        }
      } else if (!hoisted[name[2]]++) headers = headers "#include " (line ~ /"/ ? "\"" name[2] "\"" : "<" name[2] ">") "\n"
      line = ""
    } else if (line ~ /^# *define/) {
      split(line, name, /[^a-zA-Z0-9_]+/)
      macros[name[3]]
    }
    if (line ~ /^[a-z][a-z0-9_ *]* \**cuda_[a-z0-9_]+(\(|\[| =)/ && line !~ /^(static|template|using|typedef) /) {
      line = "extern \"C\" { extern " line
      end = line ~ /= {$/ ? "};$" : "^}"
      if (line ~ /(; }|};| = [^{]*;)$/) {
        line = line " }"
        end = ""
      }
    } else if (end && line ~ end) {
      line = line " }"
      end = ""
    }
    text = text line "\n"
  }
  close(root "/" file)
  if (status < 0) { print "together.awk: cannot read " root "/" file >"/dev/stderr"; failed = 1 }
}
