#!/usr/bin/env python3
"""Records PyTorch's convolution and pooling layers, their first weights' bounds and gradients: writes conv.json beside
itself."""
import json
import pathlib

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
torch.manual_seed(3)

SIGNAL, IMAGE, VOLUME = (2, 4, 9), (1, 4, 6, 7), (1, 2, 4, 5, 6)

# name: (layer, shape of x)
LAYERS = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), SIGNAL),
    "conv2d same": (nn.Conv2d(4, 3, (2, 4), padding="same", dilation=(1, 2)), IMAGE),
    "conv2d reflect": (nn.Conv2d(4, 3, 3, padding=(2, 1), padding_mode="reflect", bias=False), IMAGE),
    "conv2d replicate": (nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode="replicate"), IMAGE),
    "conv2d circular": (nn.Conv2d(4, 3, (2, 3), padding="same", padding_mode="circular"), IMAGE),
    "conv2d depthwise": (nn.Conv2d(4, 8, 3, padding=1, groups=4), IMAGE),
    "conv3d": (nn.Conv3d(2, 3, (2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1)), VOLUME),
    "conv_transpose1d": (nn.ConvTranspose1d(4, 6, 4, stride=3, padding=1, output_padding=2, groups=2), SIGNAL),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), IMAGE),
    "conv_transpose2d dilated": (nn.ConvTranspose2d(4, 2, (2, 3), stride=(1, 2), output_padding=(2, 1),
                                                    dilation=(3, 1), bias=False), IMAGE),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 2, 2, stride=2), VOLUME),
    "max_pool1d": (nn.MaxPool1d(3, stride=2, padding=1, dilation=2), SIGNAL),
    "max_pool2d": (nn.MaxPool2d((3, 2), stride=2, padding=1, ceil_mode=True), IMAGE),
    "max_pool3d": (nn.MaxPool3d(2, stride=(1, 2, 2)), VOLUME),
    "avg_pool1d": (nn.AvgPool1d(4, stride=3, padding=2, ceil_mode=True), SIGNAL),
    "avg_pool2d": (nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), IMAGE),
    "avg_pool2d divisor": (nn.AvgPool2d((2, 3), divisor_override=4), IMAGE),
    "avg_pool3d": (nn.AvgPool3d((2, 2, 3), padding=(0, 1, 1)), VOLUME),
    "lp_pool1d": (nn.LPPool1d(3, 2), SIGNAL),
    "lp_pool2d": (nn.LPPool2d(2, 3, stride=2, ceil_mode=True), IMAGE),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d(4), SIGNAL),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d((4, 3)), IMAGE),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d((3, 2, 4)), VOLUME),
    "adaptive_max_pool1d": (nn.AdaptiveMaxPool1d(2), SIGNAL),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d((5, 2)), IMAGE),
    "adaptive_max_pool3d": (nn.AdaptiveMaxPool3d((2, 3, 1)), VOLUME),
}


class PoolAndBack(nn.Module):
    def __init__(self, rank, size=None, **options):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{rank}d")(return_indices=True, **options)
        self.back, self.size = getattr(nn, f"MaxUnpool{rank}d")(**options), size

    def forward(self, x):
        values, indices = self.pool(x)
        return self.back(values, indices, output_size=self.size)


LAYERS["max_unpool1d"] = (PoolAndBack(1, kernel_size=2, size=(9,)), SIGNAL)
LAYERS["max_unpool2d"] = (PoolAndBack(2, kernel_size=3, stride=3, padding=1, size=(6, 7)), IMAGE)
LAYERS["max_unpool3d"] = (PoolAndBack(3, kernel_size=(2, 1, 2)), VOLUME)


def rounded(tensor):
    return [float(f"{v:.7g}") for v in tensor.detach().flatten().tolist()]


def coarse(tensor):
    """Multiples of 1/16, which take few digits."""
    return torch.round(tensor * 16) / 16


def record(layer, shape):
    x = coarse(torch.rand(shape) + 0.1 if "LPPool" in type(layer).__name__ else torch.randn(shape)).requires_grad_()
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(coarse(torch.randn(p.shape)))
    y = layer(x)
    seed = coarse(torch.randn(y.shape))
    names = [name for name, _ in layer.named_parameters()]
    values = [p for _, p in layer.named_parameters()]
    gradients = torch.autograd.grad((y * seed).sum(), [x, *values])
    return {"x": rounded(x), "y": rounded(y), "shape": list(y.shape), "seed": rounded(seed),
            "dx": rounded(gradients[0]),
            "parameters": {n: {"shape": list(p.shape), "value": rounded(p), "gradient": rounded(g)}
                           for n, p, g in zip(names, values, gradients[1:])}}


record_all = {"torch": torch.__version__, "layers": {name: record(*case) for name, case in LAYERS.items()}}
(FOLDER / "conv.json").write_text(json.dumps(record_all, separators=(",", ":")) + "\n")
