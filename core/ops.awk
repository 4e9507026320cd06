# ops.awk -- turns the op schema (ops.def) into C. Any POSIX awk.
#
#   awk -v emit=opnum -f ops.awk ops.def    quern/opnum.h: the numbers of ops, families and roles
#   awk -v emit=pointwise -f ops.awk ops.def    quern/pointwise.def: the pointwise kinds, a line each
#   awk -v emit=args  -f ops.awk ops.def    quern/opargs.h: the arguments of calls that take many, a struct each
#   awk -v emit=table -f ops.awk ops.def    schema_table.c: qn__ops[], the schema as data
#   awk -v emit=calls -f ops.awk ops.def    calls.c: the typed calls; each is compiled against its prototype in ops.h
#   awk -v emit=core     ...                kinds/core.h: what follows from a kind, for core: rules, FLOPs
#   awk -v emit=conform  ...                kinds/conform.h: for conformance: bounds, rows, fills
#   awk -v emit=problems ...                kinds/problems.h: for tests/problems.h: random problems
#
# A mistake in ops.def is one sentence with its line on stderr, and exit status 1.

function die(sentence)
{
  printf "ops.def:%d: %s\n", NR, sentence > "/dev/stderr"
  failed = 1
  exit 1
}

# The same of what is found when all lines are read.
function die_late(sentence)
{
  printf "ops.def: %s\n", sentence > "/dev/stderr"
  failed = 1
  exit 1
}

function c_number(word)
{
  if (word == "inf") return "INFINITY"
  if (word == "-inf") return "-INFINITY"
  if (word == "-") return "0"
  return word
}

# One end of a range, as a C expression for the extreme value inside it.
function c_end(word)
{
  if (word == "") return "0x1p58"         # QN__MAX_ELEMENTS
  if (word == "<inf") return "DBL_MAX"
  if (word == ">-inf") return "-DBL_MAX"
  if (word == ">0") return "DBL_TRUE_MIN"
  if (word == "<1") return "1 - DBL_EPSILON / 2"
  if (word !~ /^-?([0-9][0-9e]*|inf)$/) die("a range cannot end at " word)
  return c_number(word)
}

# least..most in words, to end a sentence: "must be ..."
function range_text(type, least, most,    from)
{
  from = least ~ /^>/ ? "above " substr(least, 2) : "at least " least
  if (least == ">-inf" && most == "<inf") return "finite"
  if (least == "-inf" && most == "inf") return "a number or an infinity"
  if (most == "<inf") return "finite and " from
  if (most == "" || most == "inf") return from
  if (most ~ /^</) return from " and below " substr(most, 2)
  return least (type == "int" && most == least + 1 ? " or " : " to ") most
}

# Enters one role, "c?:m/y", into the tables of op number o. References to other roles are resolved once all are known.
function add_role(o, word, output,    r, mark, name)
{
  r = n_roles[o]++
  mark = index(word, ":")
  if (!mark) die("role " word " has no class")
  name = substr(word, 1, mark - 1)
  word = substr(word, mark + 1)
  role_flags[o, r] = output ? "QN_ROLE_OUTPUT" : "0"
  if (name ~ /\?$/) { role_flags[o, r] = role_flags[o, r] " | QN_ROLE_OPTIONAL"; sub(/\?$/, "", name) }
  if (name ~ /\[\]$/) { role_flags[o, r] = role_flags[o, r] " | QN_ROLE_LIST"; sub(/\[\]$/, "", name) }
  sub(/^0 \| /, "", role_flags[o, r])
  role_name[o, r] = name
  mark = index(word, "/")
  role_pair[o, r] = mark ? substr(word, mark + 1) : ""
  if (mark) word = substr(word, 1, mark - 1)
  role_class[o, r] = substr(word, 1, 1)
  role_holds[o, r] = substr(word, 2)
  if (index("fnmabitoskwqzdv", role_class[o, r]) == 0 || (mark && role_pair[o, r] == ""))
    die("role " name ": bad class " word)
  if (role_holds[o, r] != "" && role_holds[o, r] !~ /^([+]|-|0|~|[0-9]*<[a-z_]+[.]([0-9]|axis|plane)|[=^][a-z_]+[.][0-9])$/)
    die("role " name " holds what nobody knows: " role_holds[o, r])
  if (!output) n_inputs[o]++
}

