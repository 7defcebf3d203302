"""PyTorch's side of bench/ranks_vs_pytorch: one network on one or several GPUs of this machine, by DistributedDataParallel
with NCCL, a process a GPU. Prints JSON.

  python3 bench/torch_ranks.py NET --ranks 2 --batch 64 --input 3x224x224 --classes 1000 [--task language]
                               [--precision fp32|tf32|bf16] [--steps 60] [--all-reduce]

The step is that of bench/torch_step.py in eager mode, because DistributedDataParallel overlaps its exchange with an eager
backward pass. Its time is that of `--steps` steps after 10 for warming up, the best of three.
--all-reduce measures NCCL's all-reduce instead, in fp32: {bytes: microseconds}.
"""
import argparse
import json
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

import torch_nets

SIZES = [64 << 10 << 2 * i for i in range(8)]  # 64 KiB to 1 GiB


def best_of(runs, steps, work):
    best = float("inf")
    for _ in range(runs):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / steps)
    return best


def reductions(rank):
    times = {}
    for size in SIZES:
        values = torch.ones(size // 4, device=f"cuda:{rank}")
        for _ in range(3):
            dist.all_reduce(values)
        times[size] = 1e6 * best_of(5, 50 if size < 100 << 20 else 10, lambda: dist.all_reduce(values))
    return times


def step_time(rank, options):
    device = f"cuda:{rank}"
    torch.manual_seed(1)
    narrow = options.precision == "bf16"
    net = torch_nets.make(options.net, options.classes).to(device)
    shape = [options.batch, *(int(n) for n in options.input.split("x"))]
    language = options.task == "language"
    if language:
        x = torch.randint(options.classes, shape, device=device)
        labels = torch.randint(options.classes, shape, device=device).flatten()
    else:
        x = torch.rand(shape, device=device)
        labels = torch.randint(options.classes, (options.batch,), device=device)
        if narrow:
            net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    net.train()
    if options.ranks > 1:
        net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
            y = net(x)
            loss = F.cross_entropy(y.flatten(0, 1) if language else y, labels)
        loss.backward()
        optimizer.step()

    for _ in range(10):
        step()
    return 1e3 * best_of(3, options.steps, step)


def run(rank, options, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    torch.cuda.set_device(rank)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision != "fp32"
    torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl", rank=rank, world_size=options.ranks)
    found = reductions(rank) if options.all_reduce else step_time(rank, options)
    if rank == 0:
        results.put(found)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", nargs="?")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--input")
    parser.add_argument("--classes", type=int)
    parser.add_argument("--task", default="classification", choices=["classification", "language"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--all-reduce", action="store_true")
    options = parser.parse_args()
    if not options.all_reduce and not (options.net and options.input and options.classes):
        parser.error("NET, --input and --classes are required")
    options.port = free_port()
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(run, (options, results), options.ranks)
    found = results.get()
    if options.all_reduce:
        print(json.dumps({"torch": torch.__version__, "ranks": options.ranks, "microseconds": found}))
    else:
        print(json.dumps({"torch": torch.__version__, "net": options.net, "ranks": options.ranks,
                          "batch": options.batch, "precision": options.precision, "milliseconds": found}))


if __name__ == "__main__":
    main()
