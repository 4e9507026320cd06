# translate.py -- turns a CUDA C++ file into plain C++, for the stand-in declared by device.h: what a header alone cannot do.
#
#   translate.py INSTRUCTIONS FROM TO FILE...      INSTRUCTIONS: the header whose functions ptx_NAME are the known instructions
#
# FROM/FILE becomes TO/FILE. All files in one call: to start Python takes longer than to translate a file.
#
#   kernel<<<grid, block>>>(a)             emulated_launch([=](auto... p) { kernel(p...); }, grid, block)(a)
#   __global__ void kernel(T a) {          the same, followed by EMULATED_KERNEL(a): what can be asked of it by its address alone
#   extern __shared__ T name[];            T *const name = (T *)emulated_shared;
#   asm("max.f32 %0, %1, %2;" : ...);      ptx_max_f32(y, a, b); for an unknown instruction: an error once it is run
#
# Line numbers are kept.
import os
import re
import sys

CODE = re.compile(r'''
    (?P<skip> //[^\n]* | /\*.*?\*/ | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
  | (?P<grid_constant> \bconst\s+__grid_constant__\b )
  | (?P<kernel> \b__global__\b )
  | (?P<shared> \bextern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(?P<type>(?:unsigned\s+)?[\w:]+)\s+(?P<name>\w+)\[\]; )
  | (?P<asm> \basm\b(?:\s+volatile\b)?\s*\( )
  | (?P<launch> <<< )
''', re.S | re.X)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
UNKNOWN = 'emulated_unknown("%s", __FILE__, __LINE__);'
PAIRS = {'(': ')', '[': ']', '{': '}'}


def closing(text, at):
    """Where what opens at text[at] closes."""
    open_, close, depth = text[at], PAIRS[text[at]], 0
    for i in range(at, len(text)):
        depth += (text[i] == open_) - (text[i] == close)
        if not depth:
            return i
    raise SystemExit('nothing closes ' + text[at:at + 40])


def split(text, separator):
    """At separators outside of brackets and of literals."""
    parts, depth, quoted = [''], 0, False
    for i, c in enumerate(text):
        quoted ^= c == '"' and text[i - 1] != '\\'
        depth += 0 if quoted else (c in '([{') - (c in ')]}')
        if c == separator and not depth and not quoted:
            parts.append('')
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def newlines(text):
    return ''.join(re.findall(r'(?:\\)?\n', text))


def kernel_parameters(text, at):
    """Of the kernel whose __global__ ends at text[at]: where its body begins, its parameters' names; None: it is only declared."""
    while True:
        at = text.index('(', at)
        end = closing(text, at)
        if not re.search(r'__(launch_bounds|maxnreg)__\s*$', text[:at][-40:]):
            break
        at = end
    names = [re.search(r'(\w+)$', p).group(1) for p in split(text[at + 1:end], ',') if p]
    body = re.compile(r'\s*\{').match(text, end + 1)
    return (body.end(), names) if body else None


def kernel_name(text):
    """The expression at the end of text that is launched: a name with its template's arguments, or what points to a kernel."""
    at, depth = len(text), 0
    while at:
        if text[at - 2:at] == '->':
            at -= 2
            continue
        depth += (text[at - 1] == '>') - (text[at - 1] == '<')
        if depth == 0 and not re.match(r'[\w:.\]\[<]', text[at - 1]):
            break
        at -= 1
    return text[at:]


def instruction(line, operand, known):
    """One of PTX, such as "@p add.f32 %0, %0, %3", as C++."""
    guard = re.match(r'@(!?)(\w+)\s+', line)
    line = line[guard.end():] if guard else line
    name, _, rest = line.partition(' ')
    if name == '.reg':
        type_, _, registers = rest.strip().partition(' ')
        return '%s %s;' % ('bool' if type_ == '.pred' else 'uint32_t', re.sub(r'(\w+)', r'register_\1', registers))
    function = 'ptx_' + re.sub(r'\W+', '_', name)
    if function not in known:
        return UNKNOWN % name
    rest = re.sub(r'\b([a-z]\w*)', r'register_\1', re.sub(r'[\[\]{}]|\b_, ', '', rest))
    rest = re.sub(r'%(\d+)', lambda m: operand[int(m.group(1))], rest)
    return ('if (%sregister_%s) ' % guard.groups() if guard else '') + '%s(%s);' % (function, rest)


def assembly(inside, known):
    """What stands between the parentheses of asm(): instructions : outputs : inputs : what it changes."""
    parts = split(re.sub(r'"(?:\\.|[^"\\])*"|::', lambda m: m.group() if m.group() != '::' else ': :', inside), ':')
    if LITERAL.sub('', parts[0]).strip():
        return '{ %s }' % UNKNOWN % 'what a macro composes'
    operand = []
    for part in parts[1:3]:
        operand += [' '.join(re.match(r'"[^"]*"\s*\((.*)\)$', o, re.S).group(1).split()) for o in split(part, ',') if o]
    lines = re.sub(r'^\s*\{(.*)\}\s*$', r'\1', ''.join(LITERAL.findall(parts[0]))).split(';')
    return '{ ' + ' '.join(instruction(i.strip(), operand, known) for i in lines if i.strip()) + ' }'


def translate(text, known):
    out, at = '', 0
    inserted = {}                           # text to insert, by position
    for found in iter(lambda: CODE.search(text, at), None):
        for place in sorted(p for p in inserted if p <= found.start()):
            out += text[at:place] + inserted.pop(place)
            at = place
        out += text[at:found.start()]
        at = found.end()
        kind = found.lastgroup if found.lastgroup not in ('type', 'name') else 'shared'
        if kind == 'skip':
            out += found.group()
        elif kind == 'grid_constant':
            out += 'const'
        elif kind == 'kernel':
            out += found.group()
            body = kernel_parameters(text, at)
            if body:
                inserted[body[0]] = ' EMULATED_KERNEL(%s);' % ', '.join(body[1])
        elif kind == 'shared':
            out += '%s *const %s = (%s *)emulated_shared;' % (found['type'], found['name'], found['type'])
        elif kind == 'asm':
            end = closing(text, found.end() - 1)
            semicolon = text.index(';', end)
            out += assembly(text[found.end():end], known) + newlines(text[found.start():semicolon])
            at = semicolon + 1
        elif kind == 'launch':
            name = kernel_name(out)
            stop = text.index('>>>', at)
            member = re.search(r'->|\.', name)           # evaluated now: its owner may be gone later
            thread = '[=, member = %s](auto... p) { member(p...); }' if member else '[=](auto... p) { %s(p...); }'
            out = out[:len(out) - len(name)] + 'emulated_launch(%s, %s)' % (thread % name, text[at:stop])
            at = stop + 3
    for place in sorted(inserted):
        out += text[at:place] + inserted[place]
        at = place
    return out + text[at:]


def main():
    instructions, source, to, *files = sys.argv[1:]
    with open(instructions) as f:
        known = set(re.findall(r'\b(ptx_\w+)\(', f.read()))
    for name in files:
        with open(os.path.join(source, name)) as f:
            text = translate(f.read(), known)
        target = os.path.join(to, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target + '.new', 'w') as f:
            f.write('#line 1 "%s"\n' % os.path.join(source, name) + text)
        os.replace(target + '.new', target)


main()
