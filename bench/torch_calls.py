"""torch_calls.py -- what torch_peer.py and torch_gpu.py share: problems of workload files on tensors of PyTorch, by Quern and by PyTorch's calls."""
import ctypes, math, os, re, warnings
import torch
import torch.nn.functional as F

aten = torch.ops.aten
warnings.filterwarnings("ignore", "torch.quantize_per_tensor")          # deprecated, but there is no other


# ---- Quern, by its C interface ----------------------------------------------------------------

class Role(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("class_", ctypes.c_char), ("flags", ctypes.c_uint32), ("paired", ctypes.c_int32),
                ("holds", ctypes.c_uint8), ("from_", ctypes.c_uint8), ("of", ctypes.c_int8), ("dim", ctypes.c_int8)]


class Op(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("name", ctypes.c_char_p), ("kind", ctypes.c_uint32), ("family", ctypes.c_uint32),
                ("forward", ctypes.c_uint32), ("role_info_size", ctypes.c_uint32), ("attr_info_size", ctypes.c_uint32),
                ("n_roles", ctypes.c_uint32), ("n_inputs", ctypes.c_uint32), ("roles", ctypes.c_void_p)]

    def role(self, i):
        return Role.from_address(self.roles + i * self.role_info_size)


class Value(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_uint32), ("rank", ctypes.c_int32), ("dim", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8),
                ("align", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("producer", ctypes.c_int32), ("last_user", ctypes.c_int32),
                ("over", ctypes.c_int32), ("scalar", ctypes.c_uint32)]


class Node(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("family", ctypes.c_uint32), ("attr", ctypes.c_void_p), ("n_roles", ctypes.c_uint32),
                ("n_inputs", ctypes.c_uint32), ("first", ctypes.POINTER(ctypes.c_int32)), ("arg", ctypes.POINTER(ctypes.c_int32))]


class View(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("n_ops", ctypes.c_uint32), ("n_values", ctypes.c_uint32),
                ("n_pointers", ctypes.c_uint32), ("n_ins", ctypes.c_uint32), ("op", ctypes.POINTER(Node)),
                ("value", ctypes.POINTER(Value)), ("name", ctypes.c_void_p), ("literal", ctypes.POINTER(ctypes.c_double)),
                ("pointer", ctypes.POINTER(ctypes.c_int32))]


DTYPE = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "e4m3": torch.float8_e4m3fn,
         "e5m2": torch.float8_e5m2}


class Quern:
    def __init__(self, path, threads):
        self.lib = lib = ctypes.CDLL(path)
        lib.qn_last_error.restype = lib.qn_dtype_name.restype = lib.qn_family_name.restype = ctypes.c_char_p
        lib.qn_plan_print.restype = ctypes.c_size_t
        lib.qn_graph_inspect.restype = ctypes.POINTER(View)
        lib.qn_op_find.restype = ctypes.POINTER(Op)
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
            self.check(self.lib.qn_plan_create(self.ctx, graph, ctypes.byref(plan)))
        finally:
            self.lib.qn_graph_destroy(graph)
        name = ctypes.create_string_buffer(4096)
        self.lib.qn_plan_print(plan, name, ctypes.c_size_t(4096))
        parts = self.lib.qn_plan_parts(plan)
        return plan, name.value.decode().split(" ")[0] if parts == 1 else f"{parts} parts"

    def inspect(self, line):
        graph = ctypes.c_void_p()
        self.check(self.lib.qn_graph_parse(line.encode(), ctypes.byref(graph)))
        return self.lib.qn_graph_inspect(graph).contents

    def tensor(self, value):
        dtype = DTYPE[self.lib.qn_dtype_name(ctypes.c_uint32(value.dtype)).decode()]
        return torch.empty_strided(value.dim[:value.rank], value.stride[:value.rank], dtype=dtype)

    def steps(self, line):
        """Of a graph: each op's name, family, attributes as words, and by role, of what it reads and of what it writes, whether it is a
        list and the numbers of its values."""
        view = self.inspect(line)
        texts = [part.split(" = ")[1].split()[1:] for part in line.split(" | ") if " = " in part]
        for k, a in enumerate(dict(w.split("=", 1) for w in words) for words in texts):
            node, op = view.op[k], self.lib.qn_op_find(view.op[k].op).contents
            sides = [{op.role(r).name.decode(): (op.role(r).flags & 2, node.arg[node.first[r]:node.first[r + 1]]) for r in roles
                      if node.first[r] < node.first[r + 1]} for roles in (range(op.n_inputs), range(op.n_inputs, op.n_roles))]
            yield op.name.decode(), self.lib.qn_family_name(ctypes.c_uint32(op.family)).decode(), a, *sides

    def problem(self, line):
        """The op's name, its family, and a function that makes tensors: by role (of a list role a list), in execute's order, and the
        first output. Of a graph: "graph" twice, and a function that does as build."""
        if " | " in line:
            return "graph", "graph", lambda: network(self, line)
        view = self.inspect(line)
        node, op = view.op[0], self.lib.qn_op_find(view.op[0].op).contents

        def tensors():
            made, roles = {}, {}
            for k in range(view.n_values):
                v = view.value[k]
                if v.flags & 1:                                     # a literal of the line
                    made[k] = view.literal[k]
                elif v.over >= 0:
                    made[k] = made[v.over]
                else:
                    made[k] = self.tensor(v)
            for r in range(op.n_roles):
                items = [made[node.arg[i]] for i in range(node.first[r], node.first[r + 1])]
                if items:
                    roles[op.role(r).name.decode()] = items if op.role(r).flags & 2 else items[0]
            return roles, [made[view.pointer[i]] for i in range(view.n_pointers)], roles.get(op.role(op.n_inputs).name.decode())

        return op.name.decode(), self.lib.qn_family_name(ctypes.c_uint32(op.family)).decode(), tensors

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


