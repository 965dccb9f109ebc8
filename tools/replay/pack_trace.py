#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pack trace -- a recording of a program's memory calls, without times and handles

    pack_trace.py RECORDING[.xz] TRACE.xz
    pack_trace.py --unpack TRACE.xz TRACE

A recording has one event a line with times, threads, addresses and handles:

    a/A t tid ptr size rc [stream]     f/F t tid ptr [stream]     k stream n
    r t tid event stream               w t tid stream event       x t tid event
    s/e t tid handle   c t tid         q/Q t tid handle rc        +/- t tid stream [flags]
    h t tid ptr size   H t tid ptr

What remains of it is said in traces/README.md. The second form is what the build does.
"""

import lzma
import sys


class Packer:
    """Handles are used again by the driver; the numbers that stand for them are not."""

    def __init__(self):
        self.streams = {"0": 0}
        self.events = {}
        self.blocks = {}
        self.pinned = {}
        self.threads = {"0": 0}
        self.thread = "0"  # of the lines so far
        self.made = {"streams": 0, "events": 0, "blocks": 0, "pinned": 0}

    def number(self, table, handle, kind):
        table[handle] = self.made[kind]
        self.made[kind] += 1
        return table[handle]

    def stream_made(self, handle, flags):
        self.made["streams"] += 1
        self.streams[handle] = self.made["streams"]
        return f"+ {flags}"

    def allocation(self, kind, field):
        if field[5] != "0":
            return f"! {field[5]}"
        if field[4] == "0":
            return None
        self.number(self.blocks, field[3], "blocks")
        if kind == "a":
            return f"a {field[4]}"
        return f"A {field[4]} {self.streams[field[6]]}"

    def release(self, kind, field):
        if field[3] == "0":
            return "f 0"
        block = self.blocks.pop(field[3], None)
        if block is None:
            return None
        age = self.made["blocks"] - block
        return f"f {age}" if kind == "f" else f"F {age} {self.streams[field[4]]}"

    def host_memory(self, kind, field):
        if kind == "h":
            self.number(self.pinned, field[3], "pinned")
            return f"h {field[4]}"
        block = self.pinned.pop(field[3], None)
        return None if block is None else f"H {self.made['pinned'] - block}"

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
        """What remains of @line: none, one line, or two where another thread goes on."""
        field = line.split()
        packed = self.call(field)
        # Nobody wrote down who launches.
        if not packed or field[0] == "k" or field[2] == self.thread:
            return [packed] if packed else []
        self.thread = field[2]
        number = self.threads.setdefault(self.thread, len(self.threads))
        return [f"t {number}", packed]

    def call(self, field):
        kind = field[0]
        if kind in "aA":
            return self.allocation(kind, field)
        if kind in "fF":
            return self.release(kind, field)
        if kind in "hH":
            return self.host_memory(kind, field)
        if kind in "rwxeq":
            return self.event(kind, field)
        if kind == "k":
            return f"k {self.streams[field[1]]} {field[2]}"
        if kind == "+":
            return self.stream_made(field[3], field[4])
        if kind == "-":
            return f"- {self.streams.pop(field[3])}"
        if kind == "s" or (kind == "Q" and field[4] == "0"):
            return f"{'q' if kind == 'Q' else 's'} {self.streams[field[3]]}"
        return "c" if kind == "c" else None


def pack(source, target):
    opener = lzma.open if source.endswith(".xz") else open
    packer = Packer()
    with opener(source, "rt") as recording:
        lines = [part for line in recording if line.strip() for part in packer.pack(line)]
    text = "\n".join(lines) + "\n"
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
