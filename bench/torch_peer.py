#!/usr/bin/env python3
"""torch_peer.py -- PyTorch's CPU kernels beside Quern's, in turn on the same data in one run.

  torch_peer.py [--lib libquern.so] [--threads 2] [--seconds 0.5] [--filter TEXT] FILE.q ...

Reads the single-op problems of workload files (f32, bf16, f16), calls PyTorch's out= variants where it has them (so
that it too allocates nothing), and prints medians, their ratio (above 1: Quern is faster) and the geometric means. Problems that
PyTorch has no one call for are skipped and counted. QUERN_BACKEND and the other settings say which engines run."""
import argparse, ctypes, math, os, re, statistics, sys, time
import torch

DTYPE = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
aten = torch.ops.aten


# ---- Quern, by its C interface ----------------------------------------------------------------

class Quern:
    def __init__(self, path, threads):
        self.lib = lib = ctypes.CDLL(path)
        lib.qn_last_error.restype = ctypes.c_char_p
        lib.qn_plan_print.restype = ctypes.c_size_t
        lib.qn_graph_print.restype = ctypes.c_size_t
        self.ctx = ctypes.c_void_p()
        options = (ctypes.c_char_p * 2)(b"threads=%d" % threads, None)
        self.check(lib.qn_context_create(options, ctypes.byref(self.ctx)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.qn_last_error().decode())

    def plan(self, line):
        graph, plan = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.lib.qn_graph_parse(line.encode(), ctypes.byref(graph)))
        try:
            text = ctypes.create_string_buffer(4096)
            self.lib.qn_graph_print(graph, text, ctypes.c_size_t(4096))
            self.check(self.lib.qn_plan_create(self.ctx, graph, ctypes.byref(plan)))
        finally:
            self.lib.qn_graph_destroy(graph)
        name = ctypes.create_string_buffer(4096)
        self.lib.qn_plan_print(plan, name, ctypes.c_size_t(4096))
        return plan, name.value.decode().split(" ")[0]

    def record(self, plan, sets):
        """A recording of one execution on each set of tensors."""
        pointers = [(ctypes.c_void_p * len(s))(*[t.data_ptr() for t in s]) for s in sets]
        for p in pointers:
            self.check(self.lib.qn_plan_execute(self.ctx, plan, p))
        recording = ctypes.c_void_p()
        self.check(self.lib.qn_record_begin(self.ctx))
        for p in pointers:
            self.check(self.lib.qn_plan_execute(self.ctx, plan, p))
        self.check(self.lib.qn_record_end(self.ctx, ctypes.byref(recording)))
        return recording

    def replay(self, recording):
        self.check(self.lib.qn_recording_replay(self.ctx, recording))


# ---- problem lines ------------------------------------------------------------------------------

def tensor(text):
    """"bf16/64x64x56x56/nhwc" as an uninitialised tensor."""
    dtype, dims, layout = (text.split("/") + ["", ""])[:3]
    dims = [int(d) for d in dims.split("x")] if dims else []
    if layout == "nhwc":
        return torch.empty(dims, dtype=DTYPE[dtype]).to(memory_format=torch.channels_last)
    if layout == "t":
        return torch.empty(dims[:-2] + dims[:-3:-1], dtype=DTYPE[dtype]).transpose(-1, -2)
    if layout not in ("", "nchw"):
        raise KeyError(layout)
    return torch.empty(dims, dtype=DTYPE[dtype])


def fill(t):
    if t.dtype.is_floating_point:
        t.normal_()
    elif t.dtype == torch.bool:
        t.random_(0, 2)
    else:
        t.random_(0, 4)
    return t


def ints(text, n):
    values = [int(v) for v in text.split(",")]
    return values * n if len(values) == 1 else values


# ---- the same ops by PyTorch: f(attributes, inputs, output) gives a call without arguments ----------

UNARY = {n: n for n in "relu sigmoid tanh exp log sqrt rsqrt erf abs sin cos floor ceil reciprocal neg hardswish softplus mish elu "
                       "leaky_relu silu gelu".split()}
BINARY = dict(add="add", sub="sub", mul="mul", div="div", max="maximum", min="minimum", pow="pow", lt="lt")


def dims_of(a, x):
    return [int(d) for d in a["axis"].split(",")] if "axis" in a else list(range(x.dim()))


def pool_arguments(a, x):
    n = x.dim() - 2
    window = ints(a["window"], n) if "window" in a else list(x.shape[2:])
    stride = ints(a["stride"], n) if "stride" in a else window
    pad = ints(a["pad"], n) if "pad" in a else [0] * n
    return window, stride, pad


