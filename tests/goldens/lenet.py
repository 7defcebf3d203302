#!/usr/bin/env python3
"""Records ten steps of LeNet in PyTorch: writes lenet.safetensors beside itself.

First weights and images are drawn from Philox as the library draws them, so they need not be stored. Kept are the loss
of each step, the gradients of the first step and the weights after the last one; of tensors with more than 20000
elements every 17th element.
"""
import json
import math
import pathlib
import struct

import numpy as np
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
SEED, BATCH, STEPS = 11, 64, 10


def purpose(name):
    """FNV-1a, 32 bits."""
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def philox_words(count, purpose_, seed):
    """Words 0 … count-1 of the stream (seed, purpose, step 0): Philox4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [blocks & low, blocks >> np.uint64(32), np.full_like(blocks, purpose_), np.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), p0 & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, 1).reshape(-1)[:count].astype(np.uint32)


def first_weights(name, shape, fan_in):
    bound = np.float32(1 / math.sqrt(fan_in))
    uniform = (philox_words(math.prod(shape), purpose(name), SEED) >> 8).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy((-bound + (bound - -bound) * uniform).reshape(shape))


def images():
    """u8: three quarters a picture that belongs to the class, one quarter noise; labels 0, 1, … 9, 0, …"""
    n = BATCH * STEPS
    labels = np.arange(n) % 10
    pictures = (philox_words(10 * 784, purpose("golden.pictures"), SEED) >> 24).reshape(10, 784)
    noise = (philox_words(n * 784, purpose("golden.noise"), SEED) >> 24).reshape(n, 784)
    pixels = ((3 * pictures[labels] + noise) // 4).astype(np.uint8).reshape(n, 1, 28, 28)
    return torch.from_numpy(pixels), torch.from_numpy(labels)


def thinned(tensor):
    flat = tensor.detach().flatten()
    return flat[::17] if flat.numel() > 20000 else flat


def write_safetensors(path, tensors, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().numpy().tobytes())


net = nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
fans = {"0": 25, "3": 500, "7": 800, "9": 500}
with torch.no_grad():
    for name, parameter in net.named_parameters():
        parameter.copy_(first_weights(name, tuple(parameter.shape), fans[name.split(".")[0]]))

record = {f"start.{name}": parameter.detach().flatten()[:4].clone() for name, parameter in net.named_parameters()}
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
pixels, labels = images()
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(pixels[rows].float() / 255), labels[rows])
    loss.backward()
    losses.append(loss.item())
    if step == 0:
        record |= {f"gradient.{name}": thinned(parameter.grad).clone() for name, parameter in net.named_parameters()}
    optimizer.step()
record |= {f"final.{name}": thinned(parameter) for name, parameter in net.named_parameters()}
record["losses"] = torch.tensor(losses)
write_safetensors(FOLDER / "lenet.safetensors", record, {"torch": torch.__version__})
print(losses)
