#!/usr/bin/env python3
"""torch_conv.py -- convolutions on a GPU beside PyTorch's, which takes cuDNN's fastest measured engine, in turn in one run.

  torch_conv.py [--lib libquern.so] [--math f32|tf32] [--rounds 7] [--filter TEXT] FILE.q ...

Reads the convolutions of workload files. Both sides replay a recording (a CUDA graph) over so many sets of random tensors that the
caches are cold. Prints medians, their ratio (above 1: Quern is faster), how far the results lie apart as a share of the largest, and
geometric means. --math says what f32 may become on both sides."""
import argparse, ctypes, math, os, statistics, sys, time
import torch
import torch_peer

BACKWARD = torch.ops.aten.convolution_backward


def call(op, a, t):
    """PyTorch's call on the tensors of a problem in the order of their roles; it returns the result."""
    pad, stride, dilation = (torch_peer.ints(a.get(k, d), 2) for k, d in (("pad", "0"), ("stride", "1"), ("dilation", "1")))
    groups = int(a.get("groups", 1))
    if op == "conv_forward":
        return torch.conv2d(t[0], t[1], None, stride, pad, dilation, groups)
    x, w, dy = (t[2], t[1], t[0]) if op == "conv_backward_data" else (t[0], t[2], t[1])
    data = op == "conv_backward_data"
    return BACKWARD(dy, x, w, None, stride, pad, dilation, False, [0, 0], groups, [data, not data, False])[0 if data else 1]


def build(words):
    """Attributes, and one set of tensors in the order of their roles."""
    a, t = {}, []
    for key, value in (w.split("=") for w in words[1:]):
        if "/" in value:
            t.append(torch_peer.fill(torch_peer.tensor(value)).cuda())
        else:
            a[key] = value
    if len(t) == 2:                                             # what may be left out: y
        t.append(torch.empty_like(call(words[0], a, t)))
    return a, t


def seconds_of(f, finish, n):
    start = time.perf_counter()
    for _ in range(n):
        f()
    finish()
    return (time.perf_counter() - start) / n


def measure(quern, line, words, rounds, cache=150e6):
    a, first = build(words)
    sets = [first] + [build(words)[1] for _ in range(int(cache / sum(t.nbytes for t in first)))]
    theirs = call(words[0], a, first)
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for s in sets:
            kept.append(call(words[0], a, s))
    plan, engine = quern.plan(line)
    torch.cuda.synchronize()
    recording = quern.record(plan, sets)

    def finish():
        quern.check(quern.lib.qn_context_synchronize(quern.ctx))

    finish()
    apart = ((first[2] - theirs).abs().max() / theirs.abs().max()).item()
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
    quern, groups = torch_peer.Quern(o.lib, 1), {}
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}, math {o.math}")
    print(f"{'problem':32} {'engine':32} {'Quern us':>9} {'PyTorch us':>10}  speed   apart")
    for path in o.files:
        for _, name, line, words in torch_peer.problems(path):
            if not words[0].startswith("conv_") or (o.filter not in name and o.filter not in line):
                continue
            engine, ours, theirs, apart = measure(quern, line, words, o.rounds)
            torch.cuda.empty_cache()
            print(f"{name:32} {engine:32} {ours * 1e6:9.1f} {theirs * 1e6:10.1f} {theirs / ours:6.2f}x {apart:7.0e}", flush=True)
            for group in (words[0], "all"):
                groups.setdefault(group, []).append(theirs / ours)
    for group, ratios in sorted(groups.items(), key=lambda g: g[0] == "all"):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{group:24} {len(ratios):3} problems   geometric mean {mean:5.2f}x   least {min(ratios):5.2f}x")


if __name__ == "__main__":
    sys.exit(main())
