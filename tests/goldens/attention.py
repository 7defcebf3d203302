#!/usr/bin/env python3
"""Records PyTorch's attention and transformer layers: writes attention.json beside itself.

A layer's parameters are drawn by `weights`, a formula of name and index that the test repeats, so they are not stored.
"""
import json
import math
import pathlib

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent


def fill(name, shape):
    """0.3·sin(1 + 0.7·i + length of the name), for i = 0, 1, …"""
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (0.3 * torch.sin(1 + 0.7 * i + len(name))).float().reshape(shape)


def rounded(tensor):
    return [float(f"{v:.7g}") for v in tensor.detach().flatten().tolist()]


def record(module, inputs, call):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(fill(name, tuple(parameter.shape)))
    inputs = [x.requires_grad_() for x in inputs]
    out = call(module, *inputs)
    (out * fill("seed", tuple(out.shape))).sum().backward()
    return {"names": {n: list(p.shape) for n, p in module.named_parameters()}, "shape": list(out.shape),
            "output": rounded(out), "input_gradients": [rounded(x.grad) for x in inputs],
            "gradients": {n: rounded(p.grad) for n, p in module.named_parameters() if p.numel() <= 100}}


def x(*shape):
    return fill("input", shape) * 3


def padding(lengths, keys):
    return torch.arange(keys)[None, :] >= torch.tensor(lengths)[:, None]


def causal(t, s=None):
    return torch.triu(torch.ones(t, s or t, dtype=torch.bool), 1)


MHA = lambda **o: nn.MultiheadAttention(12, 3, batch_first=True, **o)
SMALL = dict(dim_feedforward=20, dropout=0.0, batch_first=True)
added = fill("mask", (5, 5))
cases = {
    "self": (MHA(), [x(2, 5, 12)], lambda m, a: m(a, a, a)[0]),
    "self causal": (MHA(), [x(2, 5, 12)], lambda m, a: m(a, a, a, attn_mask=causal(5))[0]),
    "self added mask": (MHA(bias=False), [x(2, 5, 12)], lambda m, a: m(a, a, a, attn_mask=added)[0]),
    "cross padded": (MHA(), [x(2, 5, 12), x(2, 7, 12)],
                     lambda m, a, b: m(a, b, b, key_padding_mask=padding([7, 3], 7))[0]),
    "other widths": (MHA(kdim=8, vdim=6), [x(2, 5, 12), x(2, 7, 8), x(2, 7, 6)], lambda m, a, b, c: m(a, b, c)[0]),
    "encoder layer": (nn.TransformerEncoderLayer(12, 3, **SMALL), [x(2, 5, 12)], lambda m, a: m(a)),
    "encoder layer norm_first gelu": (
        nn.TransformerEncoderLayer(12, 3, activation="gelu", norm_first=True, layer_norm_eps=1e-3, **SMALL),
        [x(2, 5, 12)], lambda m, a: m(a, src_mask=causal(5))),
    "encoder layer without bias": (nn.TransformerEncoderLayer(12, 3, bias=False, **SMALL), [x(2, 5, 12)],
                                   lambda m, a: m(a)),
    "decoder layer": (nn.TransformerDecoderLayer(12, 3, **SMALL), [x(2, 5, 12), x(2, 7, 12)],
                      lambda m, a, b: m(a, b, tgt_mask=causal(5), memory_key_padding_mask=padding([7, 3], 7))),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, **SMALL), 2, nn.LayerNorm(12),
                                      enable_nested_tensor=False), [x(2, 5, 12)], lambda m, a: m(a)),
    "decoder": (nn.TransformerDecoder(nn.TransformerDecoderLayer(12, 3, norm_first=True, **SMALL), 2),
                [x(2, 5, 12), x(2, 7, 12)], lambda m, a, b: m(a, b)),
}
result = {"torch": torch.__version__, "cases": {name: record(*case) for name, case in cases.items()}}
(FOLDER / "attention.json").write_text(json.dumps(result, indent=0, separators=(",", ":")))
