# SPDX-License-Identifier: Apache-2.0
"""Targets -- what the model is to reach, and whether it does

TARGETS is the one place where a bound is written. All are ratios of figures of
one run on one machine. A target is measured at its worst: over the traces, or
over the workloads that it names.
"""

from dataclasses import dataclass
from typing import Callable

from figures import ASYNC, GLIBC, MODES, NOBODY, TORCH, ratio

MIB = 2**20

# Reserved peak: at most this much times the live peak, and so many bytes.
RESERVED = {
    "balanced": (1.03, 32 * MIB),
    "tight": (1.01, 4 * MIB),
    "speed": (1.10, 32 * MIB),
}

# Workloads that need no more memory once they run.
WARM = ("hot pair, 4 KiB", "FIFO, 256 blocks", "churn, 64 live", "churn, 4k live", "churn, 64k live")


def over_medians(workload, peer, other_workload, other_peer):
    def measure(figures):
        value = ratio(
            figures.median(workload, peer), figures.median(other_workload, other_peer)
        )
        return [] if value is None else [(value, "")]

    return measure


def two_threads(figures, peer):
    rate = [figures.threads.get(("own streams, hot pair", peer, count)) for count in (1, 2)]
    return ratio(rate[1], rate[0])


def threads_ratio(figures):
    value = two_threads(figures, "streampool, magazines")
    return [] if value is None else [(value, "")]


def threads_given(figures):
    """What the machine gives to threads that share nothing."""
    return two_threads(figures, NOBODY)


def tails(figures):
    answer = []
    for workload in WARM:
        cell = figures.micro.get((workload, ASYNC), {})
        value = ratio(cell.get("p99.9"), cell.get("p50"))
        if value is not None:
            answer.append((value, workload))
    return answer


def reserved_over(figures, trace, contender, mode):
    """Reserved peak as a share of what the mode may reserve; None if it was not replayed."""
    cell = figures.replay.get((trace, contender))
    factor, extra = RESERVED[mode]
    return cell and cell["reserved"] / (factor * cell["live"] + extra)


def reserved(mode):
    def measure(figures):
        answer = []
        for trace in figures.traces():
            value = reserved_over(figures, trace, mode, mode)
            if value is not None:
                cell = figures.replay[trace, mode]
                answer.append((value, f"{trace}: {cell['reserved'] / cell['live']:.3f} x live"))
        return answer

    return measure


def over_traces(mode, value):
    """@value: of the figures of one trace."""

    def measure(figures):
        cells = [(figures.replay.get((trace, mode)), trace) for trace in figures.traces()]
        return [(value(cell), trace) for cell, trace in cells if cell]

    return measure


def records(figures):
    answer = []
    cell = figures.micro.get(("churn, 64k live", ASYNC))
    if cell:
        answer.append((100 * cell["records"] / cell["pool"], "churn, 64k live"))
    for trace in figures.traces():
        for mode in MODES:
            cell = figures.replay.get((trace, mode))
            if cell:
                answer.append((100 * cell["records"] / cell["reserved"], f"{trace}, {mode}"))
    return answer


def over_layouts(key):
    """The default heap, as a share of the layout that does best on each trace."""

    def measure(figures):
        answer = []
        for trace in figures.traces():
            heap = figures.replay.get((trace, "balanced"))
            others = [
                (figures.replay[trace, name][key], name)
                for name in figures.contenders()
                if name.startswith("layout ") and figures.replay.get((trace, name), {}).get(key)
            ]
            if heap and others:
                best, name = min(others)
                answer.append((heap[key] / best, f"{trace}, {name}"))
        return answer

    return measure


@dataclass(frozen=True)
class Target:
    name: str
    comparison: str  # "<=" or ">="
    bound: float
    measure: Callable  # of figures: [(value, where it was seen)], empty if not measured
    given: Callable = None  # of figures: what this machine allows at most, for ">="

    def worst(self, figures):
        seen = self.measure(figures)
        if not seen:
            return None
        return max(seen) if self.comparison == "<=" else min(seen)

    def is_met(self, value):
        return value <= self.bound if self.comparison == "<=" else value >= self.bound

    def is_possible(self, figures):
        """False on a machine, or a busy one, that could not show it."""
        given = self.given and self.given(figures)
        return given is None or given >= self.bound


HOT = "hot pair, 4 KiB"
TARGETS = (
    Target(
        "hot pair through a magazine / glibc's pair", "<=", 3,
        over_medians(HOT, "streampool magazine", HOT, GLIBC),
    ),
    Target(
        "churn, 4k live / glibc's", "<=", 5,
        over_medians("churn, 4k live", ASYNC, "churn, 4k live", GLIBC),
    ),
    Target(
        "churn, 64k live / glibc's", "<=", 8,
        over_medians("churn, 64k live", ASYNC, "churn, 64k live", GLIBC),
    ),
    Target(
        "churn, 64k live / 64 live", "<=", 1.5,
        over_medians("churn, 64k live", ASYNC, "churn, 64 live", ASYNC),
    ),
    Target(
        "churn, 4k live: PyTorch-like / ours", ">=", 8,
        over_medians("churn, 4k live", TORCH, "churn, 4k live", ASYNC),
    ),
    Target("two threads on own streams, magazines / one", ">=", 1.8, threads_ratio, threads_given),
    Target("p99.9 / median, without growth", "<=", 40, tails),
    Target("balanced: reserved / (1.03 live + 32 MiB)", "<=", 1, reserved("balanced")),
    Target(
        "balanced: remaps in 100 allocations", "<=", 3,
        over_traces("balanced", lambda cell: 100 * cell["moves"] / cell["allocations"]),
    ),
    Target("tight: reserved / (1.01 live + 4 MiB)", "<=", 1, reserved("tight")),
    Target("speed: reserved / (1.10 live + 32 MiB)", "<=", 1, reserved("speed")),
    Target(
        "speed: remaps in the second half of a trace", "<=", 0,
        over_traces("speed", lambda cell: cell["late moves"]),
    ),
    Target("layouts: reserved, balanced / the best of them", "<=", 1, over_layouts("reserved")),
    Target("layouts: time, balanced / the best of them", "<=", 1, over_layouts("ns")),
    Target("host records, % of the pool", "<=", 0.1, records),
)  # fmt: skip
