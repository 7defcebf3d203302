"""Prints how far PyTorch's normalisations are from float64: the figures at the bounds of tests/ops/norm_exactness.cpp.

python3 tests/goldens/norm_errors.py, on the CPU with one thread. Errors in parts of the largest normalised value of a row (of 1
where all are 0): layer norm, its gradient, RMS norm, batch norm, its gradient, batch norm channels-last.
"""

import numpy as np
import torch
from torch.nn import functional

torch.set_num_threads(1)
generator = np.random.default_rng(1)
LENGTHS = (2, 3, 7, 64, 768, 1000, 4096, 65536)
ROWS = [(mean, deviation, 0) for mean in (0, 1e-30, 1, 100, 777.7, 10000.1, 1e18) for deviation in (0, 1e-30, 0.1, 1, 1e18)]
ROWS += [(0, 1, 1e4), (100, 0.1, 1e6), (0, 1e-3, 1e18)]


def error(got, expected):
    largest = np.abs(expected).max()
    return np.abs(got - expected).max() / (largest if largest > 0 else 1)


def normalised(x, centred=True, epsilon=1e-5):
    x = x.astype(np.float64)
    near = x[:, :1] * centred
    away = (x - near) - (x - near).mean(-1, keepdims=True) * centred
    rstd = 1 / np.sqrt((away**2).mean(-1, keepdims=True) + epsilon)
    return away * rstd, rstd


def gradient(x, seed):
    dst, rstd = normalised(x)
    seed = seed.astype(np.float64)
    return rstd * (seed - seed.mean(-1, keepdims=True) - dst * (seed * dst).mean(-1, keepdims=True))


for mean, deviation, first in ROWS:
    print(f"mean {mean}, deviation {deviation}, first {first or '-'}")
    for length in LENGTHS:
        x = (mean + deviation * generator.standard_normal((4, length))).astype(np.float32)
        if first:
            x[:, 0] = first
        seed = (1 + generator.standard_normal((4, length))).astype(np.float32)
        rows = torch.tensor(x, requires_grad=True)
        layer = functional.layer_norm(rows, (length,))
        layer.backward(torch.tensor(seed))
        squares = functional.rms_norm(torch.tensor(x), (length,), eps=1e-5)
        image = torch.tensor(x.reshape(1, 4, length, 1), requires_grad=True)
        batch = functional.batch_norm(image, None, None, training=True)
        batch.backward(torch.tensor(seed.reshape(1, 4, length, 1)))
        columns = torch.tensor(x.T.copy().reshape(length, 4, 1, 1)).contiguous(memory_format=torch.channels_last)
        last = functional.batch_norm(columns, None, None, training=True)
        errors = (
            error(layer.detach().numpy(), normalised(x)[0]),
            error(rows.grad.numpy(), gradient(x, seed)),
            error(squares.numpy(), normalised(x, False)[0]),
            error(batch.detach().numpy().reshape(4, length), normalised(x)[0]),
            error(image.grad.numpy().reshape(4, length), gradient(x, seed)),
            error(last.numpy().reshape(length, 4).T, normalised(x)[0]),
        )
        print(f"  {length:6}", *(f"{value:8.0e}" for value in errors))
for deviation in (0, 1):
    x = (777.7 + deviation * generator.standard_normal(1000000)).astype(np.float32)
    total = x.astype(np.float64).sum()
    print(f"sum of 777.7 + N(0, {deviation})", *(f"{float(torch.tensor(x.reshape(s)).sum(0).sum()) / total - 1:8.0e}"
                                                  for s in ((-1, 1), (1000, 1000), (20000, 50))))
