#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plan -- the smallest memory that a recorded run can be served with, and the best layout

Tries by dry run what a recorded program could be served with: the default heap in its growth
modes, and layouts; prints what each needs and costs, and what to set in the environment for the
best of them. That is verified by replay: with it every allocation is served, and with one page
less one is not.

TRACE is a recording (STREAMPOOL_RECORD) or a packed trace, .xz or not. Of the candidates whose
limits differ by less than a 64th of what lives at once, the plan is the one that maps and waits
least.

exit status: 0 planned and verified; 1 the run cannot be served, and why; 2 nothing was tried, as
the input is bad, or the program that replays is not there or has failed; or the plan cannot be
written
"""

import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, "..", "replay")]

# pylint: disable=wrong-import-position
import pack_trace

MIB = 1 << 20
PLANNED, NOT_SERVED, BAD_INPUT = 0, 1, 2
SIZE_MOST = (1 << 63) - 1  # the program that replays has 64 bits for it
PROGRAM = "streampool-plan"

# A recording does not say how far ahead of the device a program was. One that does not wait is some
# hundreds of launches ahead, until the driver's queue is full, and what it frees is free late.
LAG = 256

# What a limit gets on top for a run at a pace of its own: a 64th. The recorded programs of
# tests/bench/traces get through with it under the shim, on devices that keep up and that do not.
ROOM = 64
GRAIN = 2 * MIB


class BadInput(Exception):
    """What was asked for cannot be tried; says why, or nothing where that has been said."""


# what is asked for


def size(text):
    """Bytes, of 16G, 1.5G or 512MiB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?)?", text, re.I)
    value = float(match[1]) * (1 << 10 * (" KMGT".index((match[2] or " ").upper()))) if match else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no size, as 16G or 512M")
    if value > SIZE_MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]} is more than there can be")
    return int(value)


