#!/usr/bin/env python3
"""Records PyTorch's optimizers and schedules: writes optimizers.json and schedules.json beside itself.

A small network, mse(tanh(x·Wᵀ + b), y), is trained for 20 steps from the same start by each optimizer; the weights
after steps 1, 2 and 20 are kept. Of each schedule the rates of 40 units are kept.
"""
import json
import pathlib

import torch
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop
from torch.optim import lr_scheduler as schedulers

FOLDER = pathlib.Path(__file__).parent
STEPS = (1, 2, 20)

OPTIMIZERS = {
    "sgd": lambda p: SGD(p, lr=0.1),
    "sgd momentum": lambda p: SGD(p, lr=0.1, momentum=0.9),
    "sgd nesterov": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "sgd dampening": lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "adam": lambda p: Adam(p, lr=0.01),
    "adam amsgrad": lambda p: Adam(p, lr=0.05, betas=(0.8, 0.9), amsgrad=True),
    "adam decay": lambda p: Adam(p, lr=0.01, weight_decay=0.1, eps=1e-6),
    "adamw": lambda p: AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: RMSprop(p, lr=0.01),
    "rmsprop centered": lambda p: RMSprop(p, lr=0.01, alpha=0.9, centered=True, momentum=0.5, weight_decay=0.01),
    "adagrad": lambda p: Adagrad(p, lr=0.1),
    "adagrad decay": lambda p: Adagrad(p, lr=0.1, lr_decay=0.05, initial_accumulator_value=0.1, weight_decay=0.01),
    "clip norm": lambda p: SGD(p, lr=0.1, momentum=0.9),
    "clip value": lambda p: SGD(p, lr=0.1, momentum=0.9),
}


def clip(name, parameters):
    if name == "clip norm":
        torch.nn.utils.clip_grad_norm_(parameters, 0.3)
    if name == "clip value":
        torch.nn.utils.clip_grad_value_(parameters, 0.05)


def record_optimizers():
    torch.manual_seed(3)
    x, y = torch.randn(16, 5), torch.rand(16, 3) * 2 - 1
    weight, bias = torch.randn(3, 5), torch.randn(3)
    runs = {}
    for name, make in OPTIMIZERS.items():
        parameters = [weight.clone().requires_grad_(), bias.clone().requires_grad_()]
        optimizer = make(parameters)
        kept = {}
        for step in range(1, max(STEPS) + 1):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(torch.tanh(x @ parameters[0].T + parameters[1]), y)
            loss.backward()
            clip(name, parameters)
            optimizer.step()
            if step in STEPS:
                kept[step] = {"weight": parameters[0].flatten().tolist(), "bias": parameters[1].tolist()}
        runs[name] = kept
    start = {"x": x, "y": y, "weight": weight, "bias": bias}
    return {"torch": torch.__version__, "start": {k: v.flatten().tolist() for k, v in start.items()}, "runs": runs}


def cosine_after_warmup(o):
    warm = schedulers.LinearLR(o, start_factor=0.1, total_iters=5)
    return schedulers.SequentialLR(o, [warm, schedulers.CosineAnnealingLR(o, T_max=30)], milestones=[5])


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
    return {"torch": torch.__version__, "base": 0.5, "rates": rates}


(FOLDER / "optimizers.json").write_text(json.dumps(record_optimizers(), indent=0))
(FOLDER / "schedules.json").write_text(json.dumps(record_schedules(), indent=0))