function role_named(o, what,    r)
{
  for (r = 0; r < n_roles[o]; r++) if (role_name[o, r] == what) return r
  die("op " name[o] " has no role " what)
}

# What an input must hold, as initialisers of qn_role_info's fields.
function holds_fields(o, word,    kind, from, dim)
{
  if (word == "") return "QN_HOLDS_ANY, 0, 0, 0"
  if (word == "+") return "QN_HOLDS_POSITIVE, 0, 0, 0"
  if (word == "0") return "QN_HOLDS_ZERO, 0, 0, 0"
  if (word == "-") return "QN_HOLDS_SMALL, 0, 0, 0"
  if (word == "~") return "QN_HOLDS_LARGE, 0, 0, 0"
  kind = word ~ /^=/ ? "QN_HOLDS_COUNT" : word ~ /^\^/ ? "QN_HOLDS_RISING" : "QN_HOLDS_PLACE"
  from = kind == "QN_HOLDS_PLACE" ? substr(word, 1, index(word, "<") - 1) + 0 : 0
  sub(/^[0-9]*[<=^]/, "", word)
  dim = substr(word, index(word, ".") + 1)
  if (dim == "axis") dim = "QN_HOLDS_AXIS"
  if (dim == "plane") dim = "QN_HOLDS_PLANE"
  return kind ", " from ", " role_named(o, substr(word, 1, index(word, ".") - 1)) ", " dim
}

/^[ \t]*#/ || NF == 0 { next }

$1 == "family" {
  if (NF < 3) die("family NUMBER NAME text")
  family[n_families++] = $3
  family_number[$3] = $2
  group = ""
  next
}

# what follows from a kind: the family's, under its name, or an op's, under its name
n_families && !n_ops && !n_groups && /^ / {
  n_named = 0
  for (i = 1; i <= NF; i++) {
    mark = index($i, "=")
    if (!mark) { named[++n_named] = $i; continue }
    field = substr($i, 1, mark - 1)
    if (!index(" rule flops bound rows fills random ", " " field " ")) die("no field " field)
    for (k = 1; k <= n_named; k++) {
      what = named[k] == "all" ? "all " family[n_families - 1] : named[k]
      if ((what, field) in follows) die(what " has two of " field)
      follows[what, field] = substr($i, mark + 1)
      if (what !~ / /) { special[what] = NR; special_family[what] = family[n_families - 1] }
    }
  }
  next
}

$1 == "alias" {
  if (NF < 3) die("alias OP WORD...")
  for (i = 3; i <= NF; i++) { alias[n_aliases + 0] = $i; alias_line[n_aliases + 0] = NR; alias_op[n_aliases++ + 0] = $2 }
  next
}

$1 == "attrs" {
  if (NF != 3) die("attrs GROUP STRUCT")
  group = $2
  if (group in group_struct) die("attribute group " group " stands twice")
  groups[n_groups++] = group
  group_struct[group] = $3
  n_attrs[group] = 0
  next
}

$1 == "op" {
  group = ""
  if (NF < 9) die("op NUMBER NAME FAMILY GROUP FORWARD ROLES -> ROLES : text")
  if ($2 + 0 <= last_number + 0) die("op numbers must ascend")
  if ($3 in op_of) die("op " $3 " stands twice")
  if (!($4 in family_number)) die("no family " $4)
  if (!($5 in group_struct)) die("no attribute group " $5)
  if ($6 != "-" && !($6 in op_of)) die("forward op " $6 " must stand before " $3)
  last_number = $2
  o = n_ops++
  op_of[$3] = o
  number[o] = $2; name[o] = $3; op_family[o] = $4; op_group[o] = $5; forward[o] = $6
  n_roles[o] = n_inputs[o] = 0
  output = 0
  for (i = 7; i <= NF && $i != ":"; i++)
    if ($i == "->") output = 1
    else add_role(o, $i, output)
  if (n_roles[o] == n_inputs[o]) die("op " $3 " has no output")
  if (n_roles[o] > n_roles[widest]) widest = o
  text[o] = substr($0, index($0, " : ") + 3)
  gsub(/\\/, "\\\\", text[o]); gsub(/"/, "\\\"", text[o])
  # a pointwise op's first output may take any input's memory
  for (r = 0; r < n_roles[o]; r++) {
    holds[o, r] = holds_fields(o, role_holds[o, r])
    pair[o, r] = -1
    if (op_family[o] == "pointwise" && r < n_inputs[o]) pair[o, r] = n_inputs[o]
    if (role_pair[o, r] == "") continue
    for (i = n_inputs[o]; i < n_roles[o]; i++) if (role_name[o, i] == role_pair[o, r]) pair[o, r] = i
    if (pair[o, r] < 0) die("role " role_name[o, r] " is paired with " role_pair[o, r] ", which is no output")
  }
  next
}

