#!/usr/bin/env python3
"""torch_digits.py -- the training step of examples/cnn_digits beside PyTorch's, on a GPU, in turn in one run.

  torch_digits.py [--digits ./cnn_digits] [--width 64,128] [--batch 64] [--math f32|tf32] [--norm] [--rounds 3] [--ranks N]

PyTorch trains the same network with the same Adam in three ways: eager (with Adam's for-each and with its fused kernels; the faster
counts), and the whole step captured in a CUDA graph and replayed. cnn_digits prints what a replay of its recorded step takes. Each
way is warm before it is timed; medians over the rounds, and the ratios to Quern (above 1: Quern is faster).

With --ranks N both train on N GPUs, each on its share of the batch: cnn_digits --ranks N beside DistributedDataParallel (over NCCL, a
process for each GPU, Adam fused; call by call, and the step captured with its all_reduces). A time is the slowest rank's; beside it stands
what Quern's step takes on one GPU with the batch of one rank."""
import argparse, os, re, statistics, subprocess, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F


class Step:
    """The network of cnn_digits.c, the batch lying on the device; one call is one training step."""

    def __init__(self, c1, c2, n, norm, **adam):
        dev = dict(device="cuda")
        self.image, self.down, self.across = torch.randn(n, 1, 8, 8, **dev), torch.rand(1, 1, 32, 8, **dev), torch.rand(1, 1, 8, 32, **dev)
        self.colour, self.label = torch.rand(1, 3, 1, 1, **dev), torch.arange(n, **dev) % 10
        self.norm = [[torch.zeros(c, **dev), torch.ones(c, **dev), torch.ones(c, **dev).requires_grad_()] for c in (c1, c2)] if norm else None
        shapes = [(c1, 3, 3, 3), (c1,), (c2, c1, 3, 3), (c2,), (c2 * 64, 10), (10,)]
        self.p = [(0.05 * torch.randn(*s, **dev)).requires_grad_() for s in shapes]
        self.total = torch.zeros(1, 1, **dev)
        self.adam = torch.optim.Adam(self.p + [s for _, _, s in self.norm or []], lr=1e-3, **adam)

    def loss(self):
        w1, b1, w2, b2, w3, b3 = self.p
        x = (self.down @ self.image @ self.across) * self.colour
        h = F.max_pool2d(self.features(x, w1, b1, 0), 2)
        h = F.max_pool2d(self.features(h, w2, b2, 1), 2)
        return F.cross_entropy(torch.addmm(b3, h.flatten(1), w3), self.label)

    def features(self, x, w, b, i):
        if not self.norm:
            return F.relu(F.conv2d(x, w, b, padding=1))
        mean, var, scale = self.norm[i]
        return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, var, scale, b, training=True))

    def __call__(self):
        loss = self.loss()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()
        self.total += loss.detach()


def warm(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(20):
            step()
    torch.cuda.current_stream().wait_stream(side)
    return step


def captured(step):
    graph = torch.cuda.CUDAGraph()
    warm(step)
    with torch.cuda.graph(graph):
        step()
    return lambda keep=step: graph.replay()                     # keep: the graph reads the step's tensors, which must stay alive


def seconds_of(step, least=0.2):
    n = 10
    while True:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        taken = time.perf_counter() - start
        if taken > least:
            return taken / n
        n *= 2


class Parallel(Step):
    """The same step on each of several ranks, whose gradients DistributedDataParallel averages while backward runs."""

    def __init__(self, *sizes, **adam):
        super().__init__(*sizes, **adam)
        module = torch.nn.Module()
        for i, p in enumerate(self.adam.param_groups[0]["params"]):
            module.register_parameter(f"p{i}", torch.nn.Parameter(p))
        parameters = list(module.parameters())
        self.p, scales = parameters[:6], parameters[6:]
        for norm, scale in zip(self.norm or [], scales):
            norm[2] = scale
        module.forward = super().loss
        self.loss = torch.nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=True)
        self.adam = torch.optim.Adam(parameters, lr=1e-3, **adam)


def all_ranks(step, meet, least=0.2):
    """Seconds of a step: the slowest rank's, the same number of steps on each."""
    n = 10
    while True:
        dist.barrier(meet)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        taken = torch.tensor(time.perf_counter() - start)
        dist.all_reduce(taken, dist.ReduceOp.MAX, group=meet)
        if taken > least:
            return taken.item() / n
        n *= 2


