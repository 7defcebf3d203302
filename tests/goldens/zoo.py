#!/usr/bin/env python3
"""Records the networks of the zoo in PyTorch: writes zoo.json beside itself.

Of each published network the names and shapes of its state; of a small variant (few classes, small images, no dropout,
batch norm in training) in double precision the outputs, the loss, the norm of every gradient and the loss after each of
three steps of SGD. Weights, inputs and targets are drawn from Philox by name, as tests/models/zoo_goldens.cpp draws
them, so they need not be stored. Needs torchvision.

  zoo.py [NETWORK…]      only these anew, the others stay as recorded
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision.models as tv
from torch import nn

FOLDER = pathlib.Path(__file__).parent
SEED, STEPS, KEPT, CONDITION = 7, 3, 16, 2e-4


# ---------------------------------------------------------------- networks that torchvision lacks
def conv_norm(i, o, kernel, activation=nn.ReLU):
    layers = [nn.Conv2d(i, o, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def mlp(classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, classes))


def lenet(classes):
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, classes))


def lenet5(classes):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
                         nn.AvgPool2d(2), nn.Conv2d(16, 120, 5), nn.Tanh(), nn.Flatten(), nn.Linear(120, 84), nn.Tanh(),
                         nn.Linear(84, classes))


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        norm = lambda i, k, s=1: nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
        self.a, self.b = norm(i, 3, stride), norm(o, 3)
        self.skip = norm(i, 1, stride) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(F.relu(self.a(x))) + self.skip(x))


def resnet20(classes):
    layers, channels = [conv_norm(3, 16, 3, None), nn.ReLU()], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(Basic(channels, width, stride if block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


class OverFeat(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 11, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(96, 256, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(256, 512, 3, padding=1), nn.ReLU(), nn.Conv2d(512, 1024, 3, padding=1), nn.ReLU(),
            nn.Conv2d(1024, 1024, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(1024 * 36, 3072), nn.ReLU(), nn.Dropout(),
                                        nn.Linear(3072, 4096), nn.ReLU(), nn.Linear(4096, classes))

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 6).flatten(1))


def nin(classes):
    def unit(i, o, kernel, stride, padding, last):
        return [nn.Conv2d(i, o, kernel, stride, padding), nn.ReLU(), nn.Conv2d(o, o, 1), nn.ReLU(),
                nn.Conv2d(o, last, 1), nn.ReLU()]
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(*unit(3, 96, 11, 4, 0, 96), pool(), *unit(96, 256, 5, 1, 2, 256), pool(),
                         *unit(256, 384, 3, 1, 1, 384), pool(), nn.Dropout(), *unit(384, 1024, 3, 1, 1, classes),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Unit(nn.Module):
    """Convolution, batch norm, relu, as the Inception networks have them."""
    def __init__(self, i, o, kernel, stride=1, padding=None):
        super().__init__()
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        padding = tuple(k // 2 for k in kernel) if padding is None else padding
        self.conv = nn.Conv2d(i, o, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        for i, branch in enumerate(branches):
            setattr(self, f"branch{i}", branch)
        self.count = len(branches)

    def forward(self, x):
        return torch.cat([getattr(self, f"branch{i}")(x) for i in range(self.count)], 1)


class InceptionResidual(Branches):
    def __init__(self, conv2d, scale, rectified, *branches):
        super().__init__(*branches)
        self.conv2d, self.scale, self.rectified = conv2d, scale, rectified

    def forward(self, x):
        y = x + self.conv2d(super().forward(x)) * self.scale
        return F.relu(y) if self.rectified else y


class InceptionResNetV2(nn.Module):
    def __init__(self, classes):
        super().__init__()
        s = nn.Sequential
        block35 = lambda: InceptionResidual(
            nn.Conv2d(128, 320, 1), 0.17, True, Unit(320, 32, 1), s(Unit(320, 32, 1), Unit(32, 32, 3)),
            s(Unit(320, 32, 1), Unit(32, 48, 3), Unit(48, 64, 3)))
        block17 = lambda: InceptionResidual(
            nn.Conv2d(384, 1088, 1), 0.1, True, Unit(1088, 192, 1),
            s(Unit(1088, 128, 1), Unit(128, 160, (1, 7)), Unit(160, 192, (7, 1))))
        block8 = lambda scale, rectified: InceptionResidual(
            nn.Conv2d(448, 2080, 1), scale, rectified, Unit(2080, 192, 1),
            s(Unit(2080, 192, 1), Unit(192, 224, (1, 3)), Unit(224, 256, (3, 1))))
        self.conv2d_1a, self.conv2d_2a = Unit(3, 32, 3, 2, 0), Unit(32, 32, 3, 1, 0)
        self.conv2d_2b, self.maxpool_3a = Unit(32, 64, 3), nn.MaxPool2d(3, 2)
        self.conv2d_3b, self.conv2d_4a = Unit(64, 80, 1), Unit(80, 192, 3, 1, 0)
        self.maxpool_5a = nn.MaxPool2d(3, 2)
        self.mixed_5b = Branches(
            Unit(192, 96, 1), s(Unit(192, 48, 1), Unit(48, 64, 5)),
            s(Unit(192, 64, 1), Unit(64, 96, 3), Unit(96, 96, 3)),
            s(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Unit(192, 64, 1)))
        self.repeat = s(*(block35() for _ in range(10)))
        self.mixed_6a = Branches(Unit(320, 384, 3, 2, 0),
                                 s(Unit(320, 256, 1), Unit(256, 256, 3), Unit(256, 384, 3, 2, 0)), nn.MaxPool2d(3, 2))
        self.repeat_1 = s(*(block17() for _ in range(20)))
        self.mixed_7a = Branches(
            s(Unit(1088, 256, 1), Unit(256, 384, 3, 2, 0)), s(Unit(1088, 256, 1), Unit(256, 288, 3, 2, 0)),
            s(Unit(1088, 256, 1), Unit(256, 288, 3), Unit(288, 320, 3, 2, 0)), nn.MaxPool2d(3, 2))
        self.repeat_2 = s(*(block8(0.2, True) for _ in range(9)))
        self.block8, self.conv2d_7b = block8(1, False), Unit(2080, 1536, 1)
        self.global_pool, self.flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten()
        self.head_drop, self.classif = nn.Dropout(0.2), nn.Linear(1536, classes)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class AlphaGoResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = conv_norm(256, 256, 3), conv_norm(256, 256, 3, None)

    def forward(self, x):
        return F.relu(x + self.second(self.first(x)))


class AlphaGoZero(nn.Module):
    def __init__(self, moves):
        super().__init__()
        points = moves - 1
        self.tower = nn.Sequential(conv_norm(17, 256, 3), *(AlphaGoResidual() for _ in range(19)))
        self.policy = nn.Sequential(conv_norm(256, 2, 1), nn.Flatten(), nn.Linear(2 * points, moves))
        self.value = nn.Sequential(conv_norm(256, 1, 1), nn.Flatten(), nn.Linear(points, 256), nn.ReLU(),
                                   nn.Linear(256, 1), nn.Tanh())

    def forward(self, x):
        y = self.tower(x)
        return torch.cat([self.policy(y), self.value(y)], 1)


class DenoisingAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(784, 500), nn.Linear(500, 784)

    def forward(self, x):
        return torch.sigmoid(self.decoder(torch.sigmoid(self.encoder(x.flatten(1))))).reshape(x.shape)


# ---------------------------------------------------------------- tasks: the loss of input and outputs
def policy_value_target(output):
    target = torch.zeros_like(output)
    for n in range(len(output)):
        target[n, n] = target[n, n + 1] = 0.5
        target[n, -1] = 0.25
    return target


def policy_value_loss(y):
    target = policy_value_target(y.detach())
    return F.cross_entropy(y[:, :-1], target[:, :-1]) + F.mse_loss(y[:, -1], target[:, -1])


TASKS = {
    "classification": lambda x, y: F.cross_entropy(y, torch.arange(len(y)) % y.shape[1]),
    "reconstruction": lambda x, y: F.mse_loss(y, x),
    "policy and value": lambda x, y: policy_value_loss(y),
}


def entry(make, classes, input, batch=2, small_classes=10, task="classification"):
    return {"make": make, "classes": classes, "input": input, "batch": batch, "small_classes": small_classes,
            "task": task}


def vision(make, size, **options):
    return entry(lambda classes: make(weights=None, num_classes=classes, **options), 1000, [3, size, size])


ZOO = {
    "mlp": entry(mlp, 10, [1, 28, 28]),
    "lenet": entry(lenet, 10, [1, 28, 28]),
    "lenet5": entry(lenet5, 10, [1, 28, 28]),
    "alexnet": vision(tv.alexnet, 63),
    "overfeat": entry(OverFeat, 1000, [3, 71, 71]),
    **{f"vgg{n}{bn}": vision(getattr(tv, f"vgg{n}{bn}"), 32) for n in (11, 13, 16, 19) for bn in ("", "_bn")},
    "nin": entry(nin, 1000, [3, 64, 64]),
    "googlenet": vision(tv.googlenet, 64, aux_logits=False, init_weights=False),
    "inception_v3": vision(tv.inception_v3, 107, aux_logits=False, init_weights=False),
    "inception_resnet_v2": entry(InceptionResNetV2, 1000, [3, 107, 107]),
    "resnet20": entry(resnet20, 10, [3, 32, 32]),
    **{name: vision(getattr(tv, name), 64) for name in
       ("resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d", "wide_resnet50_2", "densenet121")},
    "squeezenet1_1": vision(tv.squeezenet1_1, 33),
    **{name: vision(getattr(tv, name), 64) for name in
       ("mobilenet_v2", "mobilenet_v3_large", "shufflenet_v2_x1_0", "efficientnet_b0")},
    "alphago_zero": entry(AlphaGoZero, 362, [17, 5, 5], small_classes=26, task="policy and value"),
    "denoising_autoencoder": entry(lambda _: DenoisingAutoencoder(), 0, [1, 28, 28], task="reconstruction"),
}


# ---------------------------------------------------------------- numbers that both sides draw
def purpose(name):
    """FNV-1a, 32 bits."""
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def philox_words(first, count, purpose_, seed):
    """`count` words of the stream (seed, purpose, step 0) from block `first` on: Philox4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    blocks = np.arange(first, first + (count + 3) // 4, dtype=np.uint64)
    c = [blocks & low, blocks >> np.uint64(32), np.full_like(blocks, purpose_), np.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), p0 & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, 1).reshape(-1)[:count].astype(np.uint32)


