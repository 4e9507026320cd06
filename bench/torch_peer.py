#!/usr/bin/env python3
"""torch_peer.py -- PyTorch's CPU kernels beside Quern's, in turn on the same data in one run.

  torch_peer.py [--lib libquern.so] [--threads 2] [--seconds 0.5] [--filter TEXT] FILE.q ...

Reads the single-op problems of workload files, and graphs of one line; calls PyTorch's out= variants where it has them (so that it too
allocates nothing), and prints medians (with --threads 1 of processor time), their ratio (above 1: Quern is faster), how far the results lie
apart as a share of the largest, and the geometric means by family. Problems that PyTorch has no call for are skipped and counted.
QUERN_BACKEND and the other settings say which engines run. PyTorch: python3 -m venv DIR, DIR/bin/pip install torch numpy, then
DIR/bin/python in the place of python3."""
import argparse, math, os, statistics, sys, time
import torch
from torch_problems import apart, build, copy_of, problems
from torch_quern import Quern


# ---- measuring --------------------------------------------------------------------------------------

clock = time.perf_counter


def seconds_of(f, n):
    """Of one call among n. PyTorch brings an OpenMP of its own: first the other side's threads must fall asleep."""
    time.sleep(0.004)
    f()
    start = clock()
    for _ in range(n):
        f()
    return (clock() - start) / n


def measure(quern, line, words, seconds, cache=200e6):
    problem = quern.problem(line)
    first = build(problem, words)
    if not first:
        return None
    reference = copy_of(first[1]())
    plan, engine = quern.plan(line)
    recording = quern.record(plan, [first[0]])
    differ = apart(problem[1], first[2], reference)
    once = seconds_of(first[1], 1) + seconds_of(lambda: quern.replay(recording), 1)
    quern.lib.qn_recording_destroy(recording)
    size = sum(t.numel() * t.element_size() for t in first[0])
    sets = [first] + [build(problem, words) for _ in range(min(23, int(cache / max(size, 1)), int(seconds / once)))]
    recording = quern.record(plan, [s[0] for s in sets])

    def ours():
        quern.replay(recording)

    def theirs():
        for _, call, _ in sets:
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
    return (problem[1], engine, statistics.median(a for a, _ in samples) / k, statistics.median(b for _, b in samples) / k,
            statistics.median(b / a for a, b in samples), differ)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default=os.path.join(here, "../build/.libs/libquern.so"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--filter", default="")
    parser.add_argument("files", nargs="+")
    o = parser.parse_args()
    if o.threads == 1:                                              # processor time: others on the machine count less
        global clock
        clock = time.process_time
    torch.set_num_threads(o.threads)
    torch.set_grad_enabled(False)
    quern, groups, skipped = Quern(o.lib, o.threads), {}, 0
    print(f"{'problem':40} {'engine':36} {'Quern us':>10} {'PyTorch us':>10}  speed   apart   (PyTorch {torch.__version__}, {o.threads} threads)")
    for path in o.files:
        for _, name, line, words in problems(path):
            if o.filter not in name and o.filter not in line:
                continue
            try:
                r = measure(quern, line, words, o.seconds)
            except (RuntimeError, KeyError, NotImplementedError, TypeError) as e:
                print(f"{name:40} {str(e)[:100]}")
                r = None
            if not r:
                skipped += 1
                continue
            family, engine, ours, theirs, speed, differ = r
            print(f"{name:40} {engine:36} {ours * 1e6:10.1f} {theirs * 1e6:10.1f} {speed:6.2f}x {differ:>7}", flush=True)
            for group in (family, "all"):
                groups.setdefault(group, []).append(speed)
    for group, ratios in sorted(groups.items(), key=lambda g: g[0] == "all"):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{group:24} {len(ratios):3} problems   geometric mean {mean:5.2f}x   least {min(ratios):5.2f}x")
    if skipped:
        print(f"{skipped} problems left out: PyTorch has no call for them, or somebody refused")


if __name__ == "__main__":
    sys.exit(main())