group != "" && (NF == 4 || (NF == 5 && ($1 == "int" || $5 ~ /[.][.]/))) && $1 ~ /^(int|real|spatial|spads|rank|rpads|axes)$/ {
  a = n_attrs[group]++
  attr_type[group, a] = $1; attr_name[group, a] = $2; attr_default[group, a] = $3; attr_field[group, a] = $4
  mark = index($5, "..")
  attr_words[group, a] = mark ? "" : $5
  attr_range[group, a] = "NULL, 0, 0"
  if (mark) {
    least = substr($5, 1, mark - 1)
    most = substr($5, mark + 2)
    attr_range[group, a] = "\"" range_text($1, least, most) "\", " c_end(least) ", " c_end(most)
  }
  next
}

{ die("neither family, attrs, op nor an attribute: " $1) }

function header(what)
{
  print "/* " what " Made by core/ops.awk from core/ops.def: do not edit. */"
}

function emit_opnum(    o, r)
{
  header("opnum.h -- the immutable numbers of ops, families and roles.")
  print "#ifndef QUERN_OPNUM_H\n#define QUERN_OPNUM_H\n\nenum {"
  for (o = 0; o < n_ops; o++)
    printf "  QN_OP_%s = %d%s\n", toupper(name[o]), number[o], (o + 1 < n_ops ? "," : "")
  print "};\n\nenum {"
  for (o = 0; o < n_families; o++)
    printf "  QN_FAMILY_%s = %d%s\n", toupper(family[o]), family_number[family[o]], (o + 1 < n_families ? "," : "")
  print "};\n\nenum {"
  for (o = 0; o < n_ops; o++)
    for (r = 0; r < n_roles[o]; r++)
      printf "  QN_ROLE_%s_%s = %d%s\n", toupper(name[o]), toupper(role_name[o, r]), r,
             (o + 1 < n_ops || r + 1 < n_roles[o] ? "," : "")
  print "};\n\n#endif"
}

function emit_pointwise(    o)
{
  header("pointwise.def -- the pointwise ops: QN_POINTWISE(OP, name, number of operands).")
  for (o = 0; o < n_ops; o++)
    if (op_family[o] == "pointwise") printf "QN_POINTWISE(%s, \"%s\", %d)\n", toupper(name[o]), name[o], n_inputs[o]
  print "#undef QN_POINTWISE"
}

# The C type, number of entries and fields of an attribute.
function c_type(type) { return type == "real" ? "double" : type == "axes" ? "uint64_t" : "int64_t" }
function entries(type) { return type ~ /^s/ ? 3 : type ~ /^r(ank|pads)/ ? 8 : 1 }
function is_pads(type) { return type ~ /pads$/ }

function emit_field_check(group, a, field,    s, n)
{
  s = group_struct[group]
  n = entries(attr_type[group, a])
  printf "_Static_assert(sizeof((%s *)0)->%s == %d * sizeof(%s), \"%s.%s\");\n", s, field, n,
         c_type(attr_type[group, a]), s, field
  printf "_Static_assert(_Generic(((%s *)0)->%s%s, %s: 1, default: 0), \"%s.%s\");\n", s, field, (n > 1 ? "[0]" : ""),
         c_type(attr_type[group, a]), s, field
}