# ---- what inputs hold ---------------------------------------------------------------------------

def fill(op, t):
    """Places that exist, lengths that are whole, variances above 0, sums that are x's; all else as chance has it."""
    for role, items in t.items():
        for x in items if isinstance(items, list) else [items]:
            if not isinstance(x, torch.Tensor):
                continue
            if role == "x_lengths":
                x.fill_(t["x"].shape[0])
            elif role == "label_lengths":
                x.fill_(t["labels"].shape[1])
            elif role == "labels":
                x.random_(1, t["x"].shape[-1])
            elif role == "lse" and op.endswith("_backward") and "x" in t:
                x.copy_(t["x"].float().logsumexp(-1, True))
            elif role == "count" and "labels" in t:
                x.fill_(t["labels"].numel())
            elif role in ("step", "scale", "count") and x.dim() == 0:
                x.fill_(1)
            elif role == "scale" and op in ("quantize", "dequantize"):
                x.uniform_(0.01, 0.05)
            elif role == "grid" and op.startswith("grid_sample"):           # an image rotated and reduced
                turned = torch.tensor([[1.1, -0.2, 0.1], [0.2, 1.1, 0]]).expand(len(x), 2, 3)
                x.copy_(F.affine_grid(turned, [len(x), 1, *x.shape[1:-1]], align_corners=False) if x.dim() == 4 else torch.rand(x.shape) * 2 - 1)
            elif role == "indices" and op in ("gather", "scatter_add"):
                x.random_(0, t["x" if op == "gather" else "dx"].shape[0])
            elif x.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
                x.copy_(torch.randn(x.shape))
            elif not x.dtype.is_floating_point:
                x.random_(0, 2 if x.dtype == torch.bool else 4)
            else:
                x.normal_()
                if op.startswith("rnn_") and role in ("w", "r", "projection"):
                    x.mul_(x.shape[1] ** -0.5)
                elif op == "rnn_backward" and role == "gates":
                    x.sigmoid_()
                elif role in ("v", "var", "rstd") or op in ("log", "sqrt", "rsqrt", "pow"):
                    x.abs_()


def ints(text, n):
    values = [int(v) for v in text.split(",")]
    return values * n if len(values) == 1 else values


def pairs(text, n):
    """pad=1,2:0 as [(1, 1), (2, 0)]"""
    values = [tuple(int(k) for k in (v.split(":") * 2)[:2]) for v in text.split(",")]
    return values * n if len(values) == 1 else values


# ---- the same ops by PyTorch: functions that take attributes and tensors by role and return a call without arguments ----
#
# Only out= variants that kernels write to directly. The others, generated by PyTorch, compute and then copy: those are not called.

UNARY = {n: n for n in "relu sigmoid tanh exp log sqrt rsqrt erf abs sin cos floor ceil trunc reciprocal neg hardswish softplus mish elu "
                       "leaky_relu silu log1p expm1 exp2 log2 tan asin acos atan sinh cosh asinh acosh atanh".split()}
BINARY = dict(add="add", sub="sub", mul="mul", div="div", max="maximum", min="minimum", pow="pow", lt="lt", mod="remainder", fmod="fmod")


def dims_of(a, x):
    return [int(d) for d in a["axis"].split(",")] if "axis" in a else list(range(x.dim()))


