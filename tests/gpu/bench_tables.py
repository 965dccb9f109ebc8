# SPDX-License-Identifier: Apache-2.0
"""Bench tables -- what scripts/gpu-bench measured, judged and in Markdown

A figure is the median of its repetitions. A ratio is the median of the ratios of
each repetition: what is divided was then measured within the same seconds.
"""

import re
import statistics

import bench_rows as rows
import bench_watch as watch

MISSING = "n/a"


def median(values):
    return statistics.median(values) if values else None


def paired(ours, theirs):
    """The ratios, one for each repetition that both have."""
    return [a / b for a, b in zip(ours, theirs) if b]


def number(value):
    if value is None:
        return MISSING
    if value and abs(value) < 100:
        return f"{value:.3g}"
    return f"{value:.0f}"


def times(value):
    return MISSING if value is None else f"{value:.3f}"


def verdict(met):
    return MISSING if met is None else "met" if met else "**missed**"


def table(head, lines):
    """@head and @lines are cells; what is in the first column is left-aligned."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" + "---:|" * (len(head) - 1)
    for line in lines:
        yield "| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |"


# workloads


def columns_of(row):
    return rows.COLUMNS[row.family]


def best_of_the_others(row, result):
    """The fastest column without the shim, or None."""
    known = [c.name for c in columns_of(row) if not c.shim and result[c.name]["rates"]]
    return max(known, key=lambda name: median(result[name]["rates"]), default=None)


def same_checksums(row, result, name):
    """Yes, no, or None if those without the shim do not agree, or there is none."""
    bare = {result[c.name]["checksum"] for c in columns_of(row) if not c.shim} - {None}
    mine = result[name]["checksum"]
    if mine is None or not bare:
        return None
    if len(bare) > 1:
        # The program's own answer depends on the allocator: the one of the same settings counts.
        twin = name.removesuffix(" + shim")
        twin = {"async": "cudaMallocAsync"}.get(twin, twin)
        return True if mine == result[twin]["checksum"] else None
    return mine in bare


def judge(row, result, name):
    """What a shim's column reached: a dictionary, values None where they are not known."""
    mine, best = result[name], best_of_the_others(row, result)
    naive = next(c.name for c in columns_of(row) if c.naive)
    ratios = paired(mine["rates"], result[best]["rates"]) if best else []
    speed = median(ratios)
    memory = None
    if mine["peak_mib"] and result[naive]["peak_mib"]:
        memory = mine["peak_mib"] / result[naive]["peak_mib"]
    same = same_checksums(row, result, name)
    return {
        "best": best,
        "speed": speed,
        "ratios": ratios,
        "memory": memory,
        "same": same,
        "speed_met": None if speed is None else speed >= row.speed_goal,
        "memory_met": None if memory is None else memory <= rows.MEMORY_GOAL,
        "trouble": mine["trouble"],
    }


def spread(ratios):
    return f"{min(ratios):.2f}-{max(ratios):.2f}" if ratios else MISSING


def verdict_lines(results):
    for row in rows.ROWS:
        result = results.get(row.name)
        if not result:
            continue
        for column in columns_of(row):
            if not column.shim:
                continue
            seen = judge(row, result, column.name)
            same = {True: "equal", False: "**different**", None: "not comparable"}[seen["same"]]
            memory = verdict(seen["memory_met"])
            if seen["memory_met"] is False and seen["memory"] <= rows.MEMORY_EXCUSABLE:
                memory += " (reason?)"
            yield (
                row.name, column.name, seen["best"] or MISSING, times(seen["speed"]),
                spread(seen["ratios"]), f">= {row.speed_goal:.2f}", verdict(seen["speed_met"]),
                times(seen["memory"]), memory, seen["trouble"] or same,
            )  # fmt: skip


def by_column(results, value):
    """Workloads against the columns of all families."""
    names = list(dict.fromkeys(c.name for columns in rows.COLUMNS.values() for c in columns))
    lines = []
    for row in rows.ROWS:
        if row.name in results:
            cells = [results[row.name].get(name) for name in names]
            lines.append([row.name, *(value(cell) if cell else "" for cell in cells)])
    return table(["", *names], lines)