def uniform(name, shape, low, high, seed=SEED):
    """In [low, high), single precision as the library draws it."""
    count, piece = math.prod(shape), 1 << 18
    low, high = np.float32(low), np.float32(high)
    values = np.empty(count, np.float32)
    for start in range(0, count, piece):
        words = philox_words(start // 4, min(piece, count - start), purpose(name), seed)
        values[start:start + piece] = low + (high - low) * ((words >> 8).astype(np.float32) * np.float32(2.0**-24))
    return torch.from_numpy(values.reshape(shape)).double()


def first_weights(name, shape):
    if len(shape) > 1:
        bound = math.sqrt(6 / math.prod(shape[1:]))
        return uniform(name, shape, -bound, bound)
    return uniform(name, shape, 0.5, 1.5) if name.endswith("weight") else uniform(name, shape, -0.1, 0.1)


# ---------------------------------------------------------------- recording
def record(network):
    published = network["make"](network["classes"])
    result = {"parameters": sum(p.numel() for p in published.parameters()),
              "state": {k: list(v.shape) for k, v in published.state_dict().items()
                        if not k.endswith("num_batches_tracked")}}
    del published
    net = network["make"](network["small_classes"])
    for module in net.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(first_weights(name, tuple(parameter.shape)))
    loss_of = TASKS[network["task"]]
    seed, x = well_conditioned(net, network, loss_of)
    net.double()
    optimizer = torch.optim.SGD(net.parameters())
    losses = []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        y = net(x)
        loss = loss_of(x, y)
        losses.append(loss.item())
        loss.backward()
        if step == 0:
            flat = y.detach().flatten()
            # Small enough that rounding does not grow: a step that takes off about a twentieth of the loss.
            squares = sum(p.grad.square().sum().item() for p in net.parameters())
            rate = rounded([0.05 * losses[0] / squares], 3)[0]
            optimizer.param_groups[0]["lr"] = rate
            result |= {"seed": seed, "rate": rate,
                       "outputs": rounded(flat[::max(1, len(flat) // KEPT)][:KEPT].tolist()),
                       "gradients": {n: rounded([p.grad.norm().item()])[0] for n, p in net.named_parameters()}}
        optimizer.step()
    return result | {"losses": rounded(losses), "input": network["input"], "batch": network["batch"],
                     "classes": network["small_classes"], "task": network["task"]}


def gradient_norms(net, x, loss_of):
    state = {name: value.clone() for name, value in net.state_dict().items()}
    net.zero_grad()
    loss_of(x, net(x)).backward()
    norms = torch.stack([p.grad.double().norm() for p in net.parameters()])
    net.load_state_dict(state)
    return norms


def well_conditioned(net, network, loss_of):
    """The first seed whose input lies so far from all kinks that single precision gives the gradients of double."""
    for seed in range(SEED, SEED + 50):
        x = uniform("golden.input", [network["batch"], *network["input"]], -1, 1, seed)
        single, double = gradient_norms(net.float(), x.float(), loss_of), gradient_norms(net.double(), x, loss_of)
        error = ((single - double).abs() / (double + 5e-4 * double.max())).max().item()
        if error < CONDITION:
            return seed, x
        print(f"seed {seed}: single precision differs by {error:.1e}", flush=True)
    raise RuntimeError("every input is ill-conditioned")


def rounded(values, digits=7):
    return [float(f"{value:.{digits}g}") for value in values]


def main():
    path = FOLDER / "zoo.json"
    recorded = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or ZOO:
        recorded[name] = record(ZOO[name])
        print(name, recorded[name]["parameters"], recorded[name]["losses"], flush=True)
        text = ",\n".join(f'{json.dumps(key)}: {json.dumps(recorded[key])}' for key in ZOO if key in recorded)
        path.write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