def pool_arguments(a, x):
    n = x.dim() - 2
    window = ints(a["window"], n) if "window" in a else list(x.shape[2:])
    stride = ints(a["stride"], n) if "stride" in a else window
    pad = ints(a["pad"], n) if "pad" in a else [0] * n
    return window, stride, pad


def pointwise(op, a, t):
    x, y = t.get("x"), t.get("y")
    if op in UNARY:
        f, has = getattr(aten, UNARY[op]), torch._C._dispatch_has_kernel_for_dispatch_key
        return (lambda: f.out(x, out=y)) if "out" in f.overloads() and has(f"aten::{UNARY[op]}.out", "CPU") else lambda: f(x)
    if op in ("gelu", "gelu_tanh"):
        return lambda: aten.gelu.out(x, approximate="tanh" if op == "gelu_tanh" else "none", out=y)
    if op in BINARY and isinstance(t["a"], torch.Tensor) and isinstance(t["b"], torch.Tensor):
        f = getattr(torch, BINARY[op])
        return lambda: f(t["a"], t["b"], out=y)
    if op == "clip":
        return lambda: torch.clamp(x, float(a["min"]), float(a["max"]), out=y)
    if op == "select" and isinstance(t["a"], torch.Tensor) and isinstance(t["b"], torch.Tensor):
        return lambda: torch.where(t["c"], t["a"], t["b"], out=y)
    if op == "cast":
        return lambda: y.copy_(x)
    if op == "relu_backward":
        return lambda: aten.threshold_backward.grad_input(t["dy"], x, 0, grad_input=t["dx"])
    if op in ("gelu_backward", "silu_backward"):
        f = getattr(aten, op).grad_input
        return lambda: f(t["dy"], x, grad_input=t["dx"])


def softmax(op, a, t):
    axis, name = int(a.get("axis", -1)), op.replace("_backward", "")
    if name == op:
        f = getattr(aten, "_" + op).out
        return lambda: f(t["x"], axis, False, out=t["y"])
    if op == "softmax_backward":
        return lambda: aten._softmax_backward_data.out(t["dy"], t["y"], axis, t["y"].dtype, grad_input=t["dx"])
    return lambda: aten._log_softmax_backward_data.out(t["dy"], t["y"], axis, t["y"].dtype, out=t["dx"])


def pooling(op, a, t):
    x, dy, y, dx = (t.get(k) for k in ("x", "dy", "y", "dx"))
    whole = x if x is not None else dx
    if whole.dim() != 4 or "dilation" in a:
        return None
    size = ints(a["size"], 2) if "size" in a else None
    window, stride, pad = pool_arguments(a, whole)
    ceil, padding_counts = a.get("ceil_mode") == "1", a.get("include_pad") != "0"
    where = torch.empty_like(y if y is not None else dy, dtype=torch.int64)
    if op == "pool_average":
        if x.is_cuda and window == stride and pad == [0, 0] and not ceil:       # as the anchor list has it
            return lambda: aten.adaptive_avg_pool2d.out(x, list(y.shape[2:]), out=y)
        return lambda: aten.avg_pool2d.out(x, window, stride, pad, ceil, padding_counts, out=y)
    if op == "pool_average_backward":
        return lambda: aten.avg_pool2d_backward.grad_input(dy, dx, window, stride, pad, ceil, padding_counts, None, grad_input=dx)
    if op == "pool_max":
        return lambda: aten.max_pool2d_with_indices.out(x, window, stride, pad, [1, 1], ceil, out=y, indices=where)
    if op == "pool_max_backward":
        image = x if x is not None else torch.randn(dx.shape, dtype=dx.dtype).contiguous(memory_format=layout_of(dx))
        where = aten.max_pool2d_with_indices(image, window, stride, pad, [1, 1], ceil)[1]
        if "indices" in t:
            t["indices"].copy_(taps_of(where, dx.shape[3], window, stride, pad) if t["indices"].dtype == torch.uint8 else where)
        return lambda: aten.max_pool2d_with_indices_backward.grad_input(dy, image, window, stride, pad, [1, 1], ceil, where, grad_input=dx)
    if op == "pool_adaptive_average":
        return lambda: aten.adaptive_avg_pool2d.out(x, size, out=y)
    if op == "pool_adaptive_average_backward":
        return lambda: aten._adaptive_avg_pool2d_backward(dy, dx)
    if op == "pool_adaptive_max":
        return lambda: aten.adaptive_max_pool2d.out(x, size, out=y, indices=where)
    if op == "pool_adaptive_max_backward":
        image = torch.randn(dx.shape, dtype=dx.dtype)
        where = aten.adaptive_max_pool2d(image, list(dy.shape[2:]))[1]
        t["indices"].copy_(where)
        return lambda: aten.adaptive_max_pool2d_backward.grad_input(dy, image, where, grad_input=dx)
    if ceil or pad != [0, 0]:                                       # PyTorch's lp pooling rescales a window that extends beyond x
        return None
    if op == "pool_lp":
        return lambda: F.lp_pool2d(x, float(a.get("p", 2)), window, stride)
    if op == "pool_lp_backward":                                    # by autograd, which keeps the forward's intermediates
        with torch.enable_grad():
            image = x.clone().requires_grad_()
            pooled = F.lp_pool2d(image, float(a.get("p", 2)), window, stride)
        y.copy_(pooled)
        return lambda: torch.autograd.grad(pooled, image, dy, retain_graph=True)


