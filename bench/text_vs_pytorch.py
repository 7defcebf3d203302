"""Trains the networks of samples/char_lstm.cpp and samples/tiny_gpt.cpp in PyTorch, to set Concord beside it.

  python3 bench/text_vs_pytorch.py {char_lstm,tiny_gpt,ngram} [--epochs N] [--seeds 1,2,3] [--text FILE] [--device cpu]

Sizes, split of the text, batches, optimizer, schedule, clipping and dropout are those of the samples; first weights have
PyTorch's distributions, which are Concord's, but other random numbers. The device is CUDA's if there is one, else the
CPU. Prints a line an epoch to stderr and, for each seed, one line of JSON: net, device, torch, seed, epochs, bits
(validation bits per character after the last epoch), best (the least of all epochs), seconds (of training). `ngram`
trains nothing: it says what counting the characters after the last 1 to 6 reaches on the same parts of the text.
"""
import argparse
import collections
import json
import math
import os
import sys
import time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("net", choices=["char_lstm", "tiny_gpt", "ngram"])
arguments.add_argument("--epochs", type=int, default=0, help="0: as many as the sample")
arguments.add_argument("--seeds", default="1,2,3")
arguments.add_argument("--text", default="/usr/share/common-licenses/GPL-3")
arguments.add_argument("--device", default="", help="empty: CUDA's if there is one, else the CPU")
arguments.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="on the CPU")
options = arguments.parse_args()
os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))

import torch  # noqa: E402  (the number of threads is read at import)
from torch import nn  # noqa: E402

torch.set_num_threads(options.threads)
DEVICE = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
LENGTH, STRIDE, VALIDATION_PART = 128, 16, 0.1


class CharLstm(nn.Module):
    BATCH, RATE, WEIGHT_DECAY, EPOCHS = 32, 4e-3, 1e-2, 8

    def __init__(self, characters):
        super().__init__()
        self.embedding = nn.Embedding(characters, 64)
        self.lstm = nn.LSTM(64, 256, num_layers=2, batch_first=True, dropout=0.4)
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(256, characters)

    def forward(self, x):  # (N, T) -> (N, T, characters)
        return self.head(self.dropout(self.lstm(self.embedding(x))[0]))


class TinyGpt(nn.Module):
    BATCH, RATE, WEIGHT_DECAY, EPOCHS = 16, 2e-3, 1e-1, 12

    def __init__(self, characters):
        super().__init__()
        self.tokens = nn.Embedding(characters, 128)
        self.positions = nn.Parameter(torch.empty(LENGTH, 128))
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        nn.init.normal_(self.positions, 0, 0.02)
        # Made one by one: nn.TransformerEncoder would begin with equal weights in all.
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(128, 4, 512, dropout=0.2, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(4))
        self.norm = nn.LayerNorm(128)
        self.head = nn.Linear(128, characters)
        mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        x = self.tokens(x) + self.positions
        for block in self.blocks:
            x = block(x, src_mask=self.mask, is_causal=True)
        return self.head(self.norm(x))


def text_parts():
    """Both parts of the text i64 (N), and the number of characters: as concord::data::characters."""
    with open(options.text, "rb") as file:
        text = file.read()
    alphabet = sorted(set(text))
    numbers = torch.tensor([alphabet.index(c) for c in text])
    cut = int(len(text) * (1 - VALIDATION_PART))
    return numbers[:cut], numbers[cut:], len(alphabet)


def ngram():
    """Contexts of up to `order` characters, the longer mixed with the shorter (Witten and Bell, 1991)."""
    training, validation, characters = text_parts()
    training, validation = tuple(training.tolist()), tuple(validation.tolist())
    for order in range(1, 7):
        counts = collections.defaultdict(collections.Counter)
        for i, character in enumerate(training):
            for n in range(min(order, i) + 1):
                counts[training[i - n:i]][character] += 1
        bits = 0.0
        for i, character in enumerate(validation):
            probability = 1 / characters
            for n in range(min(order, i) + 1):
                seen = counts.get(validation[i - n:i])
                if seen is None:
                    break
                probability = (seen[character] + len(seen) * probability) / (seen.total() + len(seen))
            bits -= math.log2(probability)
        print(json.dumps({"net": "ngram", "order": order, "bits": round(bits / len(validation), 4)}), flush=True)


def bits_per_character(net, samples):
    net.eval()
    with torch.no_grad():
        logits = net(samples[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten()).item() / math.log(2)


def synchronize():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def train(seed):
    torch.manual_seed(seed)
    training, validation, characters = text_parts()
    training = training.unfold(0, LENGTH + 1, STRIDE).to(DEVICE)
    validation = validation.unfold(0, LENGTH + 1, LENGTH).to(DEVICE)
    net = {"char_lstm": CharLstm, "tiny_gpt": TinyGpt}[options.net](characters).to(DEVICE)
    epochs = options.epochs or net.EPOCHS
    optimizer = torch.optim.AdamW(net.parameters(), lr=net.RATE, weight_decay=net.WEIGHT_DECAY)
    steps = epochs * math.ceil(len(training) / net.BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, net.RATE, total_steps=steps, cycle_momentum=False)
    seconds, bits = 0.0, []
    for epoch in range(1, epochs + 1):
        synchronize()
        start = time.perf_counter()
        net.train()
        for rows in torch.randperm(len(training), device=DEVICE).split(net.BATCH):
            samples = training[rows]
            loss = nn.functional.cross_entropy(net(samples[:, :-1]).flatten(0, 1), samples[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        synchronize()
        seconds += time.perf_counter() - start
        bits.append(bits_per_character(net, validation))
        print(f"seed {seed}, epoch {epoch}/{epochs}: {bits[-1]:.3f} bits per character, {seconds:.1f} s",
              file=sys.stderr)
    print(json.dumps({
        "net": options.net, "device": DEVICE.type, "torch": torch.__version__, "seed": seed, "epochs": epochs,
        "bits": round(bits[-1], 4), "best": round(min(bits), 4), "seconds": round(seconds, 2)}), flush=True)


if options.net == "ngram":
    ngram()
else:
    for one_seed in options.seeds.split(","):
        train(int(one_seed))
