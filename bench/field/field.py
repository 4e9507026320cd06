#!/usr/bin/env python3
"""field.py -- writes the problems that real networks run as workloads: bench/workloads/field_*.q.

Models of timm, torchvision, transformers, diffusers and monai are built with random weights on PyTorch's meta device, which
computes shapes alone, and run once; every convolution, product, norm, pool and softmax that reaches PyTorch's dispatcher becomes
a problem line in the layout that PyTorch hands over, with the number of models that run it (models=) and of its calls (count=).

    pip install torch torchvision timm transformers diffusers monai
    bench/field/field.py [--models WORD] [--out DIR] [--rows N]

A workload has the N problems that most models run, of each kind and layout, dtypes in turn.
"""
import argparse
import collections
import os
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

warnings.filterwarnings("ignore")
DTYPES = ("f32", "f16", "bf16")

# ---- the models: name, maker, input shapes (the last word of a shape: float or an integer's range) --------------

TIMM = """resnet50 resnext50_32x4d resnext101_64x4d wide_resnet50_2 regnetx_032 regnety_016 regnety_160 efficientnet_b0 efficientnet_b4
efficientnetv2_rw_s mobilenetv2_100 mobilenetv3_large_100 mobilenetv4_conv_medium convnext_tiny convnextv2_nano vit_base_patch16_224
vit_large_patch14_224 vit_base_patch32_224 swin_tiny_patch4_window7_224 maxvit_tiny_tf_224 coatnet_0_rw_224 poolformer_s12 mixer_b16_224
densenet121 inception_v3 inception_v4 xception41 vgg19 ghostnet_100 dla34 dpn68 hrnet_w18_small res2net50_26w_4s skresnet18 resnest50d
dm_nfnet_f0 repvgg_a2 fastvit_t8 efficientformer_l1 edgenext_small mobilevit_s mobileone_s1 levit_128 beit_base_patch16_224 davit_tiny
focalnet_tiny_srf mnasnet_100 fbnetc_100 rexnet_100 pvt_v2_b1 twins_svt_small xcit_tiny_12_p16_224 volo_d1_224 cspdarknet53 gernet_s
hardcorenas_a tinynet_a crossvit_9_240 sequencer2d_s inception_next_tiny rdnet_tiny starnet_s1 repvit_m1""".split()
VISION = """alexnet squeezenet1_1 shufflenet_v2_x1_0 googlenet mnasnet0_5 vgg16_bn""".split()
SEGMENTATION = "deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large".split()
VIDEO = "r3d_18 mc3_18 r2plus1d_18 s3d mvit_v2_s swin3d_t".split()


