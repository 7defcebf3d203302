#!/usr/bin/env python3
"""Records PyTorch's layers, output and all gradients: writes layers.json beside itself.

Inputs, parameters and d loss/d output are drawn from a formula that tests/nn/layer_test.cpp repeats, so they need not be
stored: `fill`. A layer is run for some steps in training, with other inputs in each; kept are the last step's output and
gradients, the state after it, and the output in evaluation.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

FOLDER = pathlib.Path(__file__).parent


def fill(shape, salt):
    count = math.prod(shape)
    values = [1.6 * math.sin(12.9898 * (i + 1) + 4.1 * salt) for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).float().reshape(shape)


def numbers(tensor):
    return [float(f"{v:.8g}") for v in tensor.detach().flatten().tolist()]


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def lrn_within(size, alpha, beta, k):
    return Function(lambda x: x * (k + alpha * F.avg_pool2d(x * x, size, 1, size // 2)).pow(-beta))


def local_contrast(window, deviation, subtractive=True, divisive=True):
    at = torch.arange(window) - window // 2
    line = torch.exp(-0.5 * (at / deviation) ** 2)
    kernel = torch.outer(line, line)[None, None]

    def local_mean(x):
        m = x.mean(1, keepdim=True)
        inside = F.conv2d(torch.ones_like(m[:1]), kernel, padding=window // 2)
        return F.conv2d(m, kernel, padding=window // 2) / inside

    def run(x):
        if subtractive:
            x = x - local_mean(x)
        if not divisive:
            return x
        deviations = local_mean(x * x).sqrt()
        return x / torch.maximum(deviations, deviations.mean((2, 3), keepdim=True))

    return Function(run)


def frozen_batch_norm():
    layer = nn.BatchNorm2d(3)
    layer.running_mean.copy_(fill((3,), 50))
    layer.running_var.copy_(1 + 0.5 * fill((3,), 51).abs())
    layer.weight.data.copy_(0.5 + 0.4 * fill((3,), 52))
    layer.bias.data.copy_(fill((3,), 53))
    layer.requires_grad_(False)
    layer.train = lambda mode=True: layer
    layer.training = False
    return layer


class SqueezeExcite(nn.Module):
    """torchvision.ops.SqueezeExcitation."""

    def __init__(self, channels, squeezed, activation, scale):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.activation, self.scale = activation, scale

    def forward(self, x):
        return x * self.scale(self.fc2(self.activation(self.fc1(F.adaptive_avg_pool2d(x, 1)))))


class Tied(nn.Module):
    """An embedding whose table is also the output layer's weight."""

    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, x):
        return self.output(self.embedding(x))


