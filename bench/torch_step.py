"""PyTorch's side of the benchmarks: times one network in one process and prints JSON.

  python3 bench/torch_step.py NET --batch 64 --input 3x224x224 --classes 1000 [--task classification]
          [--precision fp32|tf32|bf16|fp16] [--device cuda|cpu] [--layout auto|contiguous|channels_last|best]
          [--modes eager,graph,compiled,compiled_graph]
  python3 bench/torch_step.py --probe [--device cuda]        what products and copies reach on this device

The step is what `concord bench` runs: forward, the loss of the task (bench/torch_tasks.py), backward, SGD (rate 0.01,
momentum 0.9) on one random batch that lies on the device; it is timed as src/compile/measure.cpp times ours: as many
runs between two waits of the host as fill 5 ms, and so for --seconds. bf16 and fp16 are autocast (fp16 with loss
scaling); their inference is timed with autocast and with converted weights, and the faster one counts (compiled:
converted weights alone).

Modes: eager; graph: the whole step is captured in a CUDA graph and replayed; compiled: torch.compile, with what it
takes by default; compiled_graph: the compiled step in a CUDA graph. "train" and "infer" of the JSON are the times of
the fastest mode; "modes" there has the median of each mode asked for, null where "left_out" has the reason. Only eager
may not fail. Exit code 3: PyTorch has no such precision there.
"""
import argparse
import contextlib
import copy
import functools
import gc
import json
import os
import resource
import statistics
import sys
import time

from command import MODES, threads

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("net", nargs="?")
parser.add_argument("--probe", action="store_true")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--input", help="one sample, such as 3x224x224")
parser.add_argument("--classes", type=int, help="0: the outputs are no classes")
parser.add_argument("--task", default="classification", help="of `concord models`")
parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
parser.add_argument("--device", default="cpu")
parser.add_argument("--layout", default="auto", choices=["auto", "contiguous", "channels_last", "best"],
                    help="of images; auto: the better one on a CPU, else channels_last for bf16 and fp16 alone")
parser.add_argument("--modes", help="with commas [all four on a GPU, eager,compiled on a CPU]")
parser.add_argument("--seconds", type=float, default=1.0, help="for each mode of each phase")
parser.add_argument("--threads", type=int, default=threads(), help="on the CPU")
options = parser.parse_args()
if not options.probe and not (options.net and options.input and options.classes is not None):
    parser.error("NET, --input and --classes are required")
IS_CUDA = options.device.startswith("cuda")
asked = (options.modes or ("eager,graph,compiled,compiled_graph" if IS_CUDA else "eager,compiled")).split(",")
if not set(asked) <= set(MODES):
    parser.error(f"--modes {options.modes}: expected some of {', '.join(MODES)}")
os.environ["OMP_NUM_THREADS"] = str(options.threads)

import torch  # noqa: E402  (the number of threads is read at import)

import torch_nets  # noqa: E402
import torch_tasks  # noqa: E402

if options.task not in torch_tasks.LOSSES:
    parser.error(f"--task {options.task}: expected one of {', '.join(torch_tasks.LOSSES)}")
NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)


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


def require_autocast():
    """PyTorch 1.13 has none to fp16 on a CPU."""
    try:
        with torch.autocast("cuda" if IS_CUDA else options.device, NARROW):
            pass
    except RuntimeError as error:
        refuse(error, 3)


def batch_of(net):
    shape = [options.batch, *(int(n) for n in options.input.split("x"))]
    x = torch_tasks.inputs(options.task, shape, options.classes, options.device)
    with torch.no_grad():
        output = net.eval()(x[:1]).shape[1:]
    return x, torch_tasks.targets(options.task, [options.batch, *output], options.classes, options.device)


def no_clear():
    pass


def captured(run, clear):
    """Starts `run` again from a CUDA graph. All of the program is on one stream that is not the default one, so the
    runs before were a warm-up there; gradients are made anew, in the graph's memory."""
    clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        run()
    return graph.replay


def why_not(mode, net):
    """Why this mode is not tried, or nothing."""
    if "graph" in mode and not IS_CUDA:
        return "a CUDA graph needs a CUDA device"
    if "compiled" in mode and IS_CUDA and any(isinstance(module, torch.nn.RNNBase) for module in net.modules()):
        return "torch.compile does not cover cuDNN's recurrent layers well"
    return ""


def timed(mode, run_of, clear=no_clear):
    """Times of run_of(is_compiled) in one mode, or the reason why there are none. `clear` drops what runs leave."""
    try:
        run = run_of("compiled" in mode)
        for _ in range(3):  # compiles, searches cuDNN's algorithms, makes the optimizer's state
            run()
        wait()
        clear()
        if IS_CUDA:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        result = measure(captured(run, clear) if "graph" in mode else run, options.seconds)
        return result | {"peak_device_bytes": torch.cuda.max_memory_allocated() if IS_CUDA else 0}
    except Exception as error:  # of whatever the compiler, its compilers and the driver raise
        if mode == "eager":
            raise
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
    finally:
        clear()


def keep(results, mode, found):
    """The faster of what one mode took; a reason stays only where it took nothing."""
    old = results.get(mode)
    if not isinstance(old, dict) or isinstance(found, dict) and found["median_ms"] < old["median_ms"]:
        results[mode] = found


def grad_scaler(device):
    """Older versions of PyTorch have it for CUDA alone; without CUDA it warns, and scales nothing."""
    return torch.amp.GradScaler(device) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()


