#!/usr/bin/env python3
"""Records PyTorch's recurrent layers and cells, every option: writes recurrent.safetensors beside itself.

All operands and weights are waves (tests/nn/recurrent.cpp makes the same), so only results are recorded: output, last
states, and the gradients of Σ output·wave + Σ last states·waves."""
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

INPUT, HIDDEN, STEPS, BATCH = 3, 4, 5, 3


def wave(shape, seed):
    values = [0.5 * math.sin(seed + i + 0.37 * i * i) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


def set_waves(module):
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(wave(parameter.shape, 10 + i))


def recorded(results, operands, module):
    loss = sum((result * wave(result.shape, 101 + i)).sum() for i, result in enumerate(results))
    names, values = zip(*operands, *module.named_parameters())
    gradients = torch.autograd.grad(loss, values)
    record = dict(zip(("output", "h", "c"), results))
    record.update({"gradient." + name: gradient for name, gradient in zip(names, gradients)})
    return record


def layer(kind, states=False, lengths=None, **options):
    module = kind(INPUT, HIDDEN, **options)
    set_waves(module)
    first = options.get("batch_first", False)
    x = wave((BATCH, STEPS, INPUT) if first else (STEPS, BATCH, INPUT), 1).requires_grad_()
    operands, count = [("x", x)], options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    if states:
        operands += [(name, wave((count, BATCH, HIDDEN), 2 + i).requires_grad_())
                     for i, name in enumerate(("h", "c")[:2 if kind is nn.LSTM else 1])]
    given = [value for _, value in operands[1:]]
    given = (tuple(given) if kind is nn.LSTM else given[0]) if states else None
    packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False) if lengths else x
    output, last = module(packed, given)
    if lengths:
        output, _ = pad_packed_sequence(output, batch_first=first, total_length=STEPS)
    return recorded([output, *(last if kind is nn.LSTM else [last])], operands, module)


def cell(kind, states=True, **options):
    module = kind(INPUT, HIDDEN, **options)
    set_waves(module)
    lstm = kind is nn.LSTMCell
    operands = [("x", wave((BATCH, INPUT), 1).requires_grad_())]
    if states:
        operands += [(name, wave((BATCH, HIDDEN), 2 + i).requires_grad_())
                     for i, name in enumerate(("h", "c")[:2 if lstm else 1])]
    given = [value for _, value in operands[1:]]
    last = module(operands[0][1], (tuple(given) if lstm else given[0]) if states else None)
    last = list(last) if lstm else [last]
    return recorded([last[0], *last], operands, module)  # a cell's output is its h


CASES = {
    "rnn": lambda: layer(nn.RNN),
    "rnn relu": lambda: layer(nn.RNN, nonlinearity="relu", num_layers=2, states=True),
    "rnn lengths": lambda: layer(nn.RNN, bidirectional=True, states=True, lengths=[2, 5, 1]),
    "lstm": lambda: layer(nn.LSTM),
    "lstm deep": lambda: layer(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True, states=True),
    "lstm unbiased": lambda: layer(nn.LSTM, bias=False, states=True),
    "lstm lengths": lambda: layer(nn.LSTM, num_layers=2, bidirectional=True, states=True, lengths=[4, 2, 5]),
    "gru": lambda: layer(nn.GRU),
    "gru deep": lambda: layer(nn.GRU, num_layers=2, bidirectional=True, states=True),
    "gru unbiased": lambda: layer(nn.GRU, bias=False, batch_first=True, states=True),
    "gru lengths": lambda: layer(nn.GRU, num_layers=2, bidirectional=True, batch_first=True, lengths=[3, 3, 4]),
    "rnn cell": lambda: cell(nn.RNNCell),
    "rnn cell relu": lambda: cell(nn.RNNCell, nonlinearity="relu", bias=False),
    "lstm cell": lambda: cell(nn.LSTMCell),
    "lstm cell unbiased": lambda: cell(nn.LSTMCell, states=False, bias=False),
    "gru cell": lambda: cell(nn.GRUCell),
    "gru cell unbiased": lambda: cell(nn.GRUCell, bias=False),
}
tensors = {f"{name}.{key}": value.detach().clone(memory_format=torch.contiguous_format)
           for name, make in CASES.items() for key, value in make().items()}
save_file(tensors, pathlib.Path(__file__).with_suffix(".safetensors"), {"torch": torch.__version__})
