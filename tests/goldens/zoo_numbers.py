"""Numbers that PyTorch and the library draw alike: uniform ones from Philox, by name, and the first weights of them."""
import math

import numpy as np
import torch

SEED = 7


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