def parallel_rank(rank, o, c1, c2):
    settle(o)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{o.port}", rank=rank, world_size=o.ranks)
    meet = dist.new_group(backend="gloo")                       # an NCCL barrier would keep the GPU busy while Quern is measured
    sizes, ways, taken, ours, alone = (c1, c2, o.batch // o.ranks, o.norm), {}, {}, [], []
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):                               # as capture of its all_reduces wants
        ways["DDP, call by call"] = Parallel(*sizes, fused=True)
        step = Parallel(*sizes, fused=True, capturable=True)
        for _ in range(20):
            ways["DDP, call by call"](), step()
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        ways["DDP, CUDA graph"] = graph.replay
    except RuntimeError as e:
        if not rank:
            print(f"DDP could not be captured: {e}", file=sys.stderr)
    for _ in range(o.rounds):
        if not rank:
            ours.append(digits(o, c1, c2, o.batch, o.ranks))
            alone.append(digits(o, c1, c2, o.batch // o.ranks, 1))
        for name, way in ways.items():
            taken.setdefault(name, []).append(all_ranks(way, meet))
    if not rank:
        heading(o, c1, c2)
        quern, one = statistics.median(ours), statistics.median(alone)
        print(f"{'Quern, one rank':35} {one * 1e6:9.1f} us a step of {o.batch // o.ranks}")
        print(f"{f'Quern, {o.ranks} ranks':35} {quern * 1e6:9.1f} us a step   {o.ranks * one / quern:6.2f} times the images of one rank")
        table(taken, quern)
    dist.barrier(meet)
    dist.destroy_process_group()


def digits(o, c1, c2, batch, ranks=1):
    environment = dict(os.environ, QUERN_MATH=o.math)
    environment.setdefault("QUERN_BACKEND", "nccl,cuda" if ranks > 1 else "cuda")
    command = [o.digits, "--quiet", "--epochs=2", f"--width={c1},{c2}", f"--batch={batch}"] + ([f"--ranks={ranks}"] if ranks > 1 else []) + (["--norm"] if o.norm else []) + (["--data=" + o.data] if o.data else [])
    text = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = re.search(r"replayed +([0-9.]+) ms", text.stdout)
    if not found:
        sys.exit(f"{' '.join(command)}: {text.stdout}{text.stderr}")
    return float(found.group(1)) * 1e-3


def heading(o, c1, c2):
    print(f"batch {o.batch}, {c1} and {c2} channels{', batch norm' if o.norm else ''}, math {o.math}; PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}")


def table(taken, quern):
    for name, samples in taken.items():
        median = statistics.median(samples)
        print(f"{'PyTorch, ' + name:35} {median * 1e6:9.1f} us a step   {median / quern:6.2f}x")


def settle(o):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = o.math == "tf32"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", default=os.path.join(here, "../build/examples/cnn_digits"))
    parser.add_argument("--data", help="digits.csv, where cnn_digits does not find it")
    parser.add_argument("--width", default="64,128")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--math", default="f32", choices=["f32", "tf32"])
    parser.add_argument("--norm", action="store_true", help="batch norm behind each convolution, on both sides")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1, help="GPUs that train together; --batch is of all")
    parser.add_argument("--port", type=int, default=29712, help="by which the ranks of PyTorch meet")
    o = parser.parse_args()
    c1, c2 = map(int, o.width.split(","))
    if o.ranks > 1:
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")        # its watchdog queries events, which a capture forbids
        return torch.multiprocessing.spawn(parallel_rank, (o, c1, c2), o.ranks)
    settle(o)
    ways = {"eager, Adam for each": warm(Step(c1, c2, o.batch, o.norm, foreach=True)), "eager, Adam fused": warm(Step(c1, c2, o.batch, o.norm, fused=True)),
            "CUDA graph, Adam for each": captured(Step(c1, c2, o.batch, o.norm, foreach=True, capturable=True)),
            "CUDA graph, Adam fused": captured(Step(c1, c2, o.batch, o.norm, fused=True, capturable=True))}
    taken = {name: [] for name in ways}
    ours = []
    for _ in range(o.rounds):
        ours.append(digits(o, c1, c2, o.batch))
        for name, step in ways.items():
            taken[name].append(seconds_of(step))
    quern = statistics.median(ours)
    heading(o, c1, c2)
    print(f"{'Quern, recorded and replayed':35} {quern * 1e6:9.1f} us a step")
    table(taken, quern)


if __name__ == "__main__":
    main()
