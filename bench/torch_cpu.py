"""Times the training step of one network in PyTorch on the CPU, for bench/cpu_vs_pytorch.

  python3 bench/torch_cpu.py {mlp,lenet,resnet20} [--batch 64] [--threads N] [--seconds 2]

The step is what `concord bench` runs: forward, cross-entropy, backward, SGD (rate 0.01, momentum 0.9) on one random
batch. Convolution networks are timed in both memory layouts and the faster one counts. Prints one line of JSON:
net, batch, threads, torch, layout, ms_median, ms_min, ms_max, steps.
"""
import argparse
import json
import os
import statistics
import time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("net", choices=["mlp", "lenet", "resnet20"])
arguments.add_argument("--batch", type=int, default=64)
arguments.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
arguments.add_argument("--seconds", type=float, default=2.0, help="time to measure for, a layout")
options = arguments.parse_args()
os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))

import torch  # noqa: E402  (the number of threads is read at import)
from torch import nn  # noqa: E402

torch.set_num_threads(options.threads)


class Residual(nn.Module):
    """Two 3×3 convolutions; the shortcut is a 1×1 convolution where the shape changes."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(Residual(channels, width, stride if block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def step_times(layout):
    """Milliseconds of every measured step."""
    torch.manual_seed(1)
    channels, size = (3, 32) if options.net == "resnet20" else (1, 28)
    net = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20}[options.net]().to(memory_format=layout)
    images = torch.rand(options.batch, channels, size, size).to(memory_format=layout)
    labels = torch.randint(10, (options.batch,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()

    def run(seconds):
        times = []
        start = time.perf_counter()
        while time.perf_counter() - start < seconds or len(times) < 5:
            before = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - before))
        return times

    run(0.25 * options.seconds)
    return run(options.seconds)


layouts = {"contiguous": torch.contiguous_format}
if options.net != "mlp":
    layouts["channels-last"] = torch.channels_last
measured = {name: step_times(layout) for name, layout in layouts.items()}
best = min(measured, key=lambda name: statistics.median(measured[name]))
print(json.dumps({
    "net": options.net, "batch": options.batch, "threads": options.threads, "torch": torch.__version__, "layout": best,
    "ms_median": round(statistics.median(measured[best]), 4), "ms_min": round(min(measured[best]), 4),
    "ms_max": round(max(measured[best]), 4), "steps": len(measured[best])}))
