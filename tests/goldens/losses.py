#!/usr/bin/env python3
"""Records PyTorch's losses: writes losses.json beside itself.

Of each loss and set of options the mean, the sum, the single losses and the gradient of the mean to the first input
(for CTC: to the logits) are kept. Losses that PyTorch has not are written out below from their papers.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent
torch.manual_seed(7)
X, Y, Z = torch.randn(6, 4) * 2, torch.randn(6, 4) * 2, torch.randn(6, 4) * 2
LABELS = torch.tensor([0, 3, 1, 2, 2, 0])
IMAGE, IMAGE_LABELS = torch.randn(2, 3, 2, 3) * 2, torch.randint(0, 3, (2, 2, 3))
IMAGE_P = torch.softmax(torch.randn(2, 3, 2, 3), 1)
P, Q = torch.softmax(X, 1), torch.softmax(Y, 1)
Q0 = Q * (Q > 0.05)
SIGNS = torch.tensor([1.0, -1, 1, -1, -1, 1])
SIGN_TABLE = torch.where(torch.randn(6, 4) > 0, 1.0, -1.0)
BITS = (torch.rand(6, 4) > 0.5).float()
COUNTS = torch.tensor([0.0, 1, 2, 5] * 6).reshape(6, 4)
VARIANCE = torch.rand(6, 4) + 0.1
WEIGHTS4, WEIGHTS3 = torch.tensor([0.5, 2.0, 0.0, 1.5]), torch.tensor([0.5, 2.0, 1.25])


def reduced(losses, reduction):
    return {"mean": losses.mean, "sum": losses.sum, "none": lambda: losses}[reduction]()


def distillation(s, t, temperature, r):
    rows = F.kl_div(F.log_softmax(s / temperature, 1), F.log_softmax(t / temperature, 1), log_target=True,
                    reduction="none").sum(1)
    return reduced(rows * temperature**2, r)


def kl(x, t, r, **options):
    return F.kl_div(x, t, reduction="batchmean" if r == "mean" else r, **options)


def focal(x, t, alpha, gamma, r):
    p = torch.sigmoid(x)
    p_t = p * t + (1 - p) * (1 - t)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none") * (1 - p_t) ** gamma
    return reduced(loss * (alpha * t + (1 - alpha) * (1 - t)) if alpha >= 0 else loss, r)


def dice(p, t, smooth, r):
    axes = tuple(range(2, p.dim())) or (1,)
    return reduced(1 - (2 * (p * t).sum(axes) + smooth) / (p.sum(axes) + t.sum(axes) + smooth), r)


def contrastive(a, b, t, margin, r):
    d = F.pairwise_distance(a, b)
    return reduced((t * d**2 + (1 - t) * F.relu(margin - d) ** 2) / 2, r)


def hinge(x, t, margin, power, r):
    return reduced(F.relu(margin - t * x) ** power, r)


LOSSES = {
    "cross_entropy weights": ([X, LABELS], lambda x, t, r: F.cross_entropy(x, t, WEIGHTS4, reduction=r)),
    "cross_entropy weights smoothed": ([X, LABELS], lambda x, t, r: F.cross_entropy(x, t, WEIGHTS4, reduction=r,
                                                                                    label_smoothing=0.2)),
    "cross_entropy ignored": ([X, LABELS], lambda x, t, r: F.cross_entropy(x, t, ignore_index=2, reduction=r)),
    "cross_entropy all": ([X, LABELS], lambda x, t, r: F.cross_entropy(x, t, WEIGHTS4, ignore_index=0, reduction=r,
                                                                       label_smoothing=0.1)),
    "cross_entropy weighted probabilities": ([X, Q], lambda x, t, r: F.cross_entropy(x, t, WEIGHTS4, reduction=r,
                                                                                     label_smoothing=0.1)),
    "cross_entropy spatial": ([IMAGE, IMAGE_LABELS], lambda x, t, r: F.cross_entropy(x, t, reduction=r)),
    "cross_entropy spatial all": ([IMAGE, IMAGE_LABELS], lambda x, t, r: F.cross_entropy(x, t, WEIGHTS3, ignore_index=1,
                                                                                         reduction=r)),
    "cross_entropy spatial probabilities": ([IMAGE, IMAGE_P], lambda x, t, r: F.cross_entropy(x, t, reduction=r)
                                            if r != "mean" else F.cross_entropy(x, t, reduction="none").mean()),
    "nll weights": ([torch.log(P), LABELS], lambda x, t, r: F.nll_loss(x, t, WEIGHTS4, reduction=r)),
    "nll ignored": ([torch.log(P), LABELS], lambda x, t, r: F.nll_loss(x, t, ignore_index=2, reduction=r)),
    "nll spatial": ([IMAGE, IMAGE_LABELS], lambda x, t, r: F.nll_loss(x, t, WEIGHTS3, ignore_index=0, reduction=r)),
    "kl_divergence": ([torch.log(P), Q0], kl),
    "kl_divergence log": ([torch.log(P), torch.log(Q)], lambda x, t, r: kl(x, t, r, log_target=True)),
    "kl_divergence elements": ([torch.log(P), Q], lambda x, t, r: F.kl_div(x, t, reduction=r)),
    "distillation": ([X, Y], lambda x, t, r: distillation(x, t, 3.0, r)),
    "poisson_nll": ([X, COUNTS], lambda x, t, r: F.poisson_nll_loss(x, t, reduction=r)),
    "poisson_nll full": ([VARIANCE, COUNTS], lambda x, t, r: F.poisson_nll_loss(x, t, log_input=False, full=True, eps=0.01,
                                                                               reduction=r)),
    "gaussian_nll": ([X, Y, VARIANCE], lambda x, t, v, r: F.gaussian_nll_loss(x, t, v, reduction=r)),
    "gaussian_nll full": ([X, Y, VARIANCE], lambda x, t, v, r: F.gaussian_nll_loss(x, t, v, full=True, eps=0.3,
                                                                                  reduction=r)),
    "focal": ([X, BITS], lambda x, t, r: focal(x, t, 0.25, 2, r)),
    "focal plain": ([X, BITS], lambda x, t, r: focal(x, t, -1, 0.5, r)),
    "dice": ([P, Q], lambda x, t, r: dice(x, t, 1.0, r)),
    "dice spatial": ([IMAGE_P, torch.softmax(IMAGE, 1)], lambda x, t, r: dice(x, t, 0.1, r)),
    "hinge": ([X, SIGN_TABLE], lambda x, t, r: hinge(x, t, 1.0, 1, r)),
    "hinge squared": ([X, SIGN_TABLE], lambda x, t, r: hinge(x, t, 0.5, 2, r)),
    "multi_margin": ([X, LABELS], lambda x, t, r: F.multi_margin_loss(x, t, reduction=r)),
    "multi_margin squared": ([X, LABELS], lambda x, t, r: F.multi_margin_loss(x, t, p=2, margin=0.5, reduction=r)),
    "cosine_embedding": ([X, Y, SIGNS], lambda a, b, t, r: F.cosine_embedding_loss(a, b, t, margin=0.1, reduction=r)),
    "contrastive": ([X, Y, (SIGNS + 1) / 2], lambda a, b, t, r: contrastive(a, b, t, 6.0, r)),
    "triplet_margin": ([X, Y, Z], lambda a, p, n, r: F.triplet_margin_loss(a, p, n, reduction=r)),
    "triplet_margin swap": ([X, Y, Z], lambda a, p, n, r: F.triplet_margin_loss(a, p, n, margin=2.0, p=1, swap=True,
                                                                               reduction=r)),
    "triplet_margin cubic": ([X, Y, Z], lambda a, p, n, r: F.triplet_margin_loss(a, p, n, p=3, eps=1e-3, reduction=r)),
}

CTC_LOGITS = torch.randn(7, 4, 5) * 2
CTC_TARGETS = torch.tensor([[1, 2, 2], [3, 3, 3], [4, 1, 1], [1, 2, 3]])  # of [1, 0]: blank in a place that is not used
CTC_TARGETS[2, 2] = 0
CTC = {
    "ctc": dict(inputs=[7, 6, 4, 7], lengths=[3, 3, 2, 0]),
    "ctc impossible": dict(inputs=[7, 4, 0, 7], lengths=[3, 3, 1, 1], zero_infinity=True),
    "ctc last blank": dict(inputs=[7, 7, 5, 3], lengths=[3, 2, 2, 3], blank=4, shift=-1),
}


def numbers(tensor):
    return [float(f"{v:.9g}") for v in tensor.detach().flatten().tolist()]


def record(inputs, loss):
    x = inputs[0].clone().requires_grad_()
    mean = loss(x, *inputs[1:], "mean")
    (gradient,) = torch.autograd.grad(mean, x)
    return {"inputs": [{"shape": list(i.shape), "values": numbers(i), "whole": not i.is_floating_point()} for i in inputs],
            "mean": mean.item(), "sum": loss(x, *inputs[1:], "sum").item(),
            "none": numbers(loss(x, *inputs[1:], "none")), "gradient": numbers(gradient)}


def record_ctc(inputs, lengths, blank=0, shift=0, **options):
    def loss(x, t, i, l, r):
        return F.ctc_loss(F.log_softmax(x, 2), t, i, l, blank=blank, reduction=r, **options)
    targets = (CTC_TARGETS + shift).clamp(min=0)
    return record([CTC_LOGITS, targets, torch.tensor(inputs), torch.tensor(lengths)], loss)


recorded = {name: record(*case) for name, case in LOSSES.items()} | {name: record_ctc(**c) for name, c in CTC.items()}
text = json.dumps({"torch": torch.__version__, "losses": recorded}, separators=(",", ":"))
(FOLDER / "losses.json").write_text(text.replace("],", "],\n").replace("},", "},\n") + "\n")
