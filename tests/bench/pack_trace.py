#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pack trace -- a recording of a program's memory calls, cut down to what a pool is told

    pack_trace.py RECORDING[.xz] TRACE.xz
    pack_trace.py --unpack TRACE.xz TRACE

A recording has one event a line with times, threads, addresses and handles:

    a/A t tid ptr size rc [stream]     f/F t tid ptr [stream]     k stream n
    r t tid event stream               w t tid stream event       x t tid event
    s/e t tid handle   c t tid         q/Q t tid handle rc        +/- t tid stream [flags]

What remains of it is said in traces/README.md: numbers in the place of handles,
no times, no failed calls. The second form is what the build does.
"""

import lzma
import sys


class Packer:
    """Handles are used again by the driver; the numbers that stand for them are not."""

    def __init__(self):
        self.streams = {"0": 0}
        self.events = {}
        self.blocks = {}
        self.made = {"streams": 0, "events": 0, "blocks": 0}

    def number(self, table, handle, kind):
        table[handle] = self.made[kind]
        self.made[kind] += 1
        return table[handle]

    def stream_made(self, handle, flags):
        self.made["streams"] += 1
        self.streams[handle] = self.made["streams"]
        return f"+ {flags}"

    def allocation(self, kind, field):
        if field[5] != "0" or field[4] == "0":
            return None
        self.number(self.blocks, field[3], "blocks")
        if kind == "a":
            return f"a {field[4]}"
        return f"A {field[4]} {self.streams[field[6]]}"

    def release(self, kind, field):
        block = self.blocks.pop(field[3], None)
        if block is None:
            return None
        age = self.made["blocks"] - block
        return f"f {age}" if kind == "f" else f"F {age} {self.streams[field[4]]}"

    def event(self, kind, field):
        if kind == "r":
            event = self.events.get(field[3])
            if event is None:
                event = self.number(self.events, field[3], "events")
            return f"r {event} {self.streams[field[4]]}"
        event = self.events.get(field[4] if kind == "w" else field[3])
        if event is None:
            return None
        if kind == "w":
            return f"w {self.streams[field[3]]} {event}"
        if kind == "x":
            del self.events[field[3]]
        if kind == "q" and field[4] != "0":
            return None
        return f"{'e' if kind == 'q' else kind} {event}"

    def pack(self, line):
        field = line.split()
        kind = field[0]
        if kind in "aA":
            return self.allocation(kind, field)
        if kind in "fF":
            return self.release(kind, field)
        if kind in "rwxeq":
            return self.event(kind, field)
        if kind == "k":
            return f"k {self.streams[field[1]]} {field[2]}"
        if kind == "+":
            return self.stream_made(field[3], field[4])
        if kind == "-":
            return f"- {self.streams.pop(field[3])}"
        if kind == "s" or (kind == "Q" and field[4] == "0"):
            return f"s {self.streams[field[3]]}"
        return "c" if kind == "c" else None


def pack(source, target):
    opener = lzma.open if source.endswith(".xz") else open
    packer = Packer()
    with opener(source, "rt") as recording:
        lines = [packer.pack(line) for line in recording if line.strip()]
    text = "\n".join(line for line in lines if line) + "\n"
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME) as packed:
        packed.write(text)


def unpack(source, target):
    with lzma.open(source, "rb") as packed, open(target, "wb") as plain:
        plain.write(packed.read())


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--unpack"] and len(arguments) == 3:
        unpack(*arguments[1:])
    elif len(arguments) == 2:
        pack(*arguments)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
