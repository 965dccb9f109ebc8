# SPDX-License-Identifier: Apache-2.0
"""Tables -- figures as Markdown

Every function returns lines. A table of what was not measured is no lines.
"""

from figures import ACTIONS, ASYNC, GLIBC, MODES, NOBODY, TORCH, ratio, unique
from targets import TARGETS, reserved_over


def shown(value, digits=0):
    return "n/a" if value is None else f"{value:.{digits}f}"


def table(title, head, lines):
    if not lines:
        return []
    rule = "|---" + "|---:" * (len(head) - 1) + "|"
    body = ["| " + " | ".join(line) + " |" for line in (head, *lines)]
    return ["", f"### {title}", "", body[0], rule, *body[1:]]


# targets


def target_line(target, figures):
    worst = target.worst(figures)
    if worst is None:
        return None
    value, where = worst
    verdict = "met" if target.is_met(value) else "**missed**"
    if not target.is_met(value) and not target.is_possible(figures):
        verdict = f"n/a: the machine gives {target.given(figures):.2f}"
    bound = f"{target.comparison} {target.bound:g}"
    return [target.name, f"{value:.3g}", bound, verdict, where]


def targets(figures):
    lines = [target_line(target, figures) for target in TARGETS]
    head = ["target", "measured", "bound", "", "where it is worst"]
    return table("Targets", head, [line for line in lines if line])


# micro


def medians(figures):
    peers = figures.peers()
    lines = []
    for workload in figures.workloads():
        median = {peer: figures.median(workload, peer) for peer in peers}
        ours = median.get(ASYNC)
        line = [workload] + [shown(median[peer]) for peer in peers]
        line += [
            shown(ratio(ours, median.get(GLIBC)), 1),
            shown(ratio(median.get(TORCH), ours), 2),
        ]
        lines.append(line)
    head = ["", *peers, "async / glibc bytes", "PyTorch-like / async"]
    return table("Speed: nanoseconds a pair, median", head, lines)


def tails(figures, peers):
    lines = []
    for workload in figures.workloads():
        for peer in peers:
            cell = figures.micro.get((workload, peer))
            if not cell:
                continue
            keys = ("p50", "mean", "single p50", "p99", "p99.9", "p99.99")
            line = [workload, peer, *[shown(cell[key]) for key in keys]]
            line += [shown(ratio(cell["p99.9"], cell["p50"])), shown(cell["grown"])]
            lines.append([*line, shown(cell["instructions"])])
    head = ["", "", "p50", "mean", "p50 of single", "p99", "p99.9", "p99.99", "p99.9 / p50"]
    head += ["grown", "instructions"]
    return table("Tails: nanoseconds a pair", head, lines)


def is_ours(peer):
    return peer.startswith("streampool")


def micro_records(figures):
    lines = []
    for workload in figures.workloads():
        line = [workload]
        for peer in filter(is_ours, figures.peers()):
            cell = figures.micro[workload, peer]
            line.append(f"{100 * cell['records'] / cell['pool']:.3f}" if cell["pool"] else "n/a")
        lines.append(line)
    head = ["", *filter(is_ours, figures.peers())]
    return table("Host records: % of the pool", head, lines)


# traces


def by_trace(figures, title, contenders, cell_text):
    lines = []
    for trace in figures.traces():
        texts = []
        for contender in contenders:
            cell = figures.replay.get((trace, contender))
            texts.append(cell_text(trace, contender, cell) if cell else "")
        live = figures.replay[trace, figures.contenders()[0]]["live"] / 2**20
        lines.append([f"{trace} ({live:.0f} MiB)", *texts])
    return table(title, ["trace (live peak)", *contenders], lines)


def mode_of(contender):
    """The growth mode of one of the model's contenders, or None."""
    mode = contender.split(",")[0]
    return mode if mode in MODES else None


def density(figures):
    simulated = [name for name in figures.contenders() if name != "glibc"]

    def reserved_text(trace, contender, cell):
        text = shown(ratio(cell["reserved"], cell["live"]), 3)
        mode = mode_of(contender)
        missed = mode and reserved_over(figures, trace, contender, mode) > 1
        return f"**{text}**" if missed else text

    def capacity_text(_trace, _contender, cell):
        return shown(ratio(cell["capacity"], cell["live"]), 3)

    return [
        *by_trace(
            figures,
            "Density: reserved peak / live peak (bold: more than the mode may)",
            simulated,
            reserved_text,
        ),
        *by_trace(
            figures,
            "Density: smallest capacity that completes / live peak",
            simulated,
            capacity_text,
        ),
    ]


def pace(figures):
    ours = [name for name in figures.contenders() if mode_of(name)]

    def moves_text(_trace, _contender, cell):
        late = f" ({cell['late moves']:.0f} late)" if cell["late moves"] else ""
        return f"{100 * cell['moves'] / cell['allocations']:.2f}{late}"

    return [
        *by_trace(
            figures,
            "Speed: nanoseconds a call",
            figures.contenders(),
            lambda _trace, _contender, cell: shown(cell["ns"]),
        ),
        *by_trace(
            figures,
            "Remaps in 100 allocations (late: in the second half of the trace)",
            ours,
            moves_text,
        ),
        *by_trace(
            figures,
            "Host records: % of the pool",
            ours,
            lambda _trace, _contender, cell: f"{100 * cell['records'] / cell['reserved']:.3f}",
        ),
    ]


def actions(figures, contenders):
    lines = []
    for trace in figures.traces():
        for contender in contenders:
            cell = figures.replay.get((trace, contender))
            if cell:
                counts = [shown(cell[key]) for key in ("allocations", "moves", *ACTIONS)]
                lines.append([trace, contender, *counts])
    head = ["trace", "", "allocations", "remaps", *ACTIONS]
    return table("What the model asked for", head, lines)


# threads


def threads(figures):
    counts = unique(count for _, _, count in figures.threads)
    lines = []
    for shape, peer in unique((shape, peer) for shape, peer, _ in figures.threads):
        rate = [figures.threads.get((shape, peer, count)) for count in counts]
        scaled = ratio(rate[1], rate[0]) if len(rate) > 1 else None
        lines.append([shape, peer, *[shown(value, 1) for value in rate], shown(scaled, 2)])
    head = ["", "", *[f"{count}" for count in counts], "2 / 1"]
    return table("Threads: million pairs a second of all together, by their number", head, lines)


# instructions


def instructions(counts):
    """@counts: by (workload, allocator)."""
    peers = unique(peer for _, peer in counts)
    lines = []
    for workload in unique(workload for workload, _ in counts):
        lines.append([workload, *[shown(counts.get((workload, peer))) for peer in peers]])
    return table("Instructions a pair, as valgrind counts them", ["", *peers], lines)


def everything(figures, with_all):
    chosen = [*filter(is_ours, figures.peers()), NOBODY]
    asked = ["balanced", "balanced, busy"]
    if with_all:
        chosen = figures.peers()
        asked = [*filter(mode_of, figures.contenders())]
    return [
        *medians(figures),
        *tails(figures, chosen),
        *micro_records(figures),
        *threads(figures),
        *density(figures),
        *pace(figures),
        *actions(figures, asked),
        *targets(figures),
    ]