def makers():
    """Yields name, function that makes the model, positional inputs, keyword inputs (shape, kind) on meta."""
    image = lambda size=224, n=8: {"x": ((n, 3, size, size), torch.float32)}
    import timm
    for name in TIMM:
        size = {"inception_v3": 299, "inception_v4": 299, "crossvit_9_240": 240}.get(name, 224)
        yield "timm." + name, (lambda name=name: timm.create_model(name)), image(size), True
    import torchvision.models as tv
    for name in VISION:
        yield "torchvision." + name, (lambda name=name: getattr(tv, name)(weights=None)), image(), True
    for name in SEGMENTATION:
        yield "torchvision." + name, (lambda name=name: getattr(tv.segmentation, name)(weights=None, weights_backbone=None)), image(512, 2), True
    for name in VIDEO:
        yield "torchvision." + name, (lambda name=name: getattr(tv.video, name)(weights=None)), {"x": ((2, 3, 16, 224, 224), torch.float32)}, True
    import transformers as hf
    sound = {"input_values": ((4, 160000), torch.float32)}
    tokens = {"input_ids": ((4, 512), torch.long)}
    configured = [
        ("Wav2Vec2Model", hf.Wav2Vec2Config(), sound), ("HubertModel", hf.HubertConfig(), sound),
        ("Wav2Vec2ConformerModel", hf.Wav2Vec2ConformerConfig(num_hidden_layers=4), sound), ("SEWModel", hf.SEWConfig(), sound),
        ("WhisperModel", hf.WhisperConfig(), {"input_features": ((4, 80, 3000), torch.float32), "decoder_input_ids": ((4, 64), torch.long)}),
        ("ASTModel", hf.ASTConfig(), {"input_values": ((4, 1024, 128), torch.float32)}),
        ("EncodecModel", hf.EncodecConfig(), {"input_values": ((4, 1, 24000), torch.float32)}),
        ("SpeechT5HifiGan", hf.SpeechT5HifiGanConfig(), {"spectrogram": ((4, 200, 80), torch.float32)}),
        ("UnivNetModel", hf.UnivNetConfig(), {"input_features": ((4, 200, 100), torch.float32)}),
        ("MambaModel", hf.MambaConfig(num_hidden_layers=2), tokens), ("BertModel", hf.BertConfig(num_hidden_layers=2), tokens),
        ("GPT2Model", hf.GPT2Config(n_layer=2), tokens), ("T5EncoderModel", hf.T5Config(num_layers=2), tokens),
        ("LlamaModel", hf.LlamaConfig(num_hidden_layers=2), tokens), ("ConvBertModel", hf.ConvBertConfig(num_hidden_layers=2), tokens),
        ("SegformerModel", hf.SegformerConfig(), {"pixel_values": ((2, 3, 512, 512), torch.float32)}),
        ("DPTModel", hf.DPTConfig(image_size=384), {"pixel_values": ((2, 3, 384, 384), torch.float32)}),
        ("CLIPVisionModel", hf.CLIPVisionConfig(), {"pixel_values": ((8, 3, 224, 224), torch.float32)}),
        ("VideoMAEModel", hf.VideoMAEConfig(num_hidden_layers=2), {"pixel_values": ((2, 16, 3, 224, 224), torch.float32)}),
        ("VivitModel", hf.VivitConfig(num_hidden_layers=2), {"pixel_values": ((2, 32, 3, 224, 224), torch.float32)}),
        ("ConvNextModel", hf.ConvNextConfig(), {"pixel_values": ((8, 3, 224, 224), torch.float32)}),
    ]
    for name, config, inputs in configured:
        yield "transformers." + name, (lambda name=name, config=config: getattr(hf, name)(config)), inputs, False
    import diffusers
    latent = {"sample": ((2, 4, 64, 64), torch.float32), "timestep": ((2,), torch.long), "encoder_hidden_states": ((2, 77, 768), torch.float32)}
    yield "diffusers.UNet2DConditionModel", lambda: diffusers.UNet2DConditionModel(cross_attention_dim=768), latent, False
    yield "diffusers.AutoencoderKL", (lambda: diffusers.AutoencoderKL(block_out_channels=(128, 256, 512, 512),
          down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2)), \
          {"sample": ((1, 3, 512, 512), torch.float32)}, False
    import monai.networks.nets as nets
    volume = {"x": ((1, 1, 96, 96, 96), torch.float32)}
    yield "monai.UNet", lambda: nets.UNet(3, 1, 14, (16, 32, 64, 128, 256), (2, 2, 2, 2), num_res_units=2), volume, True
    yield "monai.SegResNet", lambda: nets.SegResNet(3, 16, 1, 4), volume, True
    yield "monai.DynUNet", lambda: nets.DynUNet(3, 1, 3, [3, 3, 3, 3], [1, 2, 2, 2], [2, 2, 2]), volume, True
    yield "monai.UNETR", lambda: nets.UNETR(1, 14, (96, 96, 96)), volume, True


# ---- problem lines -------------------------------------------------------------------------------------------------

def dims(shape):
    return "x".join(str(d) for d in shape)


def each(values):
    values = list(values)
    return str(values[0]) if len(set(values)) == 1 else ",".join(map(str, values))


def last(t):
    """The layout's name, where the tensor is channels last in memory."""
    return "/nhwc" if t.dim() in (4, 5) and t.shape[1] > 1 and t.stride(1) == 1 and t.stride(-1) == t.shape[1] else ""


def convolution(args, out):
    x, w, bias, stride, pad, dilation, transposed, _, groups = args[:9]
    attr = "".join(f" {n}={each(v)}" for n, v, d in (("stride", stride, 1), ("pad", pad, 0), ("dilation", dilation, 1)) if set(v) != {d})
    attr += f" groups={groups}" if groups > 1 else ""
    if transposed:
        return "conv", f"conv_backward_data dy=T/{dims(x.shape)}{last(x)} w=T/{dims(w.shape)} dx=T/{dims(out.shape)}{last(x)}{attr}"
    return "conv", f"conv_forward x=T/{dims(x.shape)}{last(x)} w=T/{dims(w.shape)}" + \
        (f" bias=T/{w.shape[0]}" if bias is not None else "") + attr


def side(t):
    return f"T/{dims(t.shape)}" + ("/t" if t.dim() >= 2 and t.stride(-1) != 1 and t.stride(-2) == 1 and t.shape[-1] > 1 else "")


def product(a, b, bias=None):
    line = f"matmul a={side(a)} b={side(b)}"
    return "matmul", line + (f" bias=T/{bias.shape[-1]}" if bias is not None else "")