def taps_of(where, width, window, stride, pad):
    """Places in a plane as the taps of their windows."""
    first = [torch.arange(n) * s - p for n, s, p in zip(where.shape[2:], stride, pad)]
    return (where // width - first[0].view(-1, 1)) * window[1] + where % width - first[1]


def layout_of(x):
    return torch.channels_last if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format


def resampling(op, a, t):
    big, small = t["dy" if "dy" in t else "x"], t["dx" if "dx" in t else "y"]
    mode, grid, n = a.get("mode", "nearest"), a.get("grid", "half_pixel"), big.dim() - 2
    if n not in (2, 3) or (mode == "nearest" and grid == "align_corners") or (mode != "nearest" and grid == "asymmetric"):
        return None
    corners = [] if mode == "nearest" else [grid == "align_corners"]
    name = {("nearest", "half_pixel"): f"_upsample_nearest_exact{n}d", ("nearest", "asymmetric"): f"upsample_nearest{n}d"}.get(
        (mode, grid), {"linear": {2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}, "cubic": {2: "upsample_bicubic2d"}}.get(mode, {}).get(n))
    if not name:
        return None
    if "antialias" in a or "up" in a or "down" in a:
        return None
    if op == "resample":
        f = getattr(aten, name).out
        return lambda: f(t["x"], list(t["y"].shape[2:]), *corners, out=t["y"])
    f = getattr(aten, name + "_backward").grad_input
    return lambda: f(t["dy"], list(t["dy"].shape[2:]), list(t["dx"].shape), *corners, grad_input=t["dx"])


def reduction(op, a, t):
    x, y = t["x"], t["y"]
    dims = dims_of(a, x)
    if op in ("reduce_sum", "reduce_mean"):
        f = getattr(torch, op[7:])
        return lambda: f(x, dims, keepdim=True, out=y)
    if op in ("reduce_max", "reduce_min"):
        f = aten.amax if op == "reduce_max" else aten.amin
        return lambda: f.out(x, dims, True, out=y)
    if op in ("reduce_norm1", "reduce_norm2", "reduce_amax"):
        order = {"reduce_norm1": 1, "reduce_norm2": 2, "reduce_amax": math.inf}[op]
        return lambda: torch.linalg.vector_norm(x, order, dims, keepdim=True, out=y)
    if op in ("argmax", "argmin") and len(dims) == 1 and y.dtype == torch.int64:
        f = getattr(torch, op)
        return lambda: f(x, dims[0], keepdim=True, out=y)


def normalization(op, a, t):
    x, dy, y, dx = (t.get(k) for k in ("x", "dy", "y", "dx"))
    flat = lambda role: t[role].flatten() if role in t else None
    scale, shift, mean, rstd = (flat(k) for k in ("scale", "shift", "mean", "rstd"))
    eps, axes = float(a.get("eps", 1e-5)), a.get("axis")
    want = [True, "dscale" in t, "dshift" in t]
    if op.startswith("batch_norm"):
        if op == "batch_norm_inference":
            return lambda: aten.native_batch_norm.out(x, scale, shift, mean, flat("var"), False, 0.1, eps, out=y, save_mean=torch.empty(0), save_invstd=torch.empty(0))
        if op == "batch_norm" and x.is_cuda:                        # it takes cuDNN only if it has running statistics
            running = torch.zeros(x.shape[1]), torch.ones(x.shape[1])
            return lambda: F.batch_norm(x, *running, scale, shift, True, 0.1, eps)
        if op == "batch_norm":
            saved = torch.empty(x.shape[1]), torch.empty(x.shape[1])
            return lambda: aten.native_batch_norm.out(x, scale, shift, None, None, True, 0.1, eps, out=y, save_mean=saved[0], save_invstd=saved[1])
        return lambda: aten.native_batch_norm_backward(dy, x, scale, None, None, mean, rstd, True, eps, want)
    if axes == "2,3" and x.dim() == 4 and "scale" in t:
        n, g, c, hw = x.shape
        if t["scale"].shape[2] != c:                                # instance norm: [N, C, H, W]
            return (lambda: F.instance_norm(x, weight=scale, bias=shift, eps=eps)) if op == "layer_norm" else None
        side = math.isqrt(hw)                                       # group norm: [N, G, C/G, spatial]
        image = lambda v: v.as_strided((n, g * c, side, side), (v.stride(0), v.stride(2), v.stride(3) * side, v.stride(3))) if side * side == hw else v.view(n, g * c, hw)
        if op == "layer_norm":
            return lambda: F.group_norm(image(x), g, scale, shift, eps)     # native_group_norm takes no channels_last on CUDA
        if op == "layer_norm_backward":
            return lambda: aten.native_group_norm_backward(image(dy), image(x), mean.view(n, g), rstd.view(n, g), scale, n, g * c, hw, g, want)
    if axes and axes != str(x.dim() - 1):
        return None
    shape = list(x.shape[-1:])
    if op == "layer_norm":
        return lambda: aten.native_layer_norm(x, shape, scale, shift, eps)
    if op == "layer_norm_backward":
        return lambda: aten.native_layer_norm_backward(dy, x, shape, t["mean"], t["rstd"], scale, scale, want)
    if op == "rms_norm":
        return lambda: F.rms_norm(x, shape, scale, eps)


def local(op, a, t):
    """Across channels, without means; PyTorch's windows of even sizes lie otherwise."""
    size = int(a.get("size", 5))
    if "region" in a or "means" in t or size % 2 == 0:
        return None
    x, rule = t["x"], [float(a.get(k, v)) for k, v in (("alpha", 1e-4), ("beta", 0.75), ("k", 1))]
    if op == "lrn":
        return lambda: F.local_response_norm(x, size, *rule)
    with torch.enable_grad():
        image = x.detach().requires_grad_()
        y = F.local_response_norm(image, size, *rule)
    return lambda: torch.autograd.grad(y, image, t["dy"], retain_graph=True)


def sampling(op, a, t):
    corners = a.get("align_corners") == "1"
    if op.startswith("affine_grid"):
        grid = t["grid" if op == "affine_grid" else "dy"]
        size = [len(grid), 1, *grid.shape[1:-1]]
        if op == "affine_grid":
            return lambda: aten.affine_grid_generator(t["theta"], size, corners)
        return lambda: aten.affine_grid_generator_backward(grid, size, corners)
    rule = ["linear", "nearest", "cubic"].index(a.get("mode", "linear")), ["zeros", "border", "reflection"].index(a.get("padding", "zeros")), corners
    name = f"grid_sampler_{t['grid'].shape[-1]}d"
    if op == "grid_sample":
        f = getattr(aten, name)
        return lambda: f(t["x"], t["grid"], *rule)
    f = getattr(aten, name + "_backward")
    if op == "grid_sample_backward_grid":
        return lambda: f(t["dy"], t["x"], t["grid"], *rule, [False, True])
    image = torch.randn_like(t["dx"])                               # it must compute the grid's gradient too
    return lambda: f(t["dy"], image, t["grid"], *rule, [True, False])


def quantization(op, a, t):
    """Affine numbers of 8 bits, by tensor or along one dim; PyTorch has no call for others, nor for scales made by Quern's rule."""
    x, y, scale, zero = t["x"], t["y"], t.get("scale"), t.get("zero_point")
    whole, narrow = (y, x) if op == "dequantize" else (x, y)
    along = [d for d in range(x.dim()) if scale.dim() and scale.shape[d] != 1]
    if op == "quantize_dynamic" or "amax" in t or whole.dtype != torch.float32 or narrow.dtype not in (torch.int8, torch.uint8) or len(along) > 1 or (
            along and scale.shape[along[0]] != x.shape[along[0]]):
        return None
    dtype = torch.qint8 if narrow.dtype == torch.int8 else torch.quint8
    zeros = torch.zeros(scale.numel(), dtype=torch.int64) if zero is None else zero.flatten().long()
    rule = (scale.flatten().double(), zeros, along[0]) if along else (float(scale), int(zeros))
    if op == "quantize":
        f = torch.quantize_per_channel if along else torch.quantize_per_tensor
        return lambda: f(x, *rule, dtype)
    held = (torch._make_per_channel_quantized_tensor if along else torch._make_per_tensor_quantized_tensor)(x, *rule)
    return lambda: held.dequantize()


def loss(op, a, t):
    x, reduction = t["x"], {"mean": 1, "sum": 2}.get(a.get("reduction"), 0)
    if op.startswith("cross_entropy"):
        if x.dim() != 2 or a.get("axis", "-1") not in ("-1", "1") or "labels" not in t or "weights" in t or "input" in a:
            return None
        labels = t["labels"].flatten().long()
        if op == "cross_entropy":
            return lambda: F.cross_entropy(x, labels, reduction=("none", "mean", "sum")[reduction], label_smoothing=float(a.get("smoothing", 0)))
        if "smoothing" in a:
            return None
        p, dy, n = F.log_softmax(x, -1), t["dy"].flatten().to(x.dtype), torch.tensor(float(len(labels)), dtype=x.dtype)
        dy = dy[0] if reduction else dy
        return lambda: aten._log_softmax_backward_data.out(aten.nll_loss_backward(dy, p, labels, None, reduction, -100, n), p, -1, x.dtype, out=t["dx"])
    lengths = t["x_lengths"].tolist(), t["label_lengths"].tolist()
    labels, blank = t["labels"].long(), int(a.get("blank", 0))
    if op == "ctc_loss":                                            # it has no 16-bit accumulation
        return lambda: aten._ctc_loss(F.log_softmax(x.float(), -1), labels, *lengths, blank, False)
    p = F.log_softmax(x.float(), -1)
    nll, alpha = aten._ctc_loss(p, labels, *lengths, blank, False)
    dy = t["dy"].float().expand(x.shape[1]) / (x.shape[1] if reduction == 1 else 1)
    return lambda: aten._log_softmax_backward_data(aten._ctc_loss_backward(dy, p, labels, *lengths, nll, alpha, blank, False), p, -1, p.dtype).to(x.dtype)


def training(op, a, t):
    clones = lambda role: [x.clone() for x in t[role]] if role in t else []
    number = lambda key, absent: float(a.get(key, absent))
    rate = t["rate"] if isinstance(t.get("rate"), float) else 1e-3
    if op in ("adam", "adamw"):
        f = torch._fused_adam_ if op == "adam" else torch._fused_adamw_
        params, grads, m, v = (clones(k) for k in ("params", "grads", "m", "v"))
        steps = [torch.tensor(2.0) for _ in params]
        return lambda: f(params, grads, m, v, [], steps, lr=rate, beta1=number("beta1", 0.9), beta2=number("beta2", 0.999),
                         weight_decay=number("decay", 0), eps=number("eps", 1e-8), amsgrad=False, maximize=False)
    if op == "sgd":
        params, grads, velocity = (clones(k) for k in ("params", "grads", "velocity"))
        return lambda: torch._fused_sgd_(params, grads, velocity, weight_decay=number("decay", 0), momentum=number("momentum", 0), lr=rate,
                                         dampening=0, nesterov=a.get("nesterov") == "1", maximize=False, is_first_step=False)
    if op == "global_norm":
        return lambda: torch.linalg.vector_norm(torch.stack(torch._foreach_norm(t["x"])))
    if op == "amp_unscale" and "new_grads" in t:
        grads, found, inverse = clones("grads"), torch.zeros(1), torch.ones(1)
        return lambda: torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)


