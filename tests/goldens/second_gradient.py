#!/usr/bin/env python3
"""Records gradients of gradients by PyTorch: second_gradient.py > second_gradient.json

Of each function f of x the file has x, the penalty P = Σ (d/dx Σ f(x)·w)² with w_i = sin(1.3·i + 0.5), and dP/dx. Where
f has a second operand y, it also has y and dP/dy.
"""
import json
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(11)
LABELS = torch.tensor([2, 0, 3])
SIGNS = torch.tensor([1.0, -1.0, 1.0])
BITS = (torch.arange(12).reshape(3, 4) % 2).double()
P = torch.softmax(torch.sin(torch.arange(12.0).double()).reshape(3, 4), 1)
Y = torch.cos(torch.arange(12.0).double() * 0.7).reshape(3, 4)


def focal(x):
    t = BITS
    p = torch.sigmoid(x)
    p_t = p * t + (1 - p) * (1 - t)
    alpha = 0.25 * t + 0.75 * (1 - t)
    return (alpha * (1 - p_t) ** 2 * F.binary_cross_entropy_with_logits(x, t, reduction="none")).mean()


def dice(x):
    p = torch.sigmoid(x)
    return (1 - (2 * (p * BITS).sum(1) + 1) / (p.sum(1) + BITS.sum(1) + 1)).mean()


def multi_margin(x):  # PyTorch's own has no second gradient
    rows = torch.relu(1 - x.gather(1, LABELS[:, None]) + x) ** 2
    return (rows * (1 - F.one_hot(LABELS, 4))).sum(1).mean() / 4


CASES = {
    "softmax": ((3, 4), lambda x: F.softmax(x, 1)),
    "softmax along the first axis": ((3, 4), lambda x: F.softmax(x, 0)),
    "log_softmax": ((3, 4), lambda x: F.log_softmax(x, 1)),
    "layer_norm": ((3, 8), lambda x: F.layer_norm(x, (8,))),
    "rms_norm": ((3, 8), lambda x: F.rms_norm(x, (8,), eps=1e-5)),
    "group_norm": ((2, 4, 3, 2), lambda x: F.group_norm(x, 2)),
    "instance_norm": ((2, 3, 3, 2), lambda x: F.instance_norm(x)),
    "max_pool2d": ((1, 2, 5, 5), lambda x: F.max_pool2d(x, 3, 2, 1) ** 2),
    "max_pool2d squared": ((1, 2, 5, 5), lambda x: F.max_pool2d(x * x, 3, 1)),
    "avg_pool2d": ((1, 2, 5, 5), lambda x: F.avg_pool2d(x * x, 3, 2, 1)),
    "adaptive_avg_pool1d": ((1, 2, 7), lambda x: F.adaptive_avg_pool1d(x * x, 3)),
    "prod": ((3, 4), lambda x: x.prod(1)),
    "cross_entropy": ((3, 4), lambda x: F.cross_entropy(x, LABELS)),
    "cross_entropy with smoothing": ((3, 4), lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.2)),
    "cross_entropy of probabilities": ((3, 4), lambda x: F.cross_entropy(x, P)),
    "cross_entropy squared": ((3, 4), lambda x: F.cross_entropy(x, LABELS, reduction="none") ** 2),
    "mse": ((3, 4), lambda x: F.mse_loss(x, Y)),
    "huber": ((3, 4), lambda x: F.huber_loss(x, Y)),
    "smooth_l1": ((3, 4), lambda x: F.smooth_l1_loss(x, Y)),
    "bce_with_logits": ((3, 4), lambda x: F.binary_cross_entropy_with_logits(x, BITS)),
    "kl_divergence": ((3, 4), lambda x: F.kl_div(F.log_softmax(x, 1), P, reduction="batchmean")),
    "poisson_nll": ((3, 4), lambda x: F.poisson_nll_loss(x, BITS)),
    "focal": ((3, 4), focal),
    "dice": ((3, 4), dice),
    "multi_margin": ((3, 4), multi_margin),
    "cosine_embedding": ((3, 4), lambda x: F.cosine_embedding_loss(x, Y, SIGNS)),
    "triplet_margin": ((3, 4), lambda x: F.triplet_margin_loss(x, Y, P)),
    "linear and tanh": ((3, 4), lambda x: torch.tanh(x @ Y.T)),
}
PAIRS = {  # of x and y
    "batch_norm": ((4, 3, 2), (2, 3), lambda x, y: F.batch_norm(x, None, None, y[0], y[1], training=True)),
    "scaled layer_norm": ((3, 8), (2, 8), lambda x, y: F.layer_norm(x, (8,), y[0], y[1])),
    "cross_entropy of both": ((3, 4), (3, 4), lambda x, y: F.cross_entropy(x, torch.softmax(y, 1))),
}


def weights(f):
    return torch.sin(1.3 * torch.arange(f.numel(), dtype=torch.float64) + 0.5).reshape(f.shape)


def numbers(t):
    return [float("%.8g" % v) for v in t.detach().flatten()]


def record(name, inputs, f):
    y = f(*inputs)
    first, = torch.autograd.grad((y * weights(y)).sum(), inputs[:1], create_graph=True)
    penalty = (first**2).sum()
    second = torch.autograd.grad(penalty, inputs, allow_unused=True)
    row = {"name": name, "shape": list(inputs[0].shape), "x": numbers(inputs[0]), "penalty": penalty.item(),
           "by_x": numbers(second[0])}
    if len(inputs) > 1:
        row |= {"y_shape": list(inputs[1].shape), "y": numbers(inputs[1]), "by_y": numbers(second[1])}
    return json.dumps(row, separators=(",", ":"))


def drawn(shape):
    return torch.randn(shape).double().requires_grad_()  # drawn as fp32


rows = [record(name, [drawn(shape)], f) for name, (shape, f) in CASES.items()]
rows += [record(name, [drawn(a), drawn(b)], f) for name, (a, b, f) in PAIRS.items()]
sys.stdout.write('{"torch":"%s","p":%s,"y":%s,"cases":[\n%s\n]}\n' %
                 (torch.__version__, json.dumps(numbers(P)), json.dumps(numbers(Y)), ",\n".join(rows)))
