# SPDX-License-Identifier: Apache-2.0
"""Figures -- what micro, replay and threads print, by name

Each program documents its lines. What it could not tell is None here.
"""

ACTIONS = (
    "record", "wait stream", "wait context", "poll", "poll stream", "wait host", "sync", "grow", "release", "drop",
)  # fmt: skip

MICRO = (
    "p50", "mean", "single p50", "p99", "p99.9", "p99.99", "grown", "instructions", "records", "pool",
)  # fmt: skip
REPLAY = (
    "live", "reserved", "capacity", "ns", "allocations", "moves", "late moves", "records", *ACTIONS,
)  # fmt: skip

# Allocators by the names that the programs print.
ASYNC = "streampool async"
SYNC = "streampool sync"
TORCH = "PyTorch-like"
GLIBC = "glibc, bytes for KiB"
NOBODY = "nobody"
MODES = ("balanced", "speed", "tight")


def number(text):
    return None if text == "n/a" else float(text)


def unique(values):
    return list(dict.fromkeys(values))


def ratio(a, b):
    """None if either is not known, or nothing."""
    return a / b if a and b else None


class Figures:
    """All that was measured in one run; a program that was not run has left nothing."""

    def __init__(self, lines):
        self.micro = {}
        self.replay = {}
        self.threads = {}
        for line in lines:
            program, first, second, *fields = line.split("\t")
            values = [number(field) for field in fields]
            if program == "micro":
                self.micro[first, second] = dict(zip(MICRO, values, strict=True))
            elif program == "replay":
                self.replay[first, second] = dict(zip(REPLAY, values, strict=True))
            elif program == "threads":
                count, rate = values
                self.threads[first, second, int(count)] = rate
            else:
                raise ValueError(f"a line of no program: {line}")

    def workloads(self):
        return unique(workload for workload, _ in self.micro)

    def peers(self):
        return unique(peer for _, peer in self.micro)

    def traces(self):
        return unique(trace for trace, _ in self.replay)

    def contenders(self):
        return unique(contender for _, contender in self.replay)

    def median(self, workload, peer):
        return self.micro.get((workload, peer), {}).get("p50")
