#!/usr/bin/env python3
"""Records optimizers and schedules: writes optimizers.json and schedules.json beside itself.

A small network, mse(tanh(x·Aᵀ + a)·Bᵀ + b, y), is trained for 20 steps from the same start by each optimizer; the
parameters after steps 1, 2 and 20 are kept. Each run of optimizers.json names its optimizer and options as
tests/optim/optimizers.cpp makes it, and as "torch" the recipe for this script. Optimizers are PyTorch's; LARS, LAMB and
Lion, which it has not, are written out below from their papers. Of each schedule the rates of 40 units are kept.

  optimizers.py [RUN…]      only these runs anew, the others and the schedules stay as recorded
"""
import json
import math
import pathlib
import sys
import types

import torch
from torch.optim import SGD, Adadelta, Adafactor, Adagrad, Adam, Adamax, AdamW, Muon, NAdam, RAdam, RMSprop, _muon
from torch.optim import lr_scheduler as schedulers

FOLDER = pathlib.Path(__file__).parent
STEPS = (1, 2, 20)

# Muon's products are recorded in single precision, not in the bfloat16 that it is written for.
_muon.torch = types.SimpleNamespace(**(vars(torch) | {"bfloat16": torch.float32}))


class Written(torch.optim.Optimizer):
    """An optimizer as a function update(weight, gradient, state, step, **options), which changes the weight."""

    def __init__(self, parameters, update, **options):
        super().__init__(parameters, options)
        self.update = update

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            options = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                self.update(p, p.grad, state, **options)


def lars(p, g, state, lr, momentum=0.9, decay=0.0, trust=1e-3, eps=0.0):
    """You, Gitman, Ginsburg, 2017, algorithm 1."""
    local = trust * p.norm() / (g.norm() + decay * p.norm() + eps) if p.norm() > 0 and g.norm() > 0 else 1.0
    state["v"] = momentum * state.get("v", 0) + lr * local * (g + decay * p)
    p -= state["v"]


def lamb(p, g, state, lr, betas=(0.9, 0.999), eps=1e-6, decay=0.01, bounds=(0.0, math.inf)):
    """You et al., 2020, algorithm 2."""
    state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    m, v = state["m"] / (1 - betas[0] ** state["step"]), state["v"] / (1 - betas[1] ** state["step"])
    direction = m / (v.sqrt() + eps) + decay * p
    size = p.norm().clamp(*bounds)
    p -= lr * (size / direction.norm() if size > 0 and direction.norm() > 0 else 1.0) * direction


def lion(p, g, state, lr, betas=(0.9, 0.99), decay=0.0):
    """Chen et al., 2023, algorithm 2."""
    m = state.get("m", torch.zeros_like(p))
    p -= lr * (torch.sign(betas[0] * m + (1 - betas[0]) * g) + decay * p)
    state["m"] = betas[1] * m + (1 - betas[1]) * g


class Several:
    """Matrices by one optimizer, vectors by another."""

    def __init__(self, parameters, matrices, vectors):
        self.parts = [matrices([p for p in parameters if p.dim() > 1]), vectors([p for p in parameters if p.dim() < 2])]

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        for part in self.parts:
            part.step()


def muon(p, **options):
    return Several(p, lambda q: Muon(q, **options), lambda q: AdamW(q, lr=options["lr"] / 2, weight_decay=0.01))


def groups(p):
    p[2].requires_grad_(False)
    return AdamW([{"params": [p[0]], "lr": 0.002}, {"params": [p[1]], "weight_decay": 0.0}, {"params": [p[3]]}],
                 lr=0.01, weight_decay=0.1)


def optimizer_of(recipe, p):
    """A recipe is an expression of the parameters `p`, or lines of which the last is one."""
    lines = [recipe] if isinstance(recipe, str) else recipe
    scope = globals() | {"p": p}
    exec("\n".join(lines[:-1]), scope)
    return eval(lines[-1], scope)


def clip(name, parameters):
    if name in ("clip norm", "clip lamb"):
        torch.nn.utils.clip_grad_norm_(parameters, 0.3)
    if name in ("clip value", "clip lamb"):
        torch.nn.utils.clip_grad_value_(parameters, 0.05)


def numbers(tensor):
    return [float(f"{v:.9g}") for v in tensor.detach().flatten().tolist()]