function emit_group(group,    a, s, n, i, type, field, value, list)
{
  s = group_struct[group]
  if (n_attrs[group] == 0) return
  printf "\n_Static_assert(offsetof(%s, struct_size) == 0, \"%s\");\n", s, s
  for (a = 0; a < n_attrs[group]; a++) {
    field = attr_field[group, a]
    if (is_pads(attr_type[group, a])) {
      emit_field_check(group, a, field "_before")
      emit_field_check(group, a, field "_after")
    } else
      emit_field_check(group, a, field)
  }
  printf "static const qn_attr_info attrs_%s[] = {\n", group
  for (a = 0; a < n_attrs[group]; a++) {
    type = attr_type[group, a]
    field = attr_field[group, a]
    printf "  { \"%s\", QN_ATTR_%s, offsetof(%s, %s), %s, %s, %d, %s, %s },\n", attr_name[group, a], toupper(type), s,
           is_pads(type) ? field "_before" : field, is_pads(type) ? "offsetof(" s ", " field "_after)" : "0",
           c_number(attr_default[group, a]), (attr_default[group, a] == "-"),
           attr_words[group, a] == "" ? "NULL" : "\"" attr_words[group, a] "\"", attr_range[group, a]
  }
  printf "};\nstatic const %s default_%s = {\n  .struct_size = sizeof(%s),\n", s, group, s
  for (a = 0; a < n_attrs[group]; a++) {
    type = attr_type[group, a]
    field = attr_field[group, a]
    value = c_number(attr_default[group, a])
    n = entries(type)
    list = attr_default[group, a] == "-" ? "0" : value
    for (i = 1; i < n; i++) list = list ", " (attr_default[group, a] == "-" ? i : value)
    if (n > 1) list = "{ " list " }"
    if (is_pads(type)) printf "  .%s_before = %s,\n  .%s_after = %s,\n", field, list, field, list
    else printf "  .%s = %s,\n", field, list
  }
  print "};"
}

# Does the call of op o take its tensors in a struct?
function by_struct(o) { return n_roles[o] > 8 && number[o] >= 300 }

function emit_args(    o, r, nothing, gap)
{
  printf "#ifndef QUERN_QUERN_H              "
  header("opargs.h -- the arguments of calls with more than 8 tensors, in the schema's order of roles.")
  print "#include <quern/quern.h>           /* which includes this file again */\n#elif !defined QUERN_OPARGS_H\n#define QUERN_OPARGS_H"
  for (o = 0; o < n_ops; o++) {
    if (!by_struct(o)) continue
    printf "%stypedef struct qn_%s_args {\n  uint64_t struct_size;\n", gap, name[o]
    gap = "\n"
    nothing = ""
    for (r = 0; r < n_roles[o]; r++) {
      if (r == n_inputs[o]) print "  /* outputs */"
      printf "  const qn_tensor *%s;%s\n", role_name[o, r], (role_flags[o, r] ~ /OPTIONAL/ ? "   /* may be NULL */" : "")
      nothing = nothing ", 0"
      if (role_flags[o, r] !~ /LIST/) continue
      printf "  int64_t n_%s;\n", role_name[o, r]
      nothing = nothing ", 0"
    }
    printf "} qn_%s_args;\n#define QN_%s_ARGS_INIT { sizeof(qn_%s_args)%s }\n", name[o], toupper(name[o]), name[o], nothing
  }
  print "\n#endif"
}

