# man.awk -- a manual page from a program's --help as argp prints it. Any POSIX awk.
#
#   ARGP_HELP_FMT=rmargin=79 PROGRAM --help | awk -v version=0.1.0 -f man.awk >PROGRAM.1
#
# --help is the usage; what the program does; options, each with its text from column 30 on; paragraphs. A line that ends with a colon
# above an indented list, and a paragraph "Exit status: ...", become sections.

function roff(s,    out, i, c)
{
  out = s ~ /^[.']/ ? "\\&" : ""
  for (i = 1; i <= length(s); i++) {
    c = substr(s, i, 1)
    out = out (c == "\\" ? "\\e" : c == "-" ? "\\-" : c)
  }
  return out
}
function section(name) { print ".SH " toupper(name) }
function end_list() { if (listing) print ".fi"; listing = 0 }

NR == 1 {
  if ($1 != "Usage:") { print "man.awk: this is no --help: " $0 > "/dev/stderr"; exit 1 }
  name = $2
  synopsis = substr($0, index($0, name) + length(name) + 1)
  next
}
!described {
  if ($0 != "") { what = what (what == "" ? "" : " ") $0; next }
  described = 1
  short = what
  sub(/[.;,].*/, "", short)
  print ".TH " roff(toupper(name)) " 1 \"\" \"Quern " version "\" \"Quern\""
  section("name")
  print roff(name) " \\- " roff(tolower(substr(short, 1, 1)) substr(short, 2))
  section("synopsis")
  print ".B " roff(name) "\n" roff(synopsis)
  section("description")
  print roff(what)
  section("options")
  next
}

/^Mandatory or optional arguments/ { dropping = 1 }
/^$/ { if (!dropping) { end_list(); pending = 1 } dropping = 0; next }
dropping { next }

/^                             / { print roff(substr($0, 30)); next }

# An option: its text begins in column 30, after three spaces, or on the next line.
/^ +-/ {
  text = length($0) > 29 && substr($0, 28, 2) == "  " ? substr($0, 30) : ""
  option = text == "" ? $0 : substr($0, 1, 27)
  gsub(/^ +| +$/, "", option)
  if (text == "" && match(option, /   /)) { text = substr(option, RSTART + 3); option = substr(option, 1, RSTART - 1) }
  print ".TP\n.B " roff(option)
  if (text != "") print roff(text)
  pending = 0
  next
}
/:$/ && !/[.;] / {
  end_list()
  section(substr($0, 1, length($0) - 1))
  print ".nf"
  listing = 1
  pending = 0
  next
}
/^Exit status: / {
  section("exit status")
  print roff(substr($0, 14))
  pending = 0
  next
}
{
  if (pending) print (notes++ ? ".PP" : ".SH NOTES")
  pending = 0
  print roff($0)
}

END {
  if (!described) exit 1
  end_list()
  section("see also")
  print ".BR quern\\-info (1),\n.BR quern\\-conform (1),\n.BR quern\\-bench (1)"
  print ".PP\n\"quern\\-info config\" lists the environment variables that all of them obey; the README and its docs are installed beside it."
}
