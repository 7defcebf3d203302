"""What the benchmarks of lost ranks share: the processes of ranks, how long a training pauses, and whether weights are
the same."""
import json
import pathlib
import struct
import time


def weights(file):
    """All numbers of a safetensors file, by name."""
    data = pathlib.Path(file).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin:8 + size + end]
        tensors[name] = struct.unpack(f"<{len(raw) // 4}f", raw)
    return tensors


def difference(a, b):
    """The largest one, relative to the largest number."""
    most = max(abs(x) for values in b.values() for x in values)
    return max(abs(x - y) for name in b for x, y in zip(a[name], b[name])) / most


def rank_process(launcher, rank):
    """The process of a rank: the child of the launcher whose environment says so."""
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        try:
            if f"\0RANK={rank}\0".encode() in b"\0" + pathlib.Path(f"/proc/{child}/environ").read_bytes():
                return int(child)
        except OSError:
            pass
    return None


def longest_pause(times):
    """Between two epochs, beyond the usual time of one."""
    gaps = sorted(b - a for a, b in zip(times, times[1:]) if b > a)
    return gaps[-1] - gaps[len(gaps) // 2] if gaps else 0.0


def epochs_in(log):
    return log.read_bytes().count(b'"event":"epoch"') if log.exists() else 0


def watch(processes, logs, limit, is_due, lose):
    """Waits for the end of all processes, and calls `lose` once is_due(seconds, epochs). Returns when the epochs of the
    logs ended and when `lose` was called, in seconds; nothing for what hangs, which is killed."""
    times, begin, lost_at = [], time.time(), None
    while any(process.poll() is None for process in processes):
        epochs = sum(epochs_in(log) for log in logs)
        times += [time.time()] * (epochs - len(times))
        if lost_at is None and is_due(time.time() - begin, epochs):
            lost_at = time.time()
            lose()
        if time.time() - begin > limit:
            for process in processes:
                process.kill()
            return None
        time.sleep(0.005)
    return times, lost_at