function emit_table(    i, o, r, g)
{
  header("schema_table.c -- the op schema as data.")
  print "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include \"core.h\""
  for (i = 0; i < n_groups; i++) emit_group(groups[i])
  print ""
  for (o = 0; o < n_ops; o++) {
    printf "static const qn_role_info roles_%s[] = {", name[o]
    for (r = 0; r < n_roles[o]; r++)
      printf "%s\n  { \"%s\", '%s', %s, %d, %s }", (r ? "," : ""), role_name[o, r], role_class[o, r], role_flags[o, r], pair[o, r], holds[o, r]
    print "\n};"
  }
  printf "\n_Static_assert(%d <= QN_MAX_ROLES, \"%s has more than QN_MAX_ROLES roles\");\n", n_roles[widest], name[widest]
  print "\nconst qn_op_info qn__ops[] = {"
  for (o = 0; o < n_ops; o++) {
    g = op_group[o]
    printf "  { sizeof(qn_op_info), \"%s\", QN_OP_%s, QN_FAMILY_%s, %s,\n", name[o], toupper(name[o]), toupper(op_family[o]),
           (forward[o] == "-" ? "0" : "QN_OP_" toupper(forward[o]))
    printf "    sizeof(qn_role_info), sizeof(qn_attr_info),\n"
    printf "    %d, %d, roles_%s, ", n_roles[o], n_inputs[o], name[o]
    if (n_attrs[g]) printf "%d, sizeof(%s), attrs_%s, &default_%s,\n", n_attrs[g], group_struct[g], g, g
    else print "0, 0, NULL, NULL,"
    printf "    \"%s\" },\n", text[o]
  }
  print "};\nconst int qn__n_ops = sizeof qn__ops / sizeof qn__ops[0];"
  print "\nconst qn__alias qn__aliases[] = {"
  for (i = 0; i < n_aliases; i++) {
    for (o = 0; o < n_ops && name[o] != alias_op[i]; o++) {}
    NR = alias_line[i]
    if (o == n_ops) die("alias of an op that is not here, " alias_op[i])
    printf "  { \"%s\", %d },\n", alias[i], o
  }
  print "};\nconst int qn__n_aliases = sizeof qn__aliases / sizeof qn__aliases[0];"
  print "\nconst uint16_t qn__op_place[QN__KINDS] = {                /* of each number: 1 + its place in qn__ops; 0: a hole */"
  for (o = 0; o < n_ops; o++) printf "  [QN_OP_%s] = %d,\n", toupper(name[o]), o + 1
  print "};"
  print "\nconst char *qn_family_name(uint32_t family)\n{\n  switch (family) {"
  for (i = 0; i < n_families; i++) printf "  case QN_FAMILY_%s: return \"%s\";\n", toupper(family[i]), family[i]
  print "  default: return \"?\";\n  }\n}"
}

function emit_call(o,    r, g, attr, of)
{
  g = op_group[o]
  attr = n_attrs[g] > 0
  printf "\nqn_status qn_%s(qn_context *ctx", name[o]
  if (attr) printf ", const %s *attr", group_struct[g]
  if (by_struct(o)) {
    of = "a."
    printf ", const qn_%s_args *args)\n{\n  qn_%s_args a;\n", name[o], name[o]
    printf "  qn_status status = qn__args_copy(\"%s\", args, &a, sizeof a);\n  if (status) return status;\n", name[o]
  } else {
    for (r = 0; r < n_roles[o]; r++) {
      printf ", const qn_tensor *%s", role_name[o, r]
      if (role_flags[o, r] ~ /LIST/) printf ", int64_t n_%s", role_name[o, r]
    }
    print ")\n{"
  }
  printf "  const qn_arg arg[] = {"
  for (r = 0; r < n_roles[o]; r++)
    if (role_flags[o, r] ~ /LIST/) printf "%s { %s%s, %sn_%s }", (r ? "," : ""), of, role_name[o, r], of, role_name[o, r]
    else printf "%s { %s%s, %s%s != NULL }", (r ? "," : ""), of, role_name[o, r], of, role_name[o, r]
  printf " };\n  const qn_op op = { QN_OP_%s, %d, %s, arg };\n", toupper(name[o]), n_roles[o], (attr ? "attr" : "NULL")
  print "  return qn_run(ctx, &op);\n}"
}

# The value of a field for op o, and the ops that share it: C's case labels.
function following(o, field)
{
  if ((name[o], field) in follows) return follows[name[o], field]
  if (("all " op_family[o], field) in follows) return follows["all " op_family[o], field]
  die_late(name[o] " has no " field ", and so has its family")
}

function group_ops(field,    o, value, k, known)
{
  n_values = 0
  for (k in cases) delete cases[k]
  for (o = 0; o < n_ops; o++) {
    value = following(o, field)
    if (field == "flops" && value ~ /[*]/) value = role_count(o, value)
    known = value in cases
    if (!known) distinct[++n_values] = value
    cases[value] = (known ? cases[value] "\n" : "") "  case QN_OP_" toupper(name[o]) ":"
  }
}