def count(text):
    if not re.fullmatch(r"\d{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text} is no number of kernels")
    return int(text)


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="streampool plan",
        description=__doc__.split("-- ", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("--json", action="store_true", help="all figures, for programs")
    parser.add_argument("--lag", type=count, default=LAG, metavar="N",
                        help="the plan has to do on a device that is idle, on one that is N kernels behind the "
                             f"program ({LAG}: as a program that does not wait may be ahead), and on one that has done "
                             "nothing before the program waits; 0: on the idle one only")  # fmt: skip
    parser.add_argument("--limit", type=size, default=0, metavar="SIZE", help="there is so much memory, and no more")
    parser.add_argument("--layout", action="append", default=[], metavar="TEXT",
                        help="try this one, as of STREAMPOOL_LAYOUT, and none of the usual; may be repeated")  # fmt: skip
    parser.add_argument("--program", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def find_program(named):
    """The one that replays: installed beside this, or in a build folder of the tree."""
    places = [named] if named else [os.path.join(HERE, PROGRAM)]
    if not named:
        places += sorted(glob.glob(os.path.join(HERE, "..", "..", "build*", "tools", "plan", PROGRAM)))
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise BadInput(f"{named or PROGRAM} is not there: install streampool, or build it")


def planned(options):
    """(exit status, what the program has found)"""
    program = find_program(options.program)
    text = pack_trace.load(options.trace)
    command = [program, options.trace, str(options.lag), str(options.limit), *options.layout]
    done = subprocess.run(command, input=text.encode("ascii", "replace"), stdout=subprocess.PIPE, check=False)
    if done.returncode not in (PLANNED, NOT_SERVED) or not done.stdout:
        # It has said why, unless it was ended.
        raise BadInput("" if done.returncode == BAD_INPUT else f"{program} has ended with {done.returncode}")
    found = {"trace": options.trace, **json.loads(done.stdout)}
    for row in found["rows"]:
        row["worth_it"] = is_worth_it(row, found["rows"])
    if found["plan"] is not None:
        found["room"] = with_room(found["rows"][found["plan"]])
    return done.returncode, found


def with_room(row):
    """The settings for a run, which is at a pace of its own."""
    grains = -(-(row["cap"] + row["cap"] // ROOM) // GRAIN)
    return {**row["settings"], "STREAMPOOL_LIMIT": f"{grains * GRAIN // MIB}M"}


def host_cost(row):
    return row["maps"] + row["waits"]


def is_worth_it(row, rows):
    """Is there no other that needs less and works less?"""
    if not row["served"]:
        return False
    own = (row["cap"], host_cost(row))
    pairs = [(other["cap"], host_cost(other)) for other in rows if other["served"]]
    return not any(cap <= own[0] and cost <= own[1] and (cap, cost) != own for cap, cost in pairs)


# what is shown


def mib(value):
    text = f"{value / MIB:.1f}"
    return text[:-2] if text.endswith(".0") else text


def environment(settings):
    """As a shell takes it."""
    words = [f"{name}='{text}'" if re.search(r"[;: ]", text) else f"{name}={text}" for name, text in settings.items()]
    return " ".join(words)


def name_of(row):
    layout = row["settings"].get("STREAMPOOL_LAYOUT")
    return layout if layout else f"default heap, {row['growth']}"


def refusal(refused):
    return f"allocation {refused['allocation']}, of {refused['bytes']} bytes, is refused"


def run_lines(found):
    run, devices = found["run"], found["devices"]
    yield (
        f"{found['trace']}: {run['allocations']} allocations, {run['streams']} streams made, {run['calls']} calls; "
        f"{mib(run['live_peak'])} MiB live at most, the largest block {mib(run['largest'])} MiB"
    )
    if run["refused"]:
        yield f"Allocations that were refused to the program, and are not planned for: {run['refused']}"
    if len(devices) > 1:
        yield (
            f"Dry run on three devices: idle, {devices[1]} kernels behind, and done with nothing before the program "
            "waits. Peaks and costs are the largest of them."
        )
    else:
        yield "Dry run on an idle device"


def table_lines(found):
    head = ["", "peak MiB", "limit MiB", "/ live", "maps", "moves", "waits", "asked", "ns a call"]
    body = []
    for index, row in enumerate(found["rows"]):
        mark = "*" if index == found["plan"] else "+" if row["worth_it"] else " "
        if not row["served"]:
            reason = f"more than {mib(row['beyond'])} MiB" if "beyond" in row else refusal(row["refused"])
            body.append([f"{mark} {name_of(row)}", reason])
            continue
        cost = [str(row[key]) for key in ("maps", "moves", "waits", "asked")]
        share = f"{row['cap'] / found['run']['live_peak']:.3f}"
        body.append([f"{mark} {name_of(row)}", mib(row["peak"]), mib(row["cap"]), share, *cost, f"{row['ns_a_call']:.0f}"])
    first = max(len(line[0]) for line in body)
    yield ""
    for line in [head, *body]:
        figures = [text.rjust(len(title)) for text, title in zip(line[1:], head[1:])]
        yield (line[0].ljust(first) + "  " + "  ".join(figures)).rstrip()
    yield ""
    yield "* the plan   + none needs less and works less   peak: reserved without a limit   limit: the smallest; at it:"
    yield "maps: segments obtained and given back   moves: of them, to make room elsewhere   waits: of the host"
    yield "asked: events and questions   ns a call: of the pool itself, on this machine"
    yield "cap: of each pool, that of cuMemAlloc and that of cuMemAllocAsync; the limit is of both together"


def verdict_lines(found):
    row, verified = found["rows"][found["plan"]], found["verified"]
    yield ""
    yield f"Plan: {mib(row['cap'])} MiB, {row['cap'] / found['run']['live_peak']:.3f} of what lives at most"
    yield f"    {environment(row['settings'])}"
    yield (
        f"Its price: {row['maps']} maps and {row['waits']} waits; without a limit {row['free']['maps']} and "
        f"{row['free']['waits']}, and {mib(row['peak'])} MiB"
    )
    if not verified["is_verified"]:
        yield "NOT verified: replayed once more, it came out otherwise"
        return
    if verified["less"].get("STREAMPOOL_LIMIT") == "0M":
        # To the shim a limit of 0 is none.
        yield "Verified by replay: with it every allocation is served. One page less is no memory at all."
    else:
        yield "Verified by replay: with it every allocation is served. With one page less,"
        yield f"    {environment(verified['less'])}"
        yield f"{refusal(verified['refused'])}."
    yield "That is exact for these calls in this order. A run is at a pace of its own: give it a 64th more,"
    yield f"    {environment(found['room'])}"
    yield "and what else it obtains of the driver, past the pools, which counts against the limit, too. What a"
    yield "program has in several contexts, devices or pools of its own is planned as if it were one; it needs more."


def reason_lines(found, limit):
    """Why there is no plan."""
    served = [row for row in found["rows"] if row["served"]]
    yield ""
    if not served:
        yield "No plan: none of these serves the run, however much memory there is"
        return
    least = min(served, key=lambda row: row["cap"])
    yield (
        f"No plan: the run does not fit {mib(limit)} MiB. {mib(found['run']['live_peak'])} MiB live at most; "
        f"the least that does is {mib(least['cap'])} MiB:"
    )
    yield f"    {environment(least['settings'])}"


def text_of(found, limit):
    lines = [*run_lines(found), *table_lines(found)]
    lines += verdict_lines(found) if found["plan"] is not None else reason_lines(found, limit)
    return "\n".join(lines)


def put(text):
    """False, and said why, if it cannot be written. Who reads no further has had enough."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        pass
    except OSError as error:
        print(f"streampool plan: the plan cannot be written: {error.strerror}", file=sys.stderr)
    else:
        return True
    # What is left of it would be tried once more at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return False


def end_by(number, _):
    """The program that replays is ended on the way."""
    sys.exit(128 + number)


def main():
    options = options_of(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_by)
    try:
        status, found = planned(options)
    except (BadInput, pack_trace.BadTrace) as bad:
        if str(bad):
            print(f"streampool plan: {bad}", file=sys.stderr)
        return BAD_INPUT
    is_put = put(json.dumps(found, indent=1) if options.json else text_of(found, options.limit))
    return status if is_put else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