def random(op, a, t):
    y, p = t.get("y"), float(a.get("p", 0.5))
    if op == "rng_uniform":
        return lambda: y.uniform_(float(a.get("min", 0)), float(a.get("max", 1)))
    if op == "rng_normal":
        return lambda: y.normal_(float(a.get("mean", 0)), float(a.get("deviation", 1)))
    if op == "rng_bernoulli":
        return lambda: y.bernoulli_(p)
    if op == "dropout":
        return lambda: aten.native_dropout(t["x"], p, True)
    if op == "dropout_backward" and "mask" in t:
        mask = torch.rand(t["dy"].shape) >= p
        return lambda: aten.native_dropout_backward(t["dy"], mask, 1 / (1 - p))


def selection(op, a, t):
    x, y, axis = t.get("x"), t.get("y"), int(a.get("axis", -1))
    if op == "gather" and axis in (0, -1):
        where = t["indices"].flatten()
        return lambda: torch.index_select(x, 0, where, out=y.view(len(where), *x.shape[1:]))
    if op == "scatter_add" and axis in (0, -1):
        where, dx = t["indices"].flatten(), t["dx"]
        dy = t["dy"].view(len(where), *dx.shape[1:])
        return lambda: dx.zero_().index_add_(0, where, dy.to(dx.dtype))
    if op == "one_hot":
        where = t["indices"].long().unsqueeze(-1)
        return lambda: y.zero_().scatter_(-1, where, 1)
    if op == "top_k":
        where = torch.empty(y.shape, dtype=torch.int64)
        return lambda: torch.topk(x, int(a.get("k", 1)), axis, out=(y, where))
    if op == "pad_backward":
        dx, pad, mode = t["dx"], pairs(a["pad"], t["dx"].dim()), a.get("mode", "constant")
        if mode == "constant":
            inside = t["dy"][tuple(slice(p[0], p[0] + n) for p, n in zip(pad, dx.shape))]
            return lambda: dx.copy_(inside)
        if dx.dim() != 4:
            return None
        f = aten.reflection_pad2d_backward if mode == "reflect" else aten.replication_pad2d_backward
        return lambda: f.grad_input(t["dy"], t["dx"], [*pad[3], *pad[2]], grad_input=t["dx"])


