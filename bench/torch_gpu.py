#!/usr/bin/env python3
"""torch_gpu.py -- convolutions, norms, pooling and softmax on a GPU beside PyTorch's, in turn in one run.

  torch_gpu.py [--lib libquern.so] [--math f32|tf32] [--rounds 7] [--filter REGEX] FILE.q ...

Reads these ops of workload files. Both sides replay a recording (a CUDA graph) over so many sets of random tensors that the caches are
cold; PyTorch's convolutions take cuDNN's fastest measured engine. Prints medians, their ratio (above 1: Quern is faster), how far the
results lie apart as a share of the largest, and geometric means. --math says what f32 may become on both sides."""
import argparse, functools, math, os, re, statistics, sys, time
import torch
import torch.nn.functional as F
import torch_peer

aten = torch.ops.aten


# ---- the ops by PyTorch: f(attributes, tensors by role) returns the outputs ---------------------------

def geometry(a):
    return [torch_peer.ints(a.get(k, d), 2) for k, d in (("stride", "1"), ("pad", "0"), ("dilation", "1"))]


def conv_forward(a, t):
    return F.conv2d(t["x"], t["w"], None, *geometry(a), int(a.get("groups", 1))),


def conv_backward(a, t):
    """The gradient by whichever of x and w is an output."""
    by_x = "dx" in t
    x, w = t["dx" if by_x else "x"], t["w" if by_x else "dw"]
    out = aten.convolution_backward(t["dy"], x, w, None, *geometry(a), False, [0, 0], int(a.get("groups", 1)), [by_x, not by_x, False])
    return out[0 if by_x else 1],


def layer_norm(a, t):
    x, scale, shift = t["x"], t.get("scale"), t.get("shift")
    if "axis" not in a:
        return aten.native_layer_norm(x, x.shape[-1:], scale.flatten(), shift.flatten(), 1e-5)
    n, groups, per, points = x.shape                        # group norm: [N, G, C/G, points]
    side = math.isqrt(points)
    image = x.as_strided((n, groups * per, side, side), (x.stride(0), x.stride(2), x.stride(3) * side, x.stride(3)))
    return F.group_norm(image, groups, scale.flatten(), shift.flatten()),


@functools.cache
def running(channels):
    """Running statistics: PyTorch asks for them before it takes cuDNN."""
    return torch.zeros(channels), torch.ones(channels)


def batch_norm(a, t):
    mean, var = running(t["x"].shape[1])
    return F.batch_norm(t["x"], mean, var, t["scale"].flatten(), t["shift"].flatten(), True, 0.1, 1e-5), mean, var


def pool_max(a, t):
    return F.max_pool2d(t["x"], *torch_peer.pool_arguments(a, t["x"])),


def pool_average(a, t):
    window, stride, pad = torch_peer.pool_arguments(a, t["x"])
    if stride == window and pad == [0, 0]:                  # what the anchor list has as adaptive
        return F.adaptive_avg_pool2d(t["x"], [n // w for n, w in zip(t["x"].shape[2:], window)]),
    return F.avg_pool2d(t["x"], window, stride, pad),


# Each op: PyTorch's call, and its outputs, of which the first is always there.
OPS = {
    "conv_forward": (conv_forward, ["y"]), "conv_backward_data": (conv_backward, ["dx"]), "conv_backward_filter": (conv_backward, ["dw"]),
    "layer_norm": (layer_norm, ["y", "mean", "rstd"]), "batch_norm": (batch_norm, ["y", "mean", "rstd"]),
    "rms_norm": (lambda a, t: (F.rms_norm(t["x"], t["x"].shape[-1:], t["scale"].flatten(), 1e-5),), ["y"]),
    "softmax": (lambda a, t: (F.softmax(t["x"], int(a.get("axis", -1))),), ["y"]),
    "pool_max": (pool_max, ["y"]), "pool_average": (pool_average, ["y"]),
}


def build(problem, words):
    """Attributes, tensors by role, and in execute's order."""
    op, _, tensors = problem
    roles, ordered = tensors()
    torch_peer.fill(op, roles)
    return dict(w.split("=", 1) for w in words[1:]), roles, ordered


# ---- measuring ----------------------------------------------------------------------------------------

def seconds_of(f, finish, n):
    start = time.perf_counter()
    for _ in range(n):
        f()
    finish()
    return (time.perf_counter() - start) / n


def measure(quern, line, words, rounds, cache=150e6):
    f, outputs = OPS[words[0]]
    problem = quern.problem(line)
    a, first, ordered = build(problem, words)
    sets = [(first, ordered)] + [build(problem, words)[1:] for _ in range(int(cache / sum(t.nbytes for t in ordered)))]
    theirs = f(a, first)[0]
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for roles, _ in sets:
            kept.append(f(a, roles))
    plan, engine = quern.plan(line)
    torch.cuda.synchronize()
    recording = quern.record(plan, [tensors for _, tensors in sets])

    def finish():
        quern.check(quern.lib.qn_context_synchronize(quern.ctx))

    finish()
    result = first[outputs[0]]
    apart = ((result - theirs.reshape(result.shape)).abs().max() / theirs.abs().max()).item()     # group norm's dims differ
    del result, theirs
    sides = (lambda: quern.replay(recording), finish), (graph.replay, torch.cuda.synchronize)
    n = [max(3, int(4e-3 / seconds_of(*s, 2))) for s in sides]
    samples = [[seconds_of(*s, k) / len(sets) for s, k in zip(sides, n)] for _ in range(rounds)]
    quern.lib.qn_recording_destroy(recording)
    quern.lib.qn_plan_destroy(plan)
    ours, others = (statistics.median(s) for s in zip(*samples))
    return engine, ours, others, apart


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default=os.path.join(here, "../build/.libs/libquern.so"))
    parser.add_argument("--math", choices=("f32", "tf32"), default="f32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument("files", nargs="+")
    o = parser.parse_args()
    os.environ["QUERN_MATH"] = o.math
    torch.backends.cudnn.allow_tf32 = o.math == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    torch.set_default_device("cuda")
    quern, groups = torch_peer.Quern(o.lib, 1), {}
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}, math {o.math}")
    print(f"{'problem':44} {'engine':32} {'Quern us':>9} {'PyTorch us':>10}  speed   apart")
    for path in o.files:
        for _, name, line, words in torch_peer.problems(path):
            if words[0] not in OPS or not (re.search(o.filter, name) or re.search(o.filter, line)):
                continue
            engine, ours, theirs, apart = measure(quern, line, words, o.rounds)
            torch.cuda.empty_cache()
            print(f"{name:44} {engine:32} {ours * 1e6:9.1f} {theirs * 1e6:10.1f} {theirs / ours:6.2f}x {apart:7.0e}", flush=True)
            for group in (words[0], "all"):
                groups.setdefault(group, []).append(theirs / ours)
    for group, ratios in sorted(groups.items(), key=lambda g: g[0] == "all"):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{group:24} {len(ratios):3} problems   geometric mean {mean:5.2f}x   least {min(ratios):5.2f}x")


if __name__ == "__main__":
    sys.exit(main())
