#!/usr/bin/env python3
"""nccl_direct.py -- collectives by NCCL called directly, beside those of quern-bench --ranks, in one run on N GPUs of a host.

  nccl_direct.py [--bench ./quern-bench] [--ranks 2] [--up-to 268435456] [--rounds 3] [--nccl libnccl.so.2]

A process for each GPU calls the same library that Quern's backend nccl opens, on the same sizes of f32 (1 KB to --up-to, in steps of 4):
calls that follow one another on a stream, and the same calls captured in a CUDA graph. quern-bench runs between those rounds. A time is
the slowest rank's, of one call; medians over the rounds, and the ratios of Quern's time to NCCL's (below 1: Quern is faster)."""
import argparse, ctypes, os, re, statistics, subprocess, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing

FLOAT, SUM = 7, 0                                               # of nccl.h


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Nccl:
    def __init__(self, path, rank, ranks):
        self.so, self.ranks = ctypes.CDLL(path), ranks
        unique = Id()
        if not rank:
            self.check(self.so.ncclGetUniqueId(ctypes.byref(unique)))
        shared = [bytes(unique)]
        dist.broadcast_object_list(shared)
        self.comm = ctypes.c_void_p()
        self.check(self.so.ncclCommInitRank(ctypes.byref(self.comm), ranks, Id.from_buffer_copy(shared[0]), rank))

    def check(self, status):
        if status:
            self.so.ncclGetErrorString.restype = ctypes.c_char_p
            sys.exit(f"NCCL: {self.so.ncclGetErrorString(status).decode()}")

    def call(self, op, x, y, size):
        """A function that calls NCCL once for tensors of size bytes, the larger of x and y."""
        n, stream = size // 4, lambda: ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        x, y = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())
        count = ctypes.c_size_t(n if op in ("all_reduce", "broadcast") else n // self.ranks)
        f = getattr(self.so, {"all_reduce": "ncclAllReduce", "reduce_scatter": "ncclReduceScatter", "all_gather": "ncclAllGather", "broadcast": "ncclBroadcast"}[op])
        if op in ("all_reduce", "reduce_scatter"):
            return lambda: self.check(f(x, y, count, FLOAT, SUM, self.comm, stream()))
        if op == "all_gather":
            return lambda: self.check(f(x, y, count, FLOAT, self.comm, stream()))
        return lambda: self.check(f(x, y, count, FLOAT, 0, self.comm, stream()))


def slowest(run, n):
    """Seconds of one of the n calls that run makes: of the slowest rank."""
    torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    taken = torch.tensor((time.perf_counter() - start) / n)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.item()


def direct(nccl, op, size, x, y):
    call = nccl.call(op, x, y, size)

    def calls(n):
        for _ in range(n):
            call()
    t = min(slowest(lambda: calls(2), 2) for _ in range(4))
    n = max(2, min(1000, int(0.02 / t)))
    live = statistics.median(slowest(lambda: calls(n), n) for _ in range(5))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls(n)
    slowest(graph.replay, n)
    return live, statistics.median(slowest(graph.replay, n) for _ in range(5))


def quern(o):
    environment = dict(os.environ, QUERN_BACKEND="nccl,cuda", QUERN_NCCL=o.nccl)
    text = subprocess.run([o.bench, f"--ranks={o.ranks}", f"--up-to={o.up_to}"], env=environment, capture_output=True, text=True)
    rows = {(op, int(size)): (1e-6 * float(live), 1e-6 * float(again)) for op, size, live, again in
            re.findall(r"^(\w+) +([0-9]+) +([0-9.]+) +[0-9.]+ +([0-9.]+) +[0-9.]+ ", text.stdout, re.M)}
    return rows or sys.exit(f"{o.bench}: {text.stdout}{text.stderr}")


def one_rank(rank, o):
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{o.port}", rank=rank, world_size=o.ranks)
    nccl = Nccl(o.nccl, rank, o.ranks)
    x, y = torch.zeros(o.up_to // 4, device="cuda"), torch.zeros(o.up_to // 4, device="cuda")
    theirs, ours = {}, {}
    for _ in range(o.rounds):
        for op in ("all_reduce", "reduce_scatter", "all_gather", "broadcast"):
            size = 1024
            while size <= o.up_to:
                theirs.setdefault((op, size), []).append(direct(nccl, op, size, x, y))
                size *= 4
        if not rank:
            for row, times in quern(o).items():
                ours.setdefault(row, []).append(times)
        dist.barrier()
    if not rank:
        print(f"{o.ranks} ranks, {torch.cuda.get_device_name()}, {o.nccl}\n{'op':15} {'bytes':>11} {'NCCL us':>9} {'Quern us':>9} {'ratio':>6}   {'captured':>9} {'replayed':>9} {'ratio':>6}")
        for (op, size), times in theirs.items():
            if (op, size) in ours:
                a, b = [[statistics.median(t[i] for t in side) for i in (0, 1)] for side in (times, ours[op, size])]
                print(f"{op:15} {size:11} {1e6 * a[0]:9.2f} {1e6 * b[0]:9.2f} {b[0] / a[0]:6.3f}   {1e6 * a[1]:9.2f} {1e6 * b[1]:9.2f} {b[1] / a[1]:6.3f}")
    dist.barrier()
    nccl.so.ncclCommDestroy(nccl.comm)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(here, "../build/bench/quern-bench"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--up-to", type=int, default=1 << 28)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nccl", default=os.environ.get("QUERN_NCCL", "libnccl.so.2"))
    parser.add_argument("--port", type=int, default=29714, help="by which the processes meet")
    o = parser.parse_args()
    torch.multiprocessing.spawn(one_rank, (o,), o.ranks)


if __name__ == "__main__":
    main()