def pool(kind, args):
    x, window = args[0], args[1]
    stride = args[2] if len(args) > 2 and args[2] else window
    pad = args[3] if len(args) > 3 else [0]
    line = f"pool_{kind} x=T/{dims(x.shape)}{last(x)} window={each(window)} stride={each(stride)}" + (f" pad={each(pad)}" if any(pad) else "")
    at = 5 if kind == "max" else 4
    return "pool", line + (" ceil_mode=1" if len(args) > at and args[at] is True else "")


def line_of(name, args, out):
    """(kind, line) of a call, or None. T stands for the dtype."""
    if name == "convolution": return convolution(args, out)
    if name in ("mm", "bmm"): return product(args[0], args[1])
    if name == "addmm": return product(args[1], args[2], args[0] if args[0].dim() == 1 else None)
    if name == "native_layer_norm":
        n = len(args[1])
        rows = args[0].numel() // max(1, torch.Size(args[1]).numel())
        width = torch.Size(args[1]).numel()
        return "norm", f"layer_norm x=T/{rows}x{width} scale=T/1x{width} shift=T/1x{width} mean=? rstd=?" if n and args[2] is not None else None
    if name in ("native_batch_norm", "_native_batch_norm_legit_no_training"):
        x = args[0]
        one = "1x" + dims([x.shape[1]] + [1] * (x.dim() - 2))
        return "norm", f"batch_norm_inference x=T/{dims(x.shape)}{last(x)} mean=f32/{one} var=f32/{one} scale=f32/{one} shift=f32/{one}"
    if name == "max_pool2d_with_indices": return pool("max", args)
    if name in ("avg_pool2d", "avg_pool1d", "avg_pool3d"): return pool("average", args)
    if name in ("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"):
        return "pool", f"pool_adaptive_average x=T/{dims(args[0].shape)}{last(args[0])} size={each(args[1])}"
    if name == "mean" and len(args) > 1 and args[0].dim() >= 4:
        axes = sorted(d % args[0].dim() for d in args[1])
        return "pool", f"reduce_mean x=T/{dims(args[0].shape)}{last(args[0])} axis={','.join(map(str, axes))}"
    if name == "_softmax":
        return "softmax", f"softmax x=T/{dims(args[0].shape)}" + (f" axis={args[1] % args[0].dim()}" if args[1] % args[0].dim() != args[0].dim() - 1 else "")
    return None


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        try:
            found = line_of(func.overloadpacket.__name__, args, out)
        except (IndexError, TypeError, AttributeError):
            found = None
        if found and found[1]: self.calls[found] += 1
        return out


def run(make, inputs, positional, channels_last):
    """The calls of one model, in inference."""
    with torch.device("meta"):
        model = make().eval()
        tensors = {k: torch.empty(s, dtype=d) if d.is_floating_point else torch.zeros(s, dtype=d) for k, (s, d) in inputs.items()}
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        tensors = {k: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for k, t in tensors.items()}
    recorder = Recorder()
    with torch.no_grad(), recorder:
        model(*tensors.values()) if positional else model(**tensors)
    return recorder.calls


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", default="", help="only models whose name contains this")
    options.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
    options.add_argument("--rows", type=int, default=60, help="problems of each kind and layout in a workload")
    given = options.parse_args()
    models, calls, done, failed = collections.Counter(), collections.Counter(), [], []
    for name, make, inputs, positional in makers():
        if given.models not in name: continue
        for channels_last in (False, True):
            try:
                found = run(make, inputs, positional, channels_last)
            except Exception as e:                       # a model that does not run on meta says why, and is left out
                failed.append(f"{name}: {type(e).__name__}: {str(e)[:100]}")
                break
            layout = "channels last" if channels_last else "as handed over"
            for (kind, line), n in found.items():
                models[kind, layout, line] += 1
                calls[kind, layout, line] += n
        else:
            done.append(name)
    for f in failed: print(f, file=sys.stderr)
    print(f"{len(done)} models, {len(failed)} left out", file=sys.stderr)
    for kind in sorted({k for k, _, _ in models}):
        with open(os.path.join(given.out, f"field_{kind}.q"), "w") as f:
            f.write(f"# The {kind} problems that most of {len(done)} models run, with the number of models and of calls. Made by bench/field/field.py.\n")
            written = set()
            for layout in ("as handed over", "channels last"):
                rows = [(n, l) for (k, lay, l), n in models.items() if k == kind and lay == layout and l not in written]
                rows.sort(key=lambda r: (-r[0], -calls[kind, layout, r[1]], r[1]))
                if rows: f.write(f"\n# {layout}\n")
                for i, (n, line) in enumerate(rows[:given.rows]):
                    written.add(line)
                    f.write(f"{line.replace('=T', '=' + DTYPES[i % 3])} ; models={n} count={calls[kind, layout, line]}\n")


if __name__ == "__main__":
    main()
