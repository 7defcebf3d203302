#!/usr/bin/env python3
"""Records the outputs of published networks whose weights are in a folder: weights_networks.json beside itself. Inputs are
drawn from Philox, as tests/weights/networks.cpp draws them. Needs torch, h5py and Keras 3.

  weights_networks.py FOLDER
"""
import json
import os
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

from zoo_numbers import uniform

FOLDER = pathlib.Path(__file__).parent
KEPT = 24


class Crepe(nn.Module):
    """Pitch (Kim et al., "CREPE", 2018), tiny: frames (N, 1024) → (N, 360)."""

    def __init__(self):
        super().__init__()
        sizes = [1, 128, 16, 16, 16, 32, 64]
        for i in range(6):
            kernel, stride = ((512, 1), (4, 1)) if i == 0 else ((64, 1), (1, 1))
            setattr(self, f"conv{i + 1}", nn.Conv2d(sizes[i], sizes[i + 1], kernel, stride))
            setattr(self, f"conv{i + 1}_BN", nn.BatchNorm2d(sizes[i + 1], eps=0.0010000000474974513))
        self.classifier = nn.Linear(256, 360)

    def forward(self, x):
        x = x[:, None, :, None]
        for i in range(6):
            x = F.pad(x, (0, 0, 254, 254) if i == 0 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i + 1}_BN")(F.relu(getattr(self, f"conv{i + 1}")(x)))
            x = F.max_pool2d(x, (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).reshape(-1, 256)))


class Mtcnn(nn.Module):
    """The networks of MTCNN (Zhang et al., 2016): convolutions with PReLU and pooling, dense layers, then the heads."""

    def __init__(self, convs, pools, dense, heads):
        super().__init__()
        self.steps, inputs = [], 3
        for i, (outputs, kernel) in enumerate(convs, 1):
            setattr(self, f"conv{i}", nn.Conv2d(inputs, outputs, kernel))
            setattr(self, f"prelu{i}", nn.PReLU(outputs))
            self.steps.append((f"conv{i}", f"prelu{i}", pools[i - 1]))
            inputs = outputs
        self.dense, count = None, len(convs) + 1
        if dense:
            self.dense = (f"dense{count}", f"prelu{count}")
            setattr(self, self.dense[0], nn.Linear(*dense))
            setattr(self, self.dense[1], nn.PReLU(dense[1]))
            count, inputs = count + 1, dense[1]
        self.heads = []
        for i, outputs in enumerate(heads, 1):
            name = f"dense{count}_{i}" if dense else f"conv{count}_{i}"
            setattr(self, name, nn.Linear(inputs, outputs) if dense else nn.Conv2d(inputs, outputs, 1))
            self.heads.append(name)

    def forward(self, x):
        for conv, prelu, pool in self.steps:
            x = getattr(self, prelu)(getattr(self, conv)(x))
            if pool:
                x = F.max_pool2d(x, *pool, ceil_mode=True)
        if self.dense:
            x = x.permute(0, 3, 2, 1).flatten(1)
            x = getattr(self, self.dense[1])(getattr(self, self.dense[0])(x))
        outputs = [getattr(self, name)(x) for name in self.heads]
        outputs[0] = F.softmax(outputs[0], 1)
        return torch.cat(outputs, 1)


class LpipsHeads(nn.Module):
    """The linear heads of LPIPS (Zhang et al., 2018), each on its slice of the channels: (N, channels, H, W) → (N, heads)."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        for i, c in enumerate(channels):
            setattr(self, f"lin{i}", nn.Module())
            getattr(self, f"lin{i}").model = nn.Sequential(nn.Dropout(), nn.Conv2d(c, 1, 1, bias=False))

    def forward(self, x):
        parts = x.split(self.channels, 1)
        return torch.cat([getattr(self, f"lin{i}").model(p).mean((2, 3)) for i, p in enumerate(parts)], 1)


NETWORKS = {
    "crepe_tiny.pth": (Crepe, [1024]),
    "pnet.pt": (lambda: Mtcnn([(10, 3), (16, 3), (32, 3)], [(2, 2), None, None], None, [2, 4]), [3, 31, 40]),
    "rnet.pt": (lambda: Mtcnn([(28, 3), (48, 3), (64, 2)], [(3, 2), (3, 2), None], (576, 128), [2, 4]), [3, 24, 24]),
    "onet.pt": (lambda: Mtcnn([(32, 3), (64, 3), (64, 3), (128, 2)], [(3, 2), (3, 2), (2, 2), None], (1152, 256),
                              [2, 4, 10]), [3, 48, 48]),
    "lpips_alex.pth": (lambda: LpipsHeads([64, 192, 384, 256, 256]), [1152, 3, 3]),
    "lpips_squeeze.pth": (lambda: LpipsHeads([64, 128, 256, 384, 384, 512, 512]), [2240, 3, 3]),
}


def thinned(y):
    flat = y.flatten().tolist()
    return [float(f"{v:.8g}") for v in flat[::max(1, len(flat) // KEPT)][:KEPT]]


def mini_xception(path):
    """fer_emotion.hdf5 in Keras: the same layers by the same names, filled by name."""
    os.environ["KERAS_BACKEND"] = "torch"
    import h5py
    import keras
    from keras import layers as L

    def norm(n):
        return L.BatchNormalization(epsilon=0.001, name=f"batch_normalization_{n}")
    x = inputs = L.Input((64, 64, 1))
    for n in (1, 2):
        x = L.ReLU()(norm(n)(L.Conv2D(8, 3, use_bias=False, name=f"conv2d_{n}")(x)))
    for k, channels in enumerate((16, 32, 64, 128)):
        residual = norm(3 + 3 * k)(L.Conv2D(channels, 1, 2, "same", use_bias=False, name=f"conv2d_{3 + k}")(x))
        for i in (1, 2):
            name = f"separable_conv2d_{2 * k + i}"
            x = norm(3 + 3 * k + i)(L.SeparableConv2D(channels, 3, padding="same", use_bias=False, name=name)(x))
            x = L.ReLU()(x) if i == 1 else L.MaxPooling2D(3, 2, "same")(x)
        x = L.Add()([x, residual])
    x = L.Conv2D(7, 3, padding="same", name="conv2d_7")(x)
    model = keras.Model(inputs, L.Softmax()(L.GlobalAveragePooling2D()(x)))
    with h5py.File(path) as file:
        for layer in model.layers:
            if layer.weights:
                group = file[f"model_weights/{layer.name}/{layer.name}_1"]
                layer.set_weights([group[f"{v.name}:0"][()] for v in layer.weights])
    image = uniform("golden.input", [2, 1, 64, 64], -1, 1).float()
    return model(image.permute(0, 2, 3, 1)).detach().cpu()


def main():
    recorded = {}
    for name, (make, input) in NETWORKS.items():
        network = make()
        network.load_state_dict(torch.load(pathlib.Path(sys.argv[1]) / name, map_location="cpu", weights_only=True))
        with torch.no_grad():
            y = network.double().eval()(uniform("golden.input", [2, *input], -1, 1))
        recorded[name] = {"input": input, "outputs": thinned(y)}
    fer = pathlib.Path(sys.argv[1]) / "fer_emotion.hdf5"
    recorded[fer.name] = {"input": [1, 64, 64], "outputs": thinned(mini_xception(fer))}
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in recorded)
    (FOLDER / "weights_networks.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