def peer(op, a, x, y):
    if op in UNARY and op != "gelu":
        packet = getattr(aten, UNARY[op])
        if "out" in packet.overloads():
            return lambda: packet.out(x[0], out=y)
        return lambda: packet(x[0])
    if op == "gelu":
        return lambda: aten.gelu.out(x[0], out=y)
    if op == "gelu_tanh":
        return lambda: aten.gelu.out(x[0], approximate="tanh", out=y)
    if op in BINARY and len(x) == 2:
        f = getattr(torch, BINARY[op])
        return lambda: f(x[0], x[1], out=y)
    if op == "clip":
        return lambda: torch.clamp(x[0], float(a["min"]), float(a["max"]), out=y)
    if op == "select":
        return lambda: torch.where(x[0], x[1], x[2], out=y)
    if op in ("cast", "copy"):
        return lambda: y.copy_(x[0])
    if op == "relu_backward":
        return lambda: aten.threshold_backward.grad_input(x[0], x[1], 0, grad_input=y)
    if op == "gelu_backward":
        return lambda: aten.gelu_backward.grad_input(x[0], x[1], grad_input=y)
    if op == "silu_backward":
        return lambda: aten.silu_backward.grad_input(x[0], x[1], grad_input=y)
    if op in ("softmax", "log_softmax"):
        f = getattr(aten, "_" + op)
        axis = int(a.get("axis", -1))
        return lambda: f.out(x[0], axis, False, out=y)
    if op in ("softmax_backward", "log_softmax_backward"):
        axis = int(a.get("axis", -1))
        if op == "softmax_backward":
            return lambda: aten._softmax_backward_data.out(x[1], x[0], axis, x[0].dtype, grad_input=y)
        return lambda: aten._log_softmax_backward_data.out(x[1], x[0], axis, x[0].dtype, out=y)
    if op == "pool_average" and x[0].dim() == 4:
        window, stride, pad = pool_arguments(a, x[0])
        return lambda: aten.avg_pool2d.out(x[0], window, stride, pad, out=y)
    if op == "pool_max" and x[0].dim() == 4:
        window, stride, pad = pool_arguments(a, x[0])
        where = torch.empty(y.shape, dtype=torch.int64).to(memory_format=torch.channels_last) if y.is_contiguous(
            memory_format=torch.channels_last) and not y.is_contiguous() else torch.empty(y.shape, dtype=torch.int64)
        return lambda: aten.max_pool2d_with_indices.out(x[0], window, stride, pad, out=y, indices=where)
    if op == "reduce_sum":
        return lambda: torch.sum(x[0], dims_of(a, x[0]), keepdim=True, out=y)
    if op == "reduce_mean":
        return lambda: torch.mean(x[0], dims_of(a, x[0]), keepdim=True, out=y)
    if op in ("reduce_max", "reduce_min"):
        f = aten.amax if op == "reduce_max" else aten.amin
        return lambda: f.out(x[0], dims_of(a, x[0]), True, out=y)
    if op in ("reduce_norm1", "reduce_norm2", "reduce_amax"):
        order = {"reduce_norm1": 1, "reduce_norm2": 2, "reduce_amax": math.inf}[op]
        return lambda: torch.linalg.vector_norm(x[0], order, dims_of(a, x[0]), keepdim=True, out=y)
    if op in ("argmax", "argmin") and "axis" in a and y.dtype == torch.int64:
        f = getattr(torch, op)
        return lambda: f(x[0], int(a["axis"]), keepdim=True, out=y)
    if op == "permute":
        perm = [int(p) for p in a["perm"].split(",")]
        return lambda: y.copy_(x[0].permute(perm))
    if op == "matmul" and len(x) == 2:
        return lambda: torch.matmul(x[0], x[1], out=y)
    return None


OUTPUT = re.compile(r"(y|dx|dw)$")


