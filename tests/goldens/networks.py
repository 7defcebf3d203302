#!/usr/bin/env python3
"""Records PyTorch's losses and batch normalisation: writes networks.json beside itself."""
import json
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent


# ---------------------------------------------------------------- losses: value and gradient of mean, sum; all values
def record_losses():
    torch.manual_seed(5)
    x, y = torch.randn(6, 4) * 3, torch.randn(6, 4) * 3
    labels = torch.tensor([0, 3, 1, 2, 2, 0])
    probabilities = torch.softmax(torch.randn(6, 4), 1)
    log_p = torch.log_softmax(x, 1)
    unit = torch.rand(6, 4)
    losses = {
        "cross_entropy": (x, labels, lambda p, t, r: F.cross_entropy(p, t, reduction=r)),
        "cross_entropy smoothed": (x, labels, lambda p, t, r: F.cross_entropy(p, t, label_smoothing=0.2, reduction=r)),
        "cross_entropy probabilities": (x, probabilities, lambda p, t, r: F.cross_entropy(p, t, reduction=r)),
        "nll": (log_p, labels, lambda p, t, r: F.nll_loss(p, t, reduction=r)),
        "mse": (x, y, lambda p, t, r: F.mse_loss(p, t, reduction=r)),
        "l1": (x, y, lambda p, t, r: F.l1_loss(p, t, reduction=r)),
        "huber": (x, y, lambda p, t, r: F.huber_loss(p, t, delta=1.5, reduction=r)),
        "smooth_l1": (x, y, lambda p, t, r: F.smooth_l1_loss(p, t, beta=0.5, reduction=r)),
        "bce_with_logits": (x * 20, unit, lambda p, t, r: F.binary_cross_entropy_with_logits(p, t, reduction=r)),
    }
    record = {}
    for name, (p, t, f) in losses.items():
        p = p.clone().requires_grad_()
        mean = f(p, t, "mean")
        (gradient,) = torch.autograd.grad(mean, p)
        record[name] = {"prediction": p.flatten().tolist(), "target": t.flatten().tolist(),
                        "mean": mean.item(), "sum": f(p, t, "sum").item(), "none": f(p, t, "none").flatten().tolist(),
                        "gradient": gradient.flatten().tolist()}
    return record


# ---------------------------------------------------------------- batch normalisation: two training steps, evaluation
def record_batch_norm():
    torch.manual_seed(6)
    layer = nn.BatchNorm2d(3)
    nn.init.uniform_(layer.weight), nn.init.uniform_(layer.bias)
    batches = [torch.randn(4, 3, 5, 2) * 2 + 1 for _ in range(2)]
    outputs = [layer(b).flatten().tolist() for b in batches]
    mean, variance = layer.running_mean.tolist(), layer.running_var.tolist()
    layer.eval()
    return {"weight": layer.weight.tolist(), "bias": layer.bias.tolist(),
            "batches": [b.flatten().tolist() for b in batches], "outputs": outputs,
            "running_mean": mean, "running_var": variance, "evaluated": layer(batches[0]).flatten().tolist()}


record = {"torch": torch.__version__, "losses": record_losses(), "batch_norm": record_batch_norm()}
(FOLDER / "networks.json").write_text(json.dumps(record, indent=0))
