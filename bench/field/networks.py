#!/usr/bin/env python3
"""networks.py -- writes whole networks, in inference, as graphs of one line: bench/workloads/networks.q.

    bench/field/networks.py [--networks WORD] [--batch N] [--out FILE]

The nine convolutional networks that ONNX's model zoo began with, SqueezeNet in both versions, from their definitions; nothing beside
Python is needed. As the networks are given: a batch norm stands behind its convolution, with statistics of f32; dropout, which does nothing
in inference, is left out. As no op reshapes, a dense layer that reads a whole image is a convolution whose window is that image (the same
product, the same order of its weights in memory), later ones are products of a permuted view; and a channel shuffle is a gather along the
channels, whose indices are an input named by the groups (shuffle4_7).
"""
import argparse
import math
import os


class Net:
    """A graph's lines. Values are names; dims are known by name. Convolutions, norms and dense layers declare their own weights."""

    def __init__(self, name, batch, dtype, layout, size=224):
        self.lines, self.dims, self.dtype = [], {}, dtype
        self.rows = set()                                   # values of 1x1xNxC, all others are images
        self.layout = "/nhwc" if layout == "nhwc" else ""
        self.settings = f" ; name={name}.{layout}.b{batch}.{dtype}"
        self.x = self.given("x", (batch, 3, size, size), last=self.layout)

    def given(self, name, dims, dtype=None, last=""):
        self.lines.append(f"in {name} {dtype or self.dtype}/{'x'.join(map(str, dims))}{last}")
        self.dims[name] = dims
        return name

    def op(self, text, dims):
        name = f"t{len(self.dims)}"
        self.lines.append(f"{name} = {text}")
        self.dims[name] = dims
        return name

    def weight(self, letter, dims, **more):
        return self.given(f"{letter}{len(self.dims)}", dims, **more)

    def conv(self, x, k, size, stride=1, pad=0, groups=1, bias=True):
        n, c, h, w = self.dims[x]
        weights = self.weight("w", (k, c // groups, size, size), last=self.layout)
        text = f"conv_forward x={x} w={weights}" + (f" bias={self.weight('b', (k,))}" if bias else "")
        text += "".join(f" {a}={v}" for a, v, absent in (("stride", stride, 1), ("pad", pad, 0), ("groups", groups, 1)) if v != absent)
        return self.op(text, (n, k, *((d + 2 * pad - size) // stride + 1 for d in (h, w))))

    def norm(self, x):
        four = [f"{role}={self.weight(role[:2], (1, self.dims[x][1], 1, 1), dtype='f32')}" for role in ("mean", "var", "scale", "shift")]
        return self.op(f"batch_norm_inference x={x} " + " ".join(four), self.dims[x])

    def relu(self, x):
        y = self.op(f"relu x={x}", self.dims[x])
        self.rows |= {y} if x in self.rows else set()
        return y

    def conv_relu(self, x, k, size, **geometry):
        return self.relu(self.conv(x, k, size, **geometry))

    def conv_norm(self, x, k, size, **geometry):
        return self.norm(self.conv(x, k, size, bias=False, **geometry))

    def conv_norm_relu(self, x, k, size, **geometry):
        return self.relu(self.conv_norm(x, k, size, **geometry))

    def pool(self, kind, x, size, stride, pad=0, ceil=False):
        n, c, h, w = self.dims[x]
        text = f"pool_{kind} x={x} window={size} stride={stride}" + (f" pad={pad}" if pad else "") + (" ceil_mode=1" if ceil else "")
        one = lambda d: (math.ceil if ceil else math.floor)((d + 2 * pad - size) / stride) + 1
        return self.op(text, (n, c, one(h), one(w)))

    def whole(self, x):
        """The mean of each plane."""
        return self.op(f"pool_average x={x}", (*self.dims[x][:2], 1, 1))

    def lrn(self, x):
        return self.op(f"lrn x={x} size=5", self.dims[x])

    def add(self, a, b):
        return self.op(f"add a={a} b={b}", self.dims[a])

    def concat(self, *x):
        n, _, h, w = self.dims[x[0]]
        return self.op(f"concat x=[{','.join(x)}] axis=1", (n, sum(self.dims[v][1] for v in x), h, w))

    def shuffle(self, x, groups):
        indices = self.weight(f"shuffle{groups}_", (self.dims[x][1],), dtype="i32")
        return self.op(f"gather x={x} indices={indices} axis=1", self.dims[x])

    def dense(self, x, k):
        n, c, h, w = self.dims[x]
        if h > 1 and x not in self.rows:
            return self.conv(x, k, h)
        if x not in self.rows:
            x = self.op(f"permute x={x} perm=2,3,0,1", (1, 1, n, c))
        n, c = self.dims[x][2:]
        y = self.op(f"matmul a={x} b={self.weight('w', (1, 1, c, k), last='/t')} bias={self.weight('b', (k,))}", (1, 1, n, k))
        self.rows.add(y)
        return y

    def softmax(self, x):
        return self.op(f"softmax x={x} axis={3 if x in self.rows else 1}", self.dims[x])

    def line(self, y):
        return " | ".join([*self.lines, f"out {y}"]) + self.settings


# ---- the networks: each gives its last value --------------------------------------------------------------------


def classes(n, x, widths=(), k=1000):
    for width in widths:
        x = n.relu(n.dense(x, width))
    return n.softmax(n.dense(x, k))


def alexnet(n):
    """bvlc_alexnet: two groups, norm before pool."""
    x = n.pool("max", n.lrn(n.conv_relu(n.x, 96, 11, stride=4)), 3, 2, ceil=True)
    x = n.pool("max", n.lrn(n.conv_relu(x, 256, 5, pad=2, groups=2)), 3, 2, ceil=True)
    x = n.conv_relu(x, 384, 3, pad=1)
    x = n.conv_relu(x, 384, 3, pad=1, groups=2)
    x = n.pool("max", n.conv_relu(x, 256, 3, pad=1, groups=2), 3, 2, ceil=True)
    return classes(n, x, (4096, 4096))


def zfnet512(n):
    """Images of 110, 55, 26, 13 and 6 pixels; 512 maps in each of the last three convolutions."""
    x = n.pool("max", n.lrn(n.conv_relu(n.x, 96, 7, stride=2, pad=1)), 3, 2, ceil=True)
    x = n.pool("max", n.lrn(n.conv_relu(x, 256, 5, stride=2)), 3, 2, ceil=True)
    for k in (512, 512, 512):
        x = n.conv_relu(x, k, 3, pad=1)
    return classes(n, n.pool("max", x, 3, 2), (4096, 4096))


def vgg19(n):
    x = n.x
    for k, convs in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(convs):
            x = n.conv_relu(x, k, 3, pad=1)
        x = n.pool("max", x, 2, 2)
    return classes(n, x, (4096, 4096))


def squeezenet(n, first, pools, fires):
    def fire(x, squeeze, expand):
        x = n.conv_relu(x, squeeze, 1)
        return n.concat(n.conv_relu(x, expand, 1), n.conv_relu(x, expand, 3, pad=1))

    x = n.pool("max", n.conv_relu(n.x, *first, stride=2), 3, 2, ceil=True)
    for i, width in enumerate(fires):
        x = fire(x, width, 4 * width)
        if i + 2 in pools:
            x = n.pool("max", x, 3, 2, ceil=True)
    return n.softmax(n.whole(n.conv_relu(x, 1000, 1)))


def squeezenet1_0(n):
    return squeezenet(n, (96, 7), (4, 8), (16, 16, 32, 32, 48, 48, 64, 64))


def squeezenet1_1(n):
    return squeezenet(n, (64, 3), (3, 5), (16, 16, 32, 32, 48, 48, 64, 64))


def resnet50(n):
    """v1.5: the stride is in the 3x3."""
    x = n.pool("max", n.conv_norm_relu(n.x, 64, 7, stride=2, pad=3), 3, 2, pad=1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            k, stride = 64 << stage, 2 if stage and not block else 1
            y = n.conv_norm_relu(n.conv_norm_relu(x, k, 1), k, 3, stride=stride, pad=1)
            y = n.conv_norm(y, 4 * k, 1)
            x = n.relu(n.add(y, x if block else n.conv_norm(x, 4 * k, 1, stride=stride)))
    return classes(n, n.whole(x))


def densenet121(n):
    def before(x, k, size, pad=0):
        return n.conv(n.relu(n.norm(x)), k, size, pad=pad, bias=False)

    x = n.pool("max", n.conv_norm_relu(n.x, 64, 7, stride=2, pad=3), 3, 2, pad=1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage:
            x = n.pool("average", before(x, n.dims[x][1] // 2, 1), 2, 2)
        for _ in range(layers):
            x = n.concat(x, before(before(x, 128, 1), 32, 3, pad=1))
    return classes(n, n.whole(n.relu(n.norm(x))))


def inception_v1(n):
    """GoogLeNet, without its two further outputs."""
    def block(x, k1, r3, k3, r5, k5, kp):
        return n.concat(n.conv_relu(x, k1, 1), n.conv_relu(n.conv_relu(x, r3, 1), k3, 3, pad=1),
                        n.conv_relu(n.conv_relu(x, r5, 1), k5, 5, pad=2), n.conv_relu(n.pool("max", x, 3, 1, pad=1), kp, 1))

    x = n.lrn(n.pool("max", n.conv_relu(n.x, 64, 7, stride=2, pad=3), 3, 2, ceil=True))
    x = n.pool("max", n.lrn(n.conv_relu(n.conv_relu(x, 64, 1), 192, 3, pad=1)), 3, 2, ceil=True)
    for widths in ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
                   (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
                   (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        x = block(x, *widths) if widths else n.pool("max", x, 3, 2, ceil=True)
    return classes(n, n.whole(x))


def inception_v2(n):
    """GoogLeNet with batch norm; k1 = 0: the block halves the image."""
    def block(x, k1, r3, k3, r5, k5, pool, kp):
        stride = 1 if k1 else 2
        parts = [n.conv_norm_relu(x, k1, 1)] if k1 else []
        parts.append(n.conv_norm_relu(n.conv_norm_relu(x, r3, 1), k3, 3, stride=stride, pad=1))
        parts.append(n.conv_norm_relu(n.conv_norm_relu(n.conv_norm_relu(x, r5, 1), k5, 3, pad=1), k5, 3, stride=stride, pad=1))
        pooled = n.pool(pool, x, 3, 1, pad=1) if k1 else n.pool(pool, x, 3, 2, ceil=True)
        return n.concat(*parts, n.conv_norm_relu(pooled, kp, 1) if kp else pooled)

    x = n.pool("max", n.conv_norm_relu(n.x, 64, 7, stride=2, pad=3), 3, 2, ceil=True)
    x = n.pool("max", n.conv_norm_relu(n.conv_norm_relu(x, 64, 1), 192, 3, pad=1), 3, 2, ceil=True)
    for widths in ((64, 64, 64, 64, 96, "average", 32), (64, 64, 96, 64, 96, "average", 64), (0, 128, 160, 64, 96, "max", 0),
                   (224, 64, 96, 96, 128, "average", 128), (192, 96, 128, 96, 128, "average", 128),
                   (160, 128, 160, 128, 160, "average", 128), (96, 128, 192, 160, 192, "average", 128), (0, 128, 192, 192, 256, "max", 0),
                   (352, 192, 320, 160, 224, "average", 128), (352, 192, 320, 192, 224, "max", 128)):
        x = block(x, *widths)
    return classes(n, n.whole(x))


def shufflenet(n):
    """v1, four groups; a unit is as wide inside as outside, as in the zoo's file of 5.3 MB."""
    x = n.pool("max", n.conv_norm_relu(n.x, 24, 3, stride=2, pad=1), 3, 2, pad=1)
    for stage, units in enumerate((4, 8, 4)):
        for unit in range(units):
            stride, k = 1 if unit else 2, (136 << stage) - (0 if unit else n.dims[x][1])
            y = n.shuffle(n.conv_norm_relu(x, k, 1, groups=4 if stage or unit else 1), 4)
            y = n.conv_norm(n.conv_norm(y, k, 3, stride=stride, pad=1, groups=k), k, 1, groups=4)
            x = n.relu(n.add(x, y)) if unit else n.concat(n.pool("average", x, 3, 2, pad=1), n.relu(y))
    return classes(n, n.whole(x))


NETWORKS = alexnet, densenet121, inception_v1, inception_v2, resnet50, shufflenet, squeezenet1_0, squeezenet1_1, vgg19, zfnet512


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--networks", default="", help="only networks whose name contains this")
    options.add_argument("--batch", type=int, help="this batch, of f16, in the place of the usual ones")
    options.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", "networks.q"))
    given = options.parse_args()
    with open(given.out, "w") as f:
        f.write("# Whole networks in inference, each one graph, NCHW and channels last. Made by bench/field/networks.py.\n")
        for network in NETWORKS:
            usual = ((32, "f16"), (1, "f16"), (32, "f32")) if network is resnet50 else ((32, "f16"),)
            for batch, dtype in [(given.batch, "f16")] if given.batch else usual:
                for layout in ("nchw", "nhwc"):
                    n = Net(network.__name__, batch, dtype, layout)
                    if given.networks in network.__name__:
                        f.write(n.line(network(n)) + "\n")


if __name__ == "__main__":
    main()