def record_optimizers(recorded, names):
    """Anew the runs of these names, or all."""
    torch.manual_seed(3)
    x, y = torch.randn(16, 3), torch.rand(16, 2) * 2 - 1
    start = {"0.weight": torch.randn(4, 3), "0.bias": torch.randn(4), "2.weight": torch.randn(2, 4),
             "2.bias": torch.randn(2)}
    for name in names or recorded["runs"]:
        run = recorded["runs"][name]
        parameters = [tensor.clone().requires_grad_() for tensor in start.values()]
        optimizer = optimizer_of(run["torch"], parameters)
        for step in range(1, max(STEPS) + 1):
            optimizer.zero_grad()
            hidden = torch.tanh(x @ parameters[0].T + parameters[1])
            loss = torch.nn.functional.mse_loss(hidden @ parameters[2].T + parameters[3], y)
            loss.backward()
            clip(name, parameters)
            optimizer.step()
            if step in STEPS:
                run[str(step)] = {k: numbers(p) for k, p in zip(start, parameters)}
    return {"torch": torch.__version__, "start": {k: numbers(v) for k, v in ({"x": x, "y": y} | start).items()},
            "runs": recorded["runs"]}


def cosine_after_warmup(o):
    warm = schedulers.LinearLR(o, start_factor=0.1, total_iters=5)
    return schedulers.SequentialLR(o, [warm, schedulers.CosineAnnealingLR(o, T_max=30)], milestones=[5])


def inverse_square_root(unit):
    """Vaswani et al., 2017, with the peak as the base rate: up along a line over 8 units, then down with 1/√t."""
    return min((unit + 1) / 8, math.sqrt(8 / (unit + 1)))


SCHEDULES = {
    "step": lambda o: schedulers.StepLR(o, step_size=7, gamma=0.3),
    "multistep": lambda o: schedulers.MultiStepLR(o, milestones=[5, 20, 21], gamma=0.5),
    "exponential": lambda o: schedulers.ExponentialLR(o, gamma=0.9),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, T_max=39, eta_min=0.01),
    "warmup": lambda o: schedulers.LinearLR(o, start_factor=0.25, total_iters=8),
    "warmup cosine": cosine_after_warmup,
    "one cycle": lambda o: schedulers.OneCycleLR(o, max_lr=0.5, total_steps=40),
    "one cycle late": lambda o: schedulers.OneCycleLR(o, max_lr=0.5, total_steps=40, pct_start=0.6, div_factor=10,
                                                      final_div_factor=100),
    "polynomial": lambda o: schedulers.PolynomialLR(o, total_iters=30, power=2.0),
    "linear": lambda o: schedulers.PolynomialLR(o, total_iters=30),
    "restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, T_0=10, eta_min=0.02),
    "longer restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
    "inverse square root": lambda o: schedulers.LambdaLR(o, inverse_square_root),
}

# Losses of 40 validations: better, on a plateau with noise, a little better, worse.
LOSSES = [1 / (1 + 0.3 * t) if t < 8 else 0.3 + 0.01 * math.sin(5 * t) - 0.0002 * t if t < 30 else 0.2 + 0.01 * t
          for t in range(40)]
PLATEAUS = {
    "plateau": dict(factor=0.5, patience=3),
    "plateau absolute": dict(factor=0.2, patience=2, threshold=0.005, threshold_mode="abs", cooldown=4, min_lr=0.004),
}


def record_schedules():
    rates = {}
    for name, make in SCHEDULES.items():
        optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = make(optimizer)
        rates[name] = []
        units = 35 if name == "warmup cosine" else 40
        for unit in range(units):
            rates[name].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if unit + 1 < units:
                scheduler.step()
    plateaus = {}
    for name, options in PLATEAUS.items():
        optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = schedulers.ReduceLROnPlateau(optimizer, **options)
        plateaus[name] = []
        for loss in LOSSES:
            plateaus[name].append(optimizer.param_groups[0]["lr"])
            scheduler.step(loss)
    return {"torch": torch.__version__, "base": 0.5, "rates": rates, "losses": LOSSES, "plateaus": plateaus}


def write(name, record):
    """One line a list."""
    text = json.dumps(record, separators=(",", ":")).replace("],", "],\n").replace("},", "},\n")
    (FOLDER / name).write_text(text + "\n")


write("optimizers.json", record_optimizers(json.loads((FOLDER / "optimizers.json").read_text()), sys.argv[1:]))
if len(sys.argv) == 1:
    write("schedules.json", record_schedules())
