"""torch_problems.py -- what torch_peer.py and torch_gpu.py share: problems of workload files, single ops and graphs, by Quern and by PyTorch."""
import os, re
import torch
import torch.nn.functional as F
from torch_calls import PEERS, fill, ints, layout_of


# ---- graphs: op by op, as a module in inference does it -----------------------------------------

def moderate(op, t):
    """After fill: numbers with which deep networks' activations remain of the size of 1."""
    for role, x in t.items():
        if (op, role) in (("conv_forward", "w"), ("matmul", "b")):
            x.mul_((2 / (x[0].numel() if role == "w" else x.shape[-2])) ** 0.5)
        elif role in ("var", "scale"):
            x.uniform_(0.5, 1.5).mul_(1 if role == "var" else 0.3)
        elif role in ("bias", "mean", "shift"):
            x.mul_(0.1)


def shuffled(a):
    """The groups of a channel shuffle, a gather by an input that bears their number: shuffle4_7."""
    return int(a["indices"][7:].split("_")[0]) if a.get("indices", "").startswith("shuffle") else 0


def inside(op, family, a, t):
    """The call of an op inside a graph; what its output is made in, y, may be left alone."""
    x, y = t.get("x"), t.get("y")
    if op == "permute":
        return lambda: x.permute(ints(a["perm"], 4))
    if op == "batch_norm_inference":
        four = [t[k].flatten() for k in ("mean", "var", "scale", "shift")]
        return lambda: F.batch_norm(x, *four, False, 0.1, float(a.get("eps", 1e-5)))
    if op == "conv_forward" and x.shape[1:] == t["w"].shape[1:] and "pad" not in a:         # the window is the image: a dense layer
        rows = lambda v: (v if layout_of(v) == torch.contiguous_format else v.permute(0, 2, 3, 1)).reshape(len(v), -1)
        return lambda: F.linear(rows(x), rows(t["w"]), t.get("bias")).view(y.shape)
    if op == "pool_average" and "window" not in a:
        return lambda: F.adaptive_avg_pool2d(x, 1)
    if shuffled(a):
        groups, last = shuffled(a), layout_of(x) == torch.channels_last
        split = (lambda v: v.permute(0, 2, 3, 1).unflatten(3, (groups, -1))) if last else lambda v: v.unflatten(1, (groups, -1))
        back = (lambda v: v.transpose(3, 4).flatten(3).permute(0, 3, 1, 2)) if last else lambda v: v.transpose(1, 2).flatten(1, 2)
        return lambda: back(split(x))
    return PEERS[family](op, a, t) if family in PEERS else None


def network(quern, line):
    """As build, of a graph of ops with one output each. What an op reads for the last time is freed, or relu writes over it."""
    view, steps = quern.inspect(line), list(quern.steps(line))
    ordered = [quern.tensor(view.value[view.pointer[i]]) for i in range(view.n_pointers)]
    inputs = {view.pointer[i]: ordered[i] for i in range(view.n_ins)}
    last = {k: n for n, step in enumerate(steps) for _, items in step[3].values() for k in items}

    def given(roles, values):
        return {r: [values[k] for k in items] if many else values[items[0]] for r, (many, items) in roles.items()}

    for op, _, a, reads, _ in steps:
        mine = given({r: (0, items) for r, (_, items) in reads.items() if items[0] in inputs}, inputs)
        if shuffled(a):
            where = mine.pop("indices")
            where.copy_(torch.arange(len(where)).view(shuffled(a), -1).T.flatten())
        fill(op, mine)
        moderate(op, mine)

    def call():
        values = dict(inputs)
        for n, (op, family, a, reads, writes) in enumerate(steps):
            (_, (out,)), = writes.values()
            t = given(reads, values)
            over = op == "relu" and last[reads["x"][1][0]] == n and reads["x"][1][0] not in inputs and t["x"]._base is None
            t["y"] = t["x"] if over else quern.tensor(view.value[out])
            result = inside(op, family, a, t)()
            values[out] = result[0] if isinstance(result, tuple) else result
            for k in {k for _, items in reads.values() for k in items if last[k] == n}:
                del values[k]
        return values[view.pointer[view.n_ins]]

    return ordered, call, ordered[view.n_ins]


# ---- problem lines ------------------------------------------------------------------------------

def problems(path):
    """Single ops, and graphs of one line."""
    for number, line in enumerate(open(path), 1):
        text, _, settings = line.split("#")[0].partition(";")
        words = ["graph"] if " | " in text else text.split()
        if not words or words[0] in ("in", "out") or (len(words) > 1 and words[1] == "="):
            continue
        name = re.search(r"name=(\S+)", settings)
        yield f"{os.path.basename(path)}:{number}", name.group(1) if name else text.strip(), text.strip(), words


def build(problem, words):
    """Tensors in execute's order, PyTorch's call on them, and the first output; None if there is no such call. What a call allocates
    lives until the next, so that it is as little in the cache as Quern's outputs are."""
    op, family, tensors = problem
    if op == "graph":
        return network(*tensors)
    t, ordered, result = tensors()
    fill(op, t)
    call = PEERS[family](op, dict(w.split("=", 1) for w in words[1:]), t) if family in PEERS else None
    kept = []

    def keeping():
        kept[:] = [call()]
        return kept[0]

    keeping.eager = getattr(call, "eager", False)                    # not to be recorded: autograd chooses its streams
    return (ordered, keeping, result) if call else None


def copy_of(theirs):
    """Of the first output of a call, if it gave tensors."""
    theirs = theirs[0] if isinstance(theirs, (tuple, list)) and theirs else theirs
    if not isinstance(theirs, torch.Tensor):
        return None
    return theirs.int_repr() if theirs.is_quantized else theirs.clone()


def apart(family, ours, theirs):
    """How far two results lie apart, as a share of the largest; empty where they are chance, or PyTorch gives none of that size."""
    if family == "random" or theirs is None or not isinstance(ours, torch.Tensor) or ours.numel() != theirs.numel():
        return ""
    ours, theirs = ours.double(), theirs.reshape(ours.shape).double()           # group norm's dims differ
    alike = (ours == theirs) | (ours.isnan() & theirs.isnan())                  # Inf less Inf is NaN
    largest = torch.where(theirs.isfinite(), theirs.abs(), 0.0).max()
    return f"{(torch.where(alike, 0.0, (ours - theirs).abs()).max() / largest).item():.0e}"
