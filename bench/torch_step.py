"""PyTorch's side of the benchmarks: times one network in one process and prints JSON.

  python3 bench/torch_step.py NET --batch 64 --input 3x224x224 --classes 1000 [--task classification|language]
          [--precision fp32|tf32|bf16|fp16] [--device cuda|cpu] [--layout auto|contiguous|channels_last|best]
  python3 bench/torch_step.py --probe [--device cuda]        what products and copies reach on this device

The step is what `concord bench` runs: forward, cross-entropy, backward, SGD (rate 0.01, momentum 0.9) on one random
batch that lies on the device; it is timed as src/compile/measure.cpp times ours: as many runs between two waits of the
host as fill 5 ms, and so for --seconds. bf16 and fp16 are autocast (fp16 with loss scaling); their inference is timed
with autocast and with converted weights, and the faster one counts. Exit code 3: PyTorch has no such precision there.
"""
import argparse
import copy
import json
import os
import resource
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("net", nargs="?")
parser.add_argument("--probe", action="store_true")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--input", help="one sample, such as 3x224x224")
parser.add_argument("--classes", type=int)
parser.add_argument("--task", default="classification", choices=["classification", "language"])
parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
parser.add_argument("--device", default="cpu")
parser.add_argument("--layout", default="auto", choices=["auto", "contiguous", "channels_last", "best"],
                    help="of images; auto: the better one on a CPU, else channels_last for bf16 and fp16 alone")
parser.add_argument("--seconds", type=float, default=1.0)
parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="on the CPU")
options = parser.parse_args()
if not options.probe and not (options.net and options.input and options.classes):
    parser.error("NET, --input and --classes are required")
os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))

import torch  # noqa: E402  (the number of threads is read at import)
import torch.nn.functional as F  # noqa: E402

import torch_nets  # noqa: E402

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
IS_CUDA = options.device.startswith("cuda")


def refuse(text, code):
    print(f"torch_step: {text}", file=sys.stderr)
    sys.exit(code)


def wait():
    if IS_CUDA:
        torch.cuda.synchronize()


def measure(run, seconds, warm_up=5):
    """Milliseconds of a run: median, least, most, samples."""
    def timed(runs):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        wait()
        return 1e3 * (time.perf_counter() - start)

    wait()
    timed(warm_up)
    runs = 1
    while timed(runs) < 5 and runs < 256:
        runs *= 2
    times, begin = [], time.perf_counter()
    while len(times) < 10 or time.perf_counter() - begin < seconds:
        times.append(timed(runs) / runs)
    return {"median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times), "samples": len(times)}


def use_precision(precision):
    tf32 = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


def batch_of():
    shape = [options.batch, *(int(n) for n in options.input.split("x"))]
    if options.task == "language":
        x = torch.randint(options.classes, shape, device=options.device)
        return x, torch.randint(options.classes, shape, device=options.device).flatten()
    return (torch.rand(shape, device=options.device),
            torch.randint(options.classes, (options.batch,), device=options.device))


def training(net, x, labels):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    device = "cuda" if IS_CUDA else options.device
    scaler = torch.amp.GradScaler(device) if options.precision == "fp16" else None

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, NARROW or torch.bfloat16, enabled=NARROW is not None):
            y = net(x)
            loss = F.cross_entropy(y.flatten(0, 1) if options.task == "language" else y, labels)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    net.train()
    return measure(step, options.seconds)


def inference(net, x):
    """The faster form, with its name."""
    net.eval()
    results = {}
    with torch.inference_mode():
        with torch.autocast("cuda" if IS_CUDA else options.device, NARROW or torch.bfloat16,
                            enabled=NARROW is not None):
            results["autocast" if NARROW else "plain"] = measure(lambda: net(x), options.seconds)
        if NARROW:
            narrow = copy.deepcopy(net).to(NARROW)
            y = x.to(NARROW) if x.is_floating_point() else x
            results["converted"] = measure(lambda: narrow(y), options.seconds)
    best = min(results, key=lambda form: results[form]["median_ms"])
    return results[best] | {"form": best}


def layouts(is_image):
    names = {"auto": ["channels_last" if NARROW else "contiguous"] if IS_CUDA else ["contiguous", "channels_last"],
             "best": ["contiguous", "channels_last"]}.get(options.layout, [options.layout])
    return names if is_image else ["contiguous"]


def measured(layout):
    """Both phases with one memory layout."""
    torch.manual_seed(1)
    net, (x, labels) = torch_nets.make(options.net, options.classes).to(options.device), batch_of()
    if layout == "channels_last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if IS_CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    result = {"parameters": sum(p.numel() for p in net.parameters()), "train": training(net, x, labels)}
    result["train"] |= {"layout": layout, "peak_device_bytes": torch.cuda.max_memory_allocated() if IS_CUDA else 0}
    result["infer"] = inference(net, x) | {"layout": layout}
    return result


def probe():
    """Ceilings as bench/roofline.py names them: TFLOP/s of the best square product, TB/s of a copy."""
    ceilings, sizes = {}, (4096, 8192) if IS_CUDA else (1024, 2048)
    for precision in ("fp32", "tf32", "bf16", "fp16") if IS_CUDA else ("fp32",):
        use_precision(precision)
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
        best = 0.0
        for size in sizes:
            a, b = (torch.randn(size, size, device=options.device).to(dtype) for _ in range(2))
            out = torch.empty_like(a)
            best = max(best, 2e-9 * size ** 3 / measure(lambda: torch.mm(a, b, out=out), options.seconds)["min_ms"])
        ceilings[precision] = best
    ceilings["fma"] = ceilings["fp32"]
    source = torch.rand((1 << 30 if IS_CUDA else 1 << 26) // 4, device=options.device)
    target = torch.empty_like(source)
    ms = measure(lambda: target.copy_(source), options.seconds)["min_ms"]
    ceilings["bandwidth"] = 2e-9 * source.numel() * source.element_size() / ms
    return {name: float(f"{value:.4g}") for name, value in ceilings.items()}


def device_name():
    if IS_CUDA:
        return torch.cuda.get_device_name(options.device)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "CPU")


def main():
    torch.set_num_threads(options.threads)
    if IS_CUDA and not torch.cuda.is_available():
        refuse(f"this PyTorch ({torch.__version__}) has no CUDA device", 1)
    if not IS_CUDA and options.precision == "tf32":
        refuse("PyTorch has no tf32 on a CPU", 3)
    about = {"torch": torch.__version__, "device": options.device, "device_name": device_name(),
             "cudnn": torch.backends.cudnn.version() if IS_CUDA else None, "threads": options.threads}
    if options.probe:
        print(json.dumps(about | {"ceilings": probe()}))
        return
    use_precision(options.precision)
    try:
        is_image = options.input.count("x") == 2
        results = [measured(layout) for layout in layouts(is_image)]
    except LookupError as error:
        refuse(error, 2)
    except ImportError as error:
        refuse(f"{error}; torchvision is needed for {options.net}", 1)
    except torch.cuda.OutOfMemoryError as error:
        refuse(f"out of memory: {str(error).splitlines()[0]}", 1)
    fastest = {phase: min((result[phase] for result in results), key=lambda times: times["median_ms"])
               for phase in ("train", "infer")}
    print(json.dumps(about | {
        "net": options.net, "batch": options.batch, "precision": options.precision,
        "parameters": results[0]["parameters"], **fastest,
        "peak_resident_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


main()
