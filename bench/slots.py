"""Commands side by side on one host, each with a GPU and a share of the cores for itself: what gpu_tables, cpu_tables
and precisions share. A command that takes too long ends with all of its processes, so that none of them disturbs the next."""
import dataclasses
import math
import os
import pathlib
import signal
import statistics
import subprocess
import time

from command import Failure


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    words: list  # the command
    log: pathlib.Path  # for what it prints
    folder: pathlib.Path | None = None  # where it runs


@dataclasses.dataclass(frozen=True)
class Slot:
    gpu: str | None  # of CUDA_VISIBLE_DEVICES; None: leaves the GPUs alone
    cores: tuple


@dataclasses.dataclass(frozen=True)
class Ended:
    job: Job
    seconds: float
    why: str  # it failed; empty: it did not

    def lines(self):
        return self.job.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()


def visible_gpus(count):
    """The first `count` GPUs, or all of them (None), as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        gpus = [name for name in named.split(",") if name]
    else:
        try:
            listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
        except OSError:
            listed = ""
        gpus = [str(i) for i, line in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]
        if not gpus and count:  # without nvidia-smi the caller knows
            gpus = [str(i) for i in range(count)]
    if not gpus:
        raise Failure("nvidia-smi lists no GPU; --gpus says how many there are")
    if count and count > len(gpus):
        raise Failure(f"--gpus {count}: there are {len(gpus)}")
    return gpus[:count or len(gpus)]


def slots(count, gpus):
    """`count` slots: equal shares of the cores that this process may use, and the GPUs in turn."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // count)
    return [Slot(gpus[i % len(gpus)] if gpus else None, tuple(cores[(i * share + k) % len(cores)] for k in range(share)))
            for i in range(count)]


def core_slots(count, threads, first=0):
    """`count` slots without a GPU, each with `threads` cores, from a first core on: of a core's hardware threads one."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(path.read_text(encoding="utf-8") if path.exists() else cpu, cpu)
    cores = list(cores.values())[first:]
    if count * threads > len(cores):
        raise Failure(f"{count} × {threads} threads need more than {len(cores)} cores")
    return [Slot(None, tuple(cores[i * threads:(i + 1) * threads])) for i in range(count)]


def family(pid):
    """The process and all that descend from it, those in sessions of their own, too."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill(pid):
    """The whole family. It is stopped first: what is stopped has no more children."""
    stopped = []
    while new := [one for one in family(pid) if one not in stopped]:
        for one in new:
            send(one, signal.SIGSTOP)
        stopped += new
    for one in stopped:
        send(one, signal.SIGKILL)


class Running:
    def __init__(self, job, slot, limit):
        self.job, self.slot, self.limit, self.begin = job, slot, limit, time.monotonic()
        job.log.parent.mkdir(parents=True, exist_ok=True)
        own = {"OMP_NUM_THREADS": str(len(slot.cores))}
        own |= {} if slot.gpu is None else {"CUDA_VISIBLE_DEVICES": slot.gpu}
        with open(job.log, "wb") as log:
            try:
                self.process = subprocess.Popen(
                    [str(word) for word in job.words], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    cwd=job.folder, env=os.environ | own, start_new_session=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, slot.cores))
            except OSError as error:
                raise Failure(f"{job.words[0]} does not run: {error.strerror}") from None

    def ended(self):
        """What came of it; None while it runs."""
        code, seconds = self.process.poll(), time.monotonic() - self.begin
        if code is None and seconds <= self.limit:
            return None
        self.end()
        if code is None:
            return Ended(self.job, seconds, f"took more than {self.limit:.0f} s")
        result = Ended(self.job, seconds, "")
        if code:
            lines = result.lines()
            result = dataclasses.replace(result, why=lines[-1] if lines else f"ended with {code}")
        return result

    def end(self):
        if self.process.poll() is None:
            kill(self.process.pid)
            self.process.wait()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # what it has left behind
        except ProcessLookupError:
            pass


def run(jobs, places, limit, tell, until=math.inf):
    """Runs each job on a free one of these slots, in their order, and calls tell(Ended). A job may take `limit` seconds,
    and none runs on after the time `until` (of time.monotonic): a job is not started when less time is left than the
    jobs before it took (median). Returns the jobs that were not started."""
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    waiting, free, running, took = list(jobs), list(places), [], []
    try:
        while waiting or running:
            left = until - time.monotonic()
            while waiting and free and left > (statistics.median(took) if took else 0):
                running.append(Running(waiting.pop(0), free.pop(0), min(limit, left)))
            if not running:
                break
            time.sleep(0.05)
            for one in list(running):
                if result := one.ended():
                    running.remove(one)
                    free.append(one.slot)
                    took.append(result.seconds)
                    tell(result)
    finally:
        for one in running:
            one.end()
        signal.signal(signal.SIGTERM, before)
    return waiting