def output_of(op, a, x):
    """The output's tensor where the line leaves it out."""
    like = x[0]
    if op.startswith("reduce") or op.startswith("arg"):
        dims = dims_of(a, like)
        return like.new_empty([1 if i in dims else n for i, n in enumerate(like.shape)])
    if op in ("pool_max", "pool_average"):
        window, stride, pad = pool_arguments(a, like)
        dims = list(like.shape[:2]) + [(n + 2 * p - w) // s + 1 for n, w, s, p in zip(like.shape[2:], window, stride, pad)]
        last = not like.is_contiguous()
        return like.new_empty(dims).to(memory_format=torch.channels_last) if last else like.new_empty(dims)
    if op == "permute":
        return like.new_empty([like.shape[int(p)] for p in a["perm"].split(",")])
    if op == "matmul":
        return like.new_empty(list(like.shape[:-1]) + [x[1].shape[-1]])
    if op == "lt":
        return torch.empty(like.shape, dtype=torch.bool)
    return torch.empty_like(x[1] if op == "select" else like)


def problems(path):
    for number, line in enumerate(open(path), 1):
        text, _, settings = line.split("#")[0].partition(";")
        words = text.split()
        if not words or words[0] in ("in", "out") or (len(words) > 1 and words[1] == "="):
            continue
        name = re.search(r"name=(\S+)", settings)
        yield f"{os.path.basename(path)}:{number}", name.group(1) if name else text.strip(), text.strip(), words


def build(words):
    """One set of tensors in the order of their roles, and PyTorch's call on it; None if there is no such call."""
    op, a, x, y, names = words[0], {}, [], None, []
    for word in words[1:]:
        key, _, value = word.partition("=")
        if not re.match(r"(f64|f32|f16|bf16|i8|u8|i32|i64|bool)\b", value):
            if re.match(r"[-0-9.]", value) and key in ("a", "b", "c"):
                return None                                     # a number as an operand: no tensor to hand to PyTorch
            a[key] = value
        elif OUTPUT.match(key) and not op.endswith("softmax_backward"):
            y = value
        elif key == "indices":
            return None
        else:
            x.append(fill(tensor(value)))
            names.append(key)
    if op in ("log", "sqrt", "rsqrt", "pow"):
        x[0].abs_()
    if not x:
        return None
    if y and "/" not in y:
        like = output_of(op, a, x)
        y = torch.empty(like.shape, dtype=DTYPE[y])
    else:
        y = tensor(y) if y else output_of(op, a, x)
    call = peer(op, a, x, y)
    return (x + [y], call) if call else None


# ---- measuring --------------------------------------------------------------------------------------

def seconds_of(f, n):
    """Of one call among n. PyTorch brings an OpenMP of its own: first the other side's threads must fall asleep."""
    time.sleep(0.004)
    f()
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) / n


def measure(quern, line, words, seconds, cache=200e6):
    first = build(words)
    if not first:
        return None
    size = sum(t.numel() * t.element_size() for t in first[0])
    sets = [first] + [build(words) for _ in range(max(1, min(23, int(cache / max(size, 1)))))]
    plan, engine = quern.plan(line)
    recording = quern.record(plan, [s[0] for s in sets])

    def ours():
        quern.replay(recording)

    def theirs():
        for _, call in sets:
            call()

    ours(), theirs()
    n = max(1, int(2e-3 / max(seconds_of(ours, 1), 1e-9))), max(1, int(2e-3 / max(seconds_of(theirs, 1), 1e-9)))
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        if len(samples) & 1:
            b = seconds_of(theirs, n[1])
            a = seconds_of(ours, n[0])
        else:
            a = seconds_of(ours, n[0])
            b = seconds_of(theirs, n[1])
        samples.append((a, b))
    quern.lib.qn_recording_destroy(recording)
    quern.lib.qn_plan_destroy(plan)
    k = len(sets)
    return (engine, statistics.median(a for a, _ in samples) / k, statistics.median(b for _, b in samples) / k,
            statistics.median(b / a for a, b in samples))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default=os.path.join(here, "../build/.libs/libquern.so"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--filter", default="")
    parser.add_argument("files", nargs="+")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_grad_enabled(False)
    quern, groups, skipped = Quern(o.lib, o.threads), {}, 0
    print(f"{'problem':40} {'engine':36} {'Quern us':>10} {'PyTorch us':>10}  speed   (PyTorch {torch.__version__}, {o.threads} threads)")
    for path in o.files:
        for _, name, line, words in problems(path):
            if o.filter not in name and o.filter not in line:
                continue
            try:
                r = measure(quern, line, words, o.seconds)
            except (RuntimeError, KeyError) as e:
                print(f"{name:40} {str(e)[:100]}")
                r = None
            if not r:
                skipped += 1
                continue
            print(f"{name:40} {r[0]:36} {r[1] * 1e6:10.1f} {r[2] * 1e6:10.1f} {r[3]:6.2f}x", flush=True)
            groups.setdefault(os.path.basename(path), []).append(r[3])
    for group, ratios in groups.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{group:24} {len(ratios):3} problems   geometric mean {mean:5.2f}x   least {min(ratios):5.2f}x")
    if skipped:
        print(f"{skipped} problems left out: PyTorch has no one call for them, or somebody refused")


if __name__ == "__main__":
    sys.exit(main())