# "5*x" with the number of the role in place of its name.
function role_count(o, value,    mark, role)
{
  mark = index(value, "*")
  role = substr(value, mark + 1)
  return substr(value, 1, mark) (role == "in" ? 0 : role == "out" ? n_inputs[o] : role_named(o, role))
}

function declare(format,    i)
{
  for (i = 1; i <= n_values; i++) if (distinct[i] ~ /^[a-z_]+$/ && distinct[i] != "none") printf format "\n", distinct[i]
}

# A case for each value of the field: `call`, with the value for @, or for FLOPs a multiple of a role's elements.
function emit_switch(signature, kind, call, other,    i, text)
{
  print "\nstatic inline " signature "\n{\n  switch (" kind ") {"
  for (i = 1; i <= n_values; i++) {
    if (distinct[i] == "none") continue
    text = distinct[i] ~ /[*].*[0-9]$/ && call ~ /flops/ ? counted(distinct[i]) : call
    gsub(/@/, distinct[i], text)
    print cases[distinct[i]] "\n    " text
  }
  print "  default: " other "\n  }\n}"
}

function counted(value)
{
  return "return " substr(value, 1, index(value, "*") - 1) " * qn__role_elements(value, op, " substr(value, index(value, "*") + 1) ");"
}

function emit_core()
{
  header("kinds/core.h -- the rule and the FLOPs of each op.")
  group_ops("rule")
  declare("qn_status qn__infer_%s(const qn__problem *p);")
  emit_switch("qn_status qn__rule(const qn__problem *p)", "p->op->kind", "return qn__infer_@(p);",
              "return qn__fail(QN_INTERNAL, \"%s: it has no rule\", p->op->name);")
  print "\n/* The elements of a role; of a list, of its first tensor. */"
  print "double qn__role_elements(const qn_value *value, const qn_node *op, uint32_t role);"
  group_ops("flops")
  declare("double qn__flops_%s(const qn_value *value, const qn_node *op);")
  emit_switch("double qn__op_flops(const qn_value *value, const qn_node *op)", "op->op", "return qn__flops_@(value, op);", "return 0;")
}

function emit_conform()
{
  header("kinds/conform.h -- the bound, the rows and the fills of each op.")
  group_ops("bound")
  declare("void qc_bound_%s(struct qc_node *n, const struct qc_numerics *k);")
  emit_switch("void qc_bound_op(struct qc_node *n, const struct qc_numerics *k)", "n->op->kind", "qc_bound_@(n, k); break;", "break;")
  print ""
  group_ops("rows")
  declare("int qc_rows_%s(const struct qc_node *n, const struct qc_value *v, const char *role);")
  emit_switch("int qc_rows(const struct qc_node *n, const struct qc_value *v, const char *role)", "n->op->kind",
              "return qc_rows_@(n, v, role);", "return QC_NO_ROWS;")
  group_ops("fills")
  emit_switch("const char *qc_fills(const qn_op_info *op)", "op->kind", "return \"@\";", "return \"\";")
}

function emit_problems()
{
  header("kinds/problems.h -- the random problems of each op.")
  group_ops("random")
  emit_switch("void problem_of_kind(rng *r, problem *p)", "p->op->kind", "problem_@(r, p); break;", "break;")
}

function emit_calls(    o)
{
  header("calls.c -- the typed calls of ops.h.")
  print "#include \"language/problem.h\""
  for (o = 0; o < n_ops; o++) emit_call(o)
}

END {
  if (failed) exit 1
  for (i in special) {
    NR = special[i]
    if (!(i in op_of)) die("no op " i)
    if (op_family[op_of[i]] != special_family[i]) die(i " is of family " op_family[op_of[i]])
  }
  if (emit == "opnum") emit_opnum()
  else if (emit == "pointwise") emit_pointwise()
  else if (emit == "args") emit_args()
  else if (emit == "table") emit_table()
  else if (emit == "calls") emit_calls()
  else if (emit == "core") emit_core()
  else if (emit == "conform") emit_conform()
  else if (emit == "problems") emit_problems()
  else {
    print "ops.awk: set -v emit=opnum, args, table, calls, core, conform or problems" > "/dev/stderr"
    exit 1
  }
}