def transform(op, a, t):
    x, y = t["x"], t["y"]
    if op == "gather":
        return selection(op, a, t)
    if op == "copy":
        return lambda: y.copy_(x)
    if op == "permute":
        return lambda: y.copy_(x.permute([int(p) for p in a["perm"].split(",")]))
    if op == "slice":
        start, step = (ints(a.get(k, d), x.dim()) for k, d in (("start", "0"), ("step", "1")))
        part = x[tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(start, y.shape, step))]
        return lambda: y.copy_(part)
    if op == "concat":
        return lambda: torch.cat(x, int(a.get("axis", -1)), out=y)
    if op == "pad":
        pad, mode = pairs(a["pad"], x.dim()), a.get("mode", "constant")
        flat = [k for p in reversed(pad) for k in p]
        if mode == "constant":
            return lambda: aten.constant_pad_nd(x, flat, float(a.get("value", 0)))
        if x.dim() == 4:
            f = aten.reflection_pad2d if mode == "reflect" else aten.replication_pad2d
            return lambda: f.out(x, flat[:4], out=y)


def contraction(op, a, t):
    if op == "matmul" and t.keys() == {"a", "b", "y"}:
        return lambda: torch.matmul(t["a"], t["b"], out=t["y"])
    if op == "matmul" and t.keys() == {"a", "b", "bias", "y"}:
        a, b, y = (t[k].view(t[k].shape[-2:]) for k in ("a", "b", "y"))
        return lambda: torch.addmm(t["bias"], a, b, out=y).view(t["y"].shape)
    if op not in ("conv_forward", "conv_backward_data", "conv_backward_filter") or t["dx" if "dx" in t else "x"].dim() != 4:
        return None
    geometry = [ints(a.get(k, d), 2) for k, d in (("stride", "1"), ("pad", "0"), ("dilation", "1"))]
    groups = int(a.get("groups", 1))
    if op == "conv_forward":
        return lambda: F.conv2d(t["x"], t["w"], t.get("bias"), *geometry, groups)
    by_x = op == "conv_backward_data"
    x, w = t["dx" if by_x else "x"], t["w" if by_x else "dw"]
    return lambda: aten.convolution_backward(t["dy"], x, w, None, *geometry, False, [0, 0], groups, [by_x, not by_x, False])[not by_x]