class SwiGLU(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        return F.silu(a) * b


def spectral(layer, iterations=1):
    layer = spectral_norm(layer, n_power_iterations=iterations)
    for k, name in enumerate(("_u", "_v")):
        vector = getattr(layer.parametrizations.weight[0], name)
        vector.copy_(F.normalize(fill(vector.shape, 60 + k), dim=0))
    return layer


def up(**options):
    return nn.Upsample(**options)


IMAGES = (2, 6, 4, 5)
CASES = {
    "layer_norm": (nn.LayerNorm(5), (2, 3, 5)),
    "layer_norm of two dimensions": (nn.LayerNorm([3, 5], eps=1e-3), (2, 3, 5)),
    "layer_norm without affine": (nn.LayerNorm(5, elementwise_affine=False), (4, 5)),
    "layer_norm without bias": (nn.LayerNorm(5, bias=False), (4, 5)),
    "rms_norm": (nn.RMSNorm(5), (2, 3, 5)),
    "rms_norm of two dimensions": (nn.RMSNorm([3, 5], eps=0.1), (2, 3, 5)),
    "rms_norm without affine": (nn.RMSNorm(5, elementwise_affine=False), (4, 5)),
    "group_norm": (nn.GroupNorm(2, 6), IMAGES),
    "group_norm, a channel a group": (nn.GroupNorm(6, 6, eps=1e-3), (2, 6, 4)),
    "group_norm without affine": (nn.GroupNorm(3, 6, affine=False), (2, 6, 4)),
    "instance_norm1d": (nn.InstanceNorm1d(3), (2, 3, 5)),
    "instance_norm2d affine": (nn.InstanceNorm2d(3, affine=True, eps=1e-3), (2, 3, 4, 2)),
    "instance_norm3d": (nn.InstanceNorm3d(2, affine=True), (2, 2, 2, 3, 2)),
    "instance_norm2d tracking": (nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 4, 2)),
    "instance_norm1d tracking": (nn.InstanceNorm1d(3, momentum=0.3, track_running_stats=True), (2, 3, 5)),
    "batch_norm1d of rows": (nn.BatchNorm1d(3), (5, 3)),
    "batch_norm1d": (nn.BatchNorm1d(3, eps=1e-3, momentum=0.3), (2, 3, 5)),
    "batch_norm3d": (nn.BatchNorm3d(2), (2, 2, 2, 3, 2)),
    "batch_norm2d cumulative": (nn.BatchNorm2d(3, momentum=None), (2, 3, 4, 2)),
    "batch_norm2d without affine": (nn.BatchNorm2d(3, affine=False), (2, 3, 4, 2)),
    "batch_norm2d without statistics": (nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 2)),
    "batch_norm2d frozen": (frozen_batch_norm(), (2, 3, 4, 2)),
    "local_response_norm": (nn.LocalResponseNorm(3), IMAGES),
    "local_response_norm even": (nn.LocalResponseNorm(4, alpha=0.5, beta=0.6, k=2), (2, 6, 5)),
    "local_response_norm within": (lrn_within(3, 0.5, 0.75, 1), IMAGES),
    "local_contrast_norm": (local_contrast(5, 1.25), (2, 3, 7, 6)),
    "local_contrast_norm subtractive": (local_contrast(3, 2.0, divisive=False), (2, 3, 7, 6)),
    "local_contrast_norm divisive": (local_contrast(3, 0.75, subtractive=False), (2, 3, 7, 6)),
    "upsample nearest 1d to size": (up(size=7), (2, 3, 5)),
    "upsample nearest 2d": (up(scale_factor=2), (2, 3, 4, 5)),
    "upsample nearest 2d by fractions": (up(scale_factor=(1.5, 0.7)), (2, 3, 4, 5)),
    "upsample nearest 3d": (up(scale_factor=2), (1, 2, 2, 3, 2)),
    "upsample nearest-exact 1d to size": (up(size=7, mode="nearest-exact"), (2, 3, 5)),
    "upsample nearest-exact 2d to sizes": (up(size=(7, 3), mode="nearest-exact"), (2, 3, 4, 5)),
    "upsample nearest-exact 2d by fractions": (up(scale_factor=(1.5, 0.7), mode="nearest-exact"), (2, 3, 4, 5)),
    "upsample nearest-exact 3d": (up(scale_factor=2, mode="nearest-exact"), (1, 2, 2, 3, 2)),
    "upsample linear": (up(scale_factor=2, mode="linear"), (2, 3, 5)),
    "upsample linear aligned": (up(size=9, mode="linear", align_corners=True), (2, 3, 5)),
    "upsample bilinear": (up(scale_factor=2, mode="bilinear"), (2, 3, 4, 5)),
    "upsample bilinear by fractions": (up(scale_factor=(1.7, 0.6), mode="bilinear"), (2, 3, 4, 5)),
    "upsample bilinear aligned": (up(size=(7, 3), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    "upsample bilinear to one": (up(size=(1, 8), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    "upsample trilinear": (up(scale_factor=2, mode="trilinear"), (1, 2, 2, 3, 2)),
    "upsample bicubic": (up(scale_factor=2, mode="bicubic"), (2, 2, 4, 5)),
    "upsample bicubic aligned": (up(size=(3, 9), mode="bicubic", align_corners=True), (2, 2, 4, 5)),
    "zero_pad1d": (nn.ZeroPad1d((1, 2)), (2, 3, 5)),
    "zero_pad2d": (nn.ZeroPad2d((1, 0, 2, 3)), (2, 3, 4, 5)),
    "constant_pad3d": (nn.ConstantPad3d((1, 2, 0, 1, 1, 0), 2.5), (1, 2, 2, 3, 2)),
    "reflection_pad1d": (nn.ReflectionPad1d((4, 2)), (2, 3, 5)),
    "reflection_pad2d": (nn.ReflectionPad2d((1, 2, 3, 0)), (2, 3, 4, 5)),
    "reflection_pad3d": (nn.ReflectionPad3d((1, 0, 2, 1, 1, 1)), (1, 2, 2, 3, 2)),
    "replication_pad1d": (nn.ReplicationPad1d((6, 1)), (2, 3, 5)),
    "replication_pad2d": (nn.ReplicationPad2d(2), (2, 3, 4, 5)),
    "replication_pad3d": (nn.ReplicationPad3d((1, 0, 2, 1, 1, 3)), (1, 2, 2, 3, 2)),
    "circular_pad1d": (nn.CircularPad1d((2, 5)), (2, 3, 5)),
    "circular_pad2d": (nn.CircularPad2d((1, 2, 3, 0)), (2, 3, 4, 5)),
    "circular_pad3d": (nn.CircularPad3d((1, 0, 2, 1, 1, 2)), (1, 2, 2, 3, 2)),
    "pixel_shuffle": (nn.PixelShuffle(2), (2, 12, 2, 3)),
    "pixel_unshuffle": (nn.PixelUnshuffle(2), (2, 3, 4, 6)),
    "channel_shuffle": (nn.ChannelShuffle(3), (2, 6, 2, 3)),
    "prelu": (nn.PReLU(), (2, 3, 5)),
    "prelu by channel": (nn.PReLU(3), (2, 3, 4, 2)),
    "relu6": (Function(lambda x: F.relu6(5 * x)), (2, 9)),
    "selu": (nn.SELU(), (2, 9)),
    "celu": (nn.CELU(1.5), (2, 9)),
    "mish": (nn.Mish(), (2, 9)),
    "log_sigmoid": (nn.LogSigmoid(), (2, 9)),
    "softsign": (nn.Softsign(), (2, 9)),
    "hardtanh": (nn.Hardtanh(-0.5, 0.7), (2, 9)),
    "softmin": (nn.Softmin(1), (2, 3, 4)),
    "softmax": (nn.Softmax(1), (2, 3, 4)),
    "log_softmax": (nn.LogSoftmax(-1), (2, 3, 4)),
    "glu": (nn.GLU(1), (2, 6, 3)),
    "swiglu": (SwiGLU(), (2, 3, 6)),
    "squeeze_excite": (SqueezeExcite(6, 2, F.relu, torch.sigmoid), IMAGES),
    "squeeze_excite of MobileNetV3": (SqueezeExcite(6, 3, F.relu, F.hardsigmoid), IMAGES),
    "embedding": (nn.Embedding(6, 4), torch.tensor([[0, 3, 3], [5, 0, 3]])),
    "embedding with padding": (nn.Embedding(6, 4, padding_idx=3), torch.tensor([[0, 3, 3], [5, 0, 3]])),
    "tied embedding": (Tied(), torch.tensor([[0, 3, 3], [5, 0, 3]])),
    "weight_norm linear": (weight_norm(nn.Linear(5, 3)), (2, 5)),
    "weight_norm conv2d": (weight_norm(nn.Conv2d(2, 3, 3)), (2, 2, 4, 5)),
    "spectral_norm linear": (spectral(nn.Linear(5, 3)), (2, 5)),
    "spectral_norm conv2d": (spectral(nn.Conv2d(2, 3, 3, bias=False), 2), (2, 2, 4, 5)),
}


def record_case(layer, x):
    steps = 1
    with torch.no_grad():
        trained = sorted(name for name, p in layer.named_parameters() if p.requires_grad)
        for k, name in enumerate(trained):
            p = layer.get_parameter(name)
            p.copy_(0.5 + 0.4 * fill(p.shape, 3 + k))
    state = {n for n, _ in layer.named_buffers()} | {n for n, p in layer.named_parameters() if not p.requires_grad}
    if state:
        steps = 2
    before = {n: numbers(layer.state_dict()[n]) for n in state}
    layer.train()
    for step in range(steps):
        data = x if torch.is_tensor(x) else fill(x, 1 + 20 * step).requires_grad_()
        layer.zero_grad()
        output = layer(data)
        output.backward(fill(output.shape, 2))
    gradients = {n: numbers(layer.get_parameter(n).grad) for n in trained}
    if not torch.is_tensor(x):
        gradients["x"] = numbers(data.grad)
    record = {"shape": list(data.shape), "steps": steps, "parameters": trained, "output": numbers(output),
              "output shape": list(output.shape), "gradients": gradients}
    if torch.is_tensor(x):
        record["indices"] = x.flatten().tolist()
    if state:
        record["before"] = before
        record["after"] = {n: numbers(layer.state_dict()[n]) for n in state}
        layer.eval()
        record["evaluated"] = numbers(layer(data))
    return record


record = {"torch": torch.__version__, "layers": {n: record_case(layer, x) for n, (layer, x) in CASES.items()}}
(FOLDER / "layers.json").write_text(json.dumps(record, separators=(",", ":")).replace('},"', '},\n"') + "\n")