def training(net, x, target, modes):
    """{mode: times or a reason}. All modes train the same weights."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **({"fused": True} if IS_CUDA else {}))
    device = "cuda" if IS_CUDA else options.device
    scaler = grad_scaler(device) if options.precision == "fp16" else None
    task_loss = torch_tasks.LOSSES[options.task]

    def loss_of(net, x, target):
        with torch.autocast(device, NARROW or torch.bfloat16, enabled=NARROW is not None):
            return task_loss(net(x), target)

    @functools.cache
    def step_of(is_compiled):  # with a fused optimizer the scaler does not wait for the device
        loss = torch.compile(loss_of) if is_compiled else loss_of

        def step():
            optimizer.zero_grad(set_to_none=True)
            if scaler is None:
                loss(net, x, target).backward()
                optimizer.step()
            else:
                scaler.scale(loss(net, x, target)).backward()
                scaler.step(optimizer)
                scaler.update()
        return step

    net.train()
    return {mode: why_not(mode, net) or timed(mode, step_of, optimizer.zero_grad) for mode in modes}


def inference(net, x, modes):
    """{mode: times of the faster form, with its name, or a reason}."""
    net.eval()
    forms, results = {"autocast" if NARROW else "plain": (net, x)}, {}
    if NARROW:
        forms["converted"] = copy.deepcopy(net).to(NARROW), x.to(NARROW) if x.is_floating_point() else x
    for form, (one, value) in forms.items():
        @functools.cache
        def run_of(is_compiled, one=one, value=value):
            function = torch.compile(one) if is_compiled else one
            return lambda: function(value)

        for mode in modes:
            is_compiled = "compiled" in mode
            if is_compiled and form == "autocast":
                continue
            with torch.no_grad() if is_compiled else torch.inference_mode(), \
                    torch.autocast("cuda" if IS_CUDA else options.device, NARROW or torch.bfloat16,
                                   enabled=form == "autocast"):
                found = why_not(mode, net) or timed(mode, run_of)
            keep(results, mode, found if isinstance(found, str) else found | {"form": form})
    return results


def layouts(is_image):
    names = {"auto": ["channels_last" if NARROW else "contiguous"] if IS_CUDA else ["contiguous", "channels_last"],
             "best": ["contiguous", "channels_last"]}.get(options.layout, [options.layout])
    return names if is_image else ["contiguous"]


def measured(layout, modes):
    """Number of parameters, and both phases in these modes with one memory layout."""
    torch.manual_seed(1)
    net = torch_nets.make(options.net, options.classes).to(options.device)
    x, target = batch_of(net)
    if layout == "channels_last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    results = {"train": training(net, x, target, modes)}
    if "compiled" in " ".join(modes) and hasattr(torch, "compiler"):  # from PyTorch 2.1 on
        torch.compiler.reset()
    results["infer"] = inference(net, x, modes)
    for times in (times for found in results.values() for times in found.values() if isinstance(times, dict)):
        times["layout"] = layout
    return sum(p.numel() for p in net.parameters()), results


def resident():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def all_measured():
    """Fields of the JSON. Eager comes first: the compiler would add to the memory of the process. Graphs come last: where
    one is not captured, the random numbers of later modes suffer."""
    best, memory = {"train": {}, "infer": {}}, None
    others = sorted((mode for mode in MODES if mode in asked and mode != "eager"), key=lambda mode: "graph" in mode)
    for modes in (["eager"] if "eager" in asked else [], others):
        for layout in layouts(options.input.count("x") == 2) if modes else []:
            parameters, results = measured(layout, modes)
            for phase, mode in ((phase, mode) for phase in best for mode in modes):
                keep(best[phase], mode, results[phase][mode])
            gc.collect()
        memory = memory or modes and resident()
    fields = {"parameters": parameters, "peak_resident_bytes": memory}
    for phase, found in best.items():
        times = {mode: found[mode] for mode in MODES if isinstance(found.get(mode), dict)}
        reasons = {mode: found[mode] for mode in MODES if isinstance(found.get(mode), str)}
        if not times:
            refuse("; ".join(f"{mode}: {reason}" for mode, reason in reasons.items()), 1)
        mode = min(times, key=lambda name: times[name]["median_ms"])
        fields[phase] = times[mode] | {
            "mode": mode, "modes": {name: times[name]["median_ms"] if name in times else None
                                    for name in MODES if name in asked}, "left_out": reasons}
    return fields


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
    if NARROW:
        require_autocast()
    about = {"torch": torch.__version__, "device": options.device, "device_name": device_name(),
             "cudnn": torch.backends.cudnn.version() if IS_CUDA else None, "threads": options.threads}
    if options.probe:
        print(json.dumps(about | {"ceilings": probe()}))
        return
    use_precision(options.precision)
    try:
        with torch.cuda.stream(torch.cuda.Stream(options.device)) if IS_CUDA else contextlib.nullcontext():
            fields = all_measured()
    except LookupError as error:
        refuse(error, 2)
    except ImportError as error:
        needed = "tests/goldens beside bench" if (error.name or "").startswith("zoo") else "torchvision"
        refuse(f"{error}; {needed} is needed for {options.net}", 1)
    except torch.cuda.OutOfMemoryError as error:
        refuse(f"out of memory: {str(error).splitlines()[0]}", 1)
    print(json.dumps(about | {"net": options.net, "batch": options.batch, "precision": options.precision} | fields))


main()