def scan(op, a, t):
    if op == "cumsum" and not {"exclusive", "reverse"} & a.keys():
        return lambda: torch.cumsum(t["x"], int(a.get("axis", -1)), out=t["y"])


def recurrent(op, a, t):
    """What torch.nn.LSTM and its like call, biases absent as zeros. The gradient is that of all inputs, by autograd, the forward's work kept."""
    cell, both, layers = a.get("cell", "lstm"), a.get("direction") == "both", int(a.get("layers", 1))
    if a.get("direction") == "backward" or a.get("reset") == "before" or "clip" in a or "lengths" in t or ("projection" in t and t["x"].is_cuda):
        return None
    x, zeros = t["x"], [torch.zeros(w.shape[0], dtype=w.dtype) for w in t["w"]]
    parts = [t["w"], t["r"], t.get("bw", zeros), t.get("br", zeros)] + ([t["projection"]] if "projection" in t else [])
    weights = [k for each in zip(*parts) for k in each]
    state = torch.zeros(layers * (2 if both else 1), x.shape[1], t["r"][0].shape[1], dtype=x.dtype)
    full = torch.zeros(state.shape[0], state.shape[1], t["w"][0].shape[0] // 4, dtype=x.dtype) if "projection" in t else state
    h0, c0 = t.get("h0", state), t.get("c0", full)
    if x.is_cuda:                                                   # cuDNN's own calls: recorded, weights side by side as in a module
        mode, size, weights = ["relu", "tanh", "lstm", "gru"].index(cell), state.shape[2], [k.clone() for k in weights]
        flat = torch._cudnn_rnn_flatten_weight(weights, 4, x.shape[2], mode, size, 0, layers, False, both)
        rest = mode, size, 0, layers, False, 0.0, op == "rnn_backward", both, [], None
        forward = lambda: torch._cudnn_rnn(x, weights, 4, flat, h0, c0 if cell == "lstm" else None, *rest)
        if op == "rnn_forward":
            return forward
        y, _, _, reserve, flat = forward()
        want = [True, False, False, bool({"dw", "dr", "dbw", "dbr"} & t.keys())]
        cx = c0 if cell == "lstm" else None
        return lambda: (None, aten._cudnn_rnn_backward(x, weights, 4, flat, h0, cx, y, t["dy"], None, None, *rest, reserve, want))
    function = {"lstm": torch._VF.lstm, "gru": torch._VF.gru, "tanh": torch._VF.rnn_tanh, "relu": torch._VF.rnn_relu}[cell]
    call = lambda: function(x, (h0, c0) if cell == "lstm" else h0, weights, True, layers, 0.0, op == "rnn_backward", both, False)
    if op == "rnn_forward":
        return call
    given = [x] + [w for i, role in enumerate(("dw", "dr", "dbw", "dbr", "dprojection")) if role in t for w in weights[i::len(parts)]]
    for w in given:
        w.requires_grad_()
    with torch.enable_grad():
        y = call()[0]
    return lambda: (None, torch.autograd.grad(y, given, t["dy"], retain_graph=True))        # of another forward than Quern's: not compared


def cudnn_attention_backward(q, k, v, dy, rule):
    """What autograd calls where PyTorch's attention goes to cuDNN, by its name: autograd cannot be recorded. None if cuDNN refuses."""
    mask, causal, scale = rule["attn_mask"], rule["is_causal"], rule["scale"]
    try:
        y, lse, starts_q, starts_k, most_q, most_k, seed, offset, _ = torch.ops.aten._scaled_dot_product_cudnn_attention(
            q, k, v, mask, True, 0.0, causal, False, scale=scale)
        call = lambda: torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            dy, q, k, v, y, lse, seed, offset, mask, starts_q, starts_k, most_q, most_k, 0.0, causal, scale=scale)
        call()
        return y, call
    except RuntimeError:
        return None


