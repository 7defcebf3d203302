#!/usr/bin/env python3
"""Records torch.nn.functional.grid_sample: grid_sample.py > grid_sample.json

Of each set of options the result, and the gradients of Σ result·w with w_i = sin(1.3·i + 0.5). The grids have places
between pixels, on pixels, on the border and far outside.
"""
import json
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(5)
X2, X3 = torch.randn(2, 3, 4, 5), torch.randn(1, 2, 3, 2, 4)
G2 = torch.cat([torch.rand(2, 3, 4, 2) * 2.6 - 1.3,
                torch.tensor([[-0.5, 0.4], [0.5, -0.4], [2.7, -3.1], [-5.3, 0.2]]).reshape(1, 1, 4, 2).repeat(2, 1, 1, 1)],
               1)
G3 = torch.rand(1, 2, 3, 2, 3) * 2.6 - 1.3


def numbers(t):
    return [float("%.7g" % v) for v in t.detach().flatten()]


rows = []
for rank, x, grid in [(2, X2, G2), (3, X3, G3)]:
    for mode in ["bilinear", "nearest"] + (["bicubic"] if rank == 2 else []):
        for padding in ["zeros", "border", "reflection"]:
            for align in [False, True]:
                a, b = x.clone().requires_grad_(), grid.clone().requires_grad_()
                y = F.grid_sample(a, b, mode, padding, align)
                w = torch.sin(1.3 * torch.arange(y.numel(), dtype=torch.float32) + 0.5).reshape(y.shape)
                by_x, by_grid = torch.autograd.grad((y * w).sum(), (a, b))
                rows.append(json.dumps({"rank": rank, "mode": mode, "padding": padding, "align": align,
                                        "y": numbers(y), "by_x": numbers(by_x), "by_grid": numbers(by_grid)},
                                       separators=(",", ":")))
inputs = {"x2": X2, "grid2": G2, "x3": X3, "grid3": G3}
head = ",".join('"%s":%s,"%s_shape":%s' % (k, json.dumps(numbers(v)), k, list(v.shape)) for k, v in inputs.items())
sys.stdout.write('{"torch":"%s",%s,"cases":[\n%s\n]}\n' % (torch.__version__, head, ",\n".join(rows)))