def workloads(results):
    yield "### Workloads: iterations per second, median"
    yield ""
    yield from by_column(results, lambda cell: number(median(cell["rates"])))
    yield ""
    yield "### Workloads: peak MiB of the device, less the level before the process"
    yield ""
    yield from by_column(results, lambda cell: number(cell["peak_mib"]))
    yield ""
    yield "### Workloads: against the best of the others, and the memory of no cache"
    yield ""
    head = ("", "", "best of the others", "speed / best", "of each repetition", "goal", "",
            "memory / no cache", "<= 1.00", "checksum")  # fmt: skip
    yield from table(head, verdict_lines(results))
    yield ""


# micro


def within(goal, bare, shim, ratio):
    """Whether medians @bare and @shim reach @goal, as bench_rows.py writes goals."""
    if not goal or shim is None:
        return None
    match = re.fullmatch(r"(<=|>=) (?:(bare \+ )?([\d.]+)|([\d.]+) % of bare)", goal)
    if not match:
        raise ValueError(goal)
    comparison, added, bound, percent = match.groups()
    if percent:
        if ratio is None:
            return None
        return ratio >= float(percent) / 100 if comparison == ">=" else ratio <= float(percent) / 100
    bound = float(bound)
    if added:
        if bare is None:
            return None
        bound += bare
    return shim <= bound if comparison == "<=" else shim >= bound


def micro_line(figure, sides):
    bare, shim = median(sides.get(rows.BARE)), median(sides.get(rows.SHIM))
    ratio = median(paired(sides.get(rows.SHIM, ()), sides.get(rows.BARE, ())))
    met = within(figure.goal, bare, shim, ratio)
    gain = ratio if figure.more_is_better else ratio and 1 / ratio
    return (
        figure.title, figure.unit, number(bare), number(shim),
        MISSING if gain is None else number(gain), figure.goal,
        verdict(met) if figure.goal else "",
    )  # fmt: skip


def micro(results):
    yield "### Micro: single calls, medians"
    yield ""
    lines = [micro_line(figure, results[figure.key]) for figure in rows.MICRO if figure.key in results]
    yield from table(("", "unit", "bare", "shim", "times better", "goal", ""), lines)
    yield ""


# calls and start


def per_million(seen):
    """Function -> calls for 10^6 pairs, without the program's own launches."""
    counts = dict(seen["calls"])
    counts[rows.LAUNCH] = counts.get(rows.LAUNCH, 0) - seen["pairs"]
    return {name: 1e6 * count / seen["pairs"] for name, count in counts.items() if count > 0}


def calls_line(phase, side, seen):
    counts = per_million(seen)
    kinds = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values())
    ours = side == rows.SHIM
    return (
        phase.title, side, number(total),
        ", ".join(f"{name} {number(count)}" for name, count in kinds) or "none",
        f"<= {number(phase.goal)}" if ours else "", verdict(total <= phase.goal) if ours else "",
    )  # fmt: skip


def calls(result):
    yield f"### Driver calls for 10^6 pairs, less the program's launches, counted by {result['source']}"
    yield ""
    lines = []
    for phase in rows.PHASES:
        for side, seen in result["phases"].get(phase.name, {}).items():
            lines.append(calls_line(phase, side, seen))
    yield from table(("", "", "in all", "by kind", "goal", ""), lines)
    yield ""


def start(results):
    yield "### Start-up: milliseconds, medians"
    yield ""
    lines = []
    for name, sides in results.items():
        bare, shim = sides.get(rows.BARE, ()), sides.get(rows.SHIM, ())
        added = median([b - a for a, b in zip(bare, shim)])
        lines.append((name, len(shim), number(median(bare)), number(median(shim)), number(added)))
    yield from table(("", "times", "bare", "shim", "added, median of the pairs"), lines)
    yield ""


# watching


def watching(results):
    goals = ", ".join(f"{name} <= {goal}" for name, goal in rows.WATCHING_GOALS.items())
    yield f"### Watching: how many times as long a step takes as bare without a cache; {goals}"
    yield ""
    yield from table(("", *watch.names()), watch.time_lines(results))
    yield ""
    yield "### Watching: what is found in these programs, which make no mistake"
    yield ""
    yield from table(("", *watch.names()), watch.found_lines(results))
    yield ""


PARTS = {"workloads": workloads, "micro": micro, "calls": calls, "startup": start,
         "watching": watching}  # fmt: skip


def everything(results):
    lines = []
    for name, part in PARTS.items():
        if results.get(name):
            lines += part(results[name])
    return lines
