"""Machines for benchmarks of several: network namespaces of this one, with links whose rate `tc` limits. They need root,
`ip` and `tc` (Debian: iproute2); without them, Skip, whose exit code is 77."""
import os
import shutil
import subprocess

import command

SKIPPED = 77


class Skip(command.Failure):
    code = SKIPPED


def require_tools():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            raise Skip(f"there is no program {tool}: apt-get install iproute2")


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise command.Failure(f"{' '.join(map(str, words))}: {command.last_lines(done.stderr)}")


class Machines:
    """Namespaces on one bridge; each link has `gigabits` in both directions, and a queue of so many milliseconds."""

    def __init__(self, count, gigabits, queue=20):
        self.names = [f"concord{os.getpid()}-{i}" for i in range(count)]
        self.bridge = f"cc{os.getpid()}"
        self.addresses = [f"10.203.7.{i + 1}" for i in range(count)]
        self.gigabits = gigabits
        self.queue = queue

    def __enter__(self):
        try:
            run("ip", "link", "add", self.bridge, "type", "bridge")
            run("ip", "link", "set", self.bridge, "up")
            for i, (name, address) in enumerate(zip(self.names, self.addresses)):
                outside = f"{self.bridge}v{i}"
                run("ip", "netns", "add", name)
                run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
                run("ip", "link", "set", outside, "master", self.bridge)
                run("ip", "link", "set", outside, "up")
                for words in (["address", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                              ["link", "set", "lo", "up"]):
                    run("ip", "-n", name, *words)
                # A burst of a few milliseconds, as a card's ring holds.
                limit = ["root", "tbf", "rate", f"{self.gigabits}gbit", "burst", f"{int(max(16, 256 * self.gigabits))}kb",
                         "latency", f"{self.queue}ms"]
                run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", *limit)
                run("tc", "qdisc", "add", "dev", outside, *limit)
        except command.Failure as failure:
            self.__exit__()
            raise Skip(f"no network namespaces: {failure}") from failure
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True, check=False)

    def start(self, words_of, variables):
        """Runs words_of(i) on each machine; gives their standard outputs."""
        processes = [subprocess.Popen(["ip", "netns", "exec", name, *map(str, words_of(i))], env=os.environ | variables,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for i, name in enumerate(self.names)]
        results = [process.communicate() for process in processes]
        for process, (_, error) in zip(processes, results):
            if process.returncode:
                raise command.Failure(f"{' '.join(map(str, process.args))}: {command.last_lines(error)}")
        return [out for out, _ in results]

    def options(self):
        return ["--nodes", len(self.names), "--rendezvous", f"{self.addresses[0]}:29400"]

    def link(self, number, state):
        """Cuts a machine off, or connects it again: "down" or "up"."""
        run("ip", "-n", self.names[number], "link", "set", "eth0", state)

    def processes(self, number):
        """The numbers of all processes that run on a machine."""
        done = subprocess.run(["ip", "netns", "pids", self.names[number]], capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]
