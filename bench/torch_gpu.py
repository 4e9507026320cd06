#!/usr/bin/env python3
"""torch_gpu.py -- PyTorch's CUDA kernels beside Quern's, in turn in one run.

  torch_gpu.py [--lib libquern.so] [--math f32|tf32] [--rounds 7] [--filter REGEX] [--attention cudnn,flash] FILE.q ...

Reads the single-op problems of workload files, and graphs of one line, which PyTorch runs op by op as a module in inference does. Both
sides replay a recording (a CUDA graph) over so many sets of random tensors that the caches are cold; PyTorch's convolutions take cuDNN's
fastest measured engine. What PyTorch cannot record it does call by call, and the row says so. Prints medians, their ratio (above 1: Quern
is faster), how far the results lie apart as a share of the largest, and geometric means. --math says what f32 may become on both sides;
--attention names PyTorch's attentions in the order in which they are tried."""
import argparse, math, os, re, statistics, sys, time
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_problems import apart, build, copy_of, problems
from torch_quern import Quern

# CTC copies lengths from the host; autograd uses streams of its own.
EAGER = {"ctc_loss", "ctc_loss_backward", "lrn_backward", "pool_lp_backward"}


def seconds_of(f, finish, n):
    start = time.perf_counter()
    for _ in range(n):
        f()
    finish()
    return (time.perf_counter() - start) / n


def measure(quern, line, words, rounds, cache=150e6):
    problem = quern.problem(line)
    first = build(problem, words)
    if not first:
        return None
    size = sum(t.nbytes for t in first[0])
    sets = [first] + [build(problem, words) for _ in range(min(100, int(cache / size)))]
    calls = [s[1] for s in sets]

    def eager():
        for call in calls:
            call()

    theirs, run, graph = copy_of(first[1]()), eager, torch.cuda.CUDAGraph()
    if problem[0] not in EAGER and not getattr(first[1], "eager", False):
        eager()                                             # cuDNN measures, cuBLAS allocates its workspace
        try:
            with torch.cuda.graph(graph):
                eager()
            run = graph.replay
        except RuntimeError:                                # autograd's streams
            torch.cuda.synchronize()
    plan, engine = quern.plan(line)
    torch.cuda.synchronize()
    recording = quern.record(plan, [s[0] for s in sets])

    def finish():
        quern.check(quern.lib.qn_context_synchronize(quern.ctx))

    finish()
    differ = apart(problem[1], first[2], theirs)
    sides = (lambda: quern.replay(recording), finish), (run, torch.cuda.synchronize)
    n = [max(3, int(4e-3 / seconds_of(*s, 2))) for s in sides]
    samples = [[seconds_of(*s, k) / len(sets) for s, k in zip(sides, n)] for _ in range(rounds)]
    quern.lib.qn_recording_destroy(recording)
    quern.lib.qn_plan_destroy(plan)
    ours, others = (statistics.median(s) for s in zip(*samples))
    return problem[1], engine, ours, others, differ + ("  call by call" if run == eager else "")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default=os.path.join(here, "../build/.libs/libquern.so"))
    parser.add_argument("--math", choices=("f32", "tf32"), default="f32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument("--attention", default="cudnn,flash,efficient,math", help="PyTorch's attention: the first of these that takes a problem")
    parser.add_argument("files", nargs="+")
    o = parser.parse_args()
    os.environ["QUERN_MATH"] = o.math
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = o.math == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    torch.set_default_device("cuda")
    quern, groups, skipped = Quern(o.lib, 1), {}, 0
    backends = [getattr(SDPBackend, {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}.get(w, w.upper()))
                for w in o.attention.split(",")]
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}, math {o.math}")
    print(f"{'problem':44} {'engine':32} {'Quern us':>9} {'PyTorch us':>10}  speed   apart")
    for path in o.files:
        for _, name, line, words in problems(path):
            if not (re.search(o.filter, name) or re.search(o.filter, line)):
                continue
            try:
                with sdpa_kernel(backends, set_priority=True):
                    r = measure(quern, line, words, o.rounds)
            except (RuntimeError, KeyError, NotImplementedError, TypeError) as e:
                print(f"{name:44} {str(e)[:100]}")
                r = None
            torch.cuda.empty_cache()
            if not r:
                skipped += 1
                continue
            family, engine, ours, theirs, differ = r
            print(f"{name:44} {engine:32} {ours * 1e6:9.1f} {theirs * 1e6:10.1f} {theirs / ours:6.2f}x {differ:>7}", flush=True)
            for group in {family, words[0], "all"}:
                groups.setdefault(group, []).append(theirs / ours)
    for group, ratios in sorted(groups.items(), key=lambda g: g[0] == "all"):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{group:24} {len(ratios):3} problems   geometric mean {mean:5.2f}x   least {min(ratios):5.2f}x")
    if skipped:
        print(f"{skipped} problems left out: PyTorch has no call for them, or somebody refused")


if __name__ == "__main__":
    sys.exit(main())