def attention(op, a, t):
    """Causal from the top left, grouped heads, a bias or a mask; PyTorch has one call for these and none for the rest."""
    roles = {"q", "k", "v", "y", "lse", "bias", "mask", "dy", "dq", "dk", "dv"}
    if op not in ("attention_forward", "attention_backward") or t.keys() - roles or {"left", "softcap", "value_size"} & a.keys() or {
            "bias", "mask"} <= t.keys() or a.get("right", "0") != "0":
        return None
    q, k, v, causal = t["q"], t["k"], t["v"], "right" in a
    if causal and a.get("align") != "top_left" and q.shape[2] not in (1, k.shape[2]):
        return None
    rule = dict(attn_mask=t.get("bias", t.get("mask")), is_causal=causal and q.shape[2] > 1, scale=float(a.get("scale", 0)) or None,
                enable_gqa=q.shape[1] != k.shape[1])
    if op == "attention_forward":
        return lambda: F.scaled_dot_product_attention(q, k, v, **rule)
    call = cudnn_attention_backward(q, k, v, t["dy"], rule) if q.is_cuda else None
    if not call:
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            y = F.scaled_dot_product_attention(*leaves, **rule)
        call = y, lambda: torch.autograd.grad(y, leaves, t["dy"], retain_graph=True)
    y = call[0]
    t["y"].copy_(y)
    for b in range(q.shape[0]):                                     # lse, head by head: its scores may be large
        for h in range(q.shape[1]):
            s = q[b, h].float() @ k[b, h * k.shape[1] // q.shape[1]].float().T * (rule["scale"] or q.shape[3] ** -0.5)
            if rule["attn_mask"] is not None:
                m = rule["attn_mask"].expand(*q.shape[:3], k.shape[2])[b, h]
                s = s.masked_fill(~m, -math.inf) if m.dtype == torch.bool else s + m
            if rule["is_causal"]:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
            t["lse"][b, h] = s.logsumexp(-1)
    return call[1]


PEERS = {f.__name__: f for f in (attention, pointwise, softmax, pooling, resampling, reduction, normalization, local, sampling, quantization,
                                 loss, training, random, selection, transform, contraction, scan, recurrent)}


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
        return tensors()
    t, ordered, result = tensors()
    fill(op, t)
    call = PEERS[family](op, dict(w.split("=", 1) for w in words[1:]), t) if family in PEERS else None
    kept = []

    def keeping():
        kept[:] = [call()]
        return kept[0]

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
