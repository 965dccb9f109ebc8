#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pack trace -- a recording of a program's memory calls, without times and handles

    pack_trace.py RECORDING[.xz] TRACE.xz
    pack_trace.py --unpack TRACE.xz TRACE

A recording has one event a line with times, threads, addresses and handles:

    a/A t tid ptr size rc [stream]     f/F t tid ptr [stream]     k stream n
    r t tid event stream               w t tid stream event       x t tid event
    s/e t tid handle   c t tid         q/Q t tid handle rc        +/- t tid stream [flags]
    h t tid ptr size   H t tid ptr     m t tid way bytes

Lines that are empty or begin with # do not count. Where the first one is "# streampool recording
1", as the shim writes it (STREAMPOOL_RECORD), events of other letters do not count either: later
shims may know of more, and a last line without an end does not count. What remains of a recording is said in
tests/bench/traces/README.md. The second form is what the build does; `load()` is for who reads
either kind of file (tools/plan).
"""

import lzma
import re
import sys

# Words of a line, the letter included. Only `k` has as many in a trace as in a recording.
WORDS = {
    "a": 6, "A": 7, "f": 4, "F": 5, "k": 3, "r": 5, "w": 5, "x": 4, "s": 4, "e": 4, "c": 3,
    "q": 5, "Q": 5, "+": 5, "-": 4, "h": 5, "H": 4, "m": 5,
}  # fmt: skip

# Which of them are whole numbers, besides time and thread.
NUMBERS = {"a": (4, 5), "A": (4, 5), "k": (2,), "q": (4,), "Q": (4,), "+": (4,), "h": (4,)}

# The driver's own handles of streams that nobody makes.
LEGACY, PER_THREAD = ("0", "1"), "2"

# Of launches in a row: no device is as far behind.
LAUNCHES_MOST = (1 << 32) - 2
BLOCKING, NON_BLOCKING = 0, 1


HEAD = re.compile(r"# streampool recording (\d+)")
VERSION = "1"


class BadTrace(Exception):
    """A file that is no trace and no recording: which line, and why."""


class Packer:
    """Handles are used again by the driver; the numbers that stand for them are not."""

    def __init__(self):
        self.streams = dict.fromkeys(LEGACY, 0)
        self.events = {}
        self.blocks = {}
        self.pinned = {}
        self.threads = {"0": 0}
        self.thread = "0"  # of the lines so far
        self.made = {"streams": 0, "events": 0, "blocks": 0, "pinned": 0}
        self.first = []  # lines that are to be in front of this one

    def number(self, table, handle, kind):
        table[handle] = self.made[kind]
        self.made[kind] += 1
        return table[handle]

    def stream(self, handle, thread):
        """The number of a stream. One that was there before the recording began is made here:
        each thread's own default stream, or one that is in no order with the legacy stream."""
        flags = NON_BLOCKING
        if handle == PER_THREAD:
            handle, flags = f"{handle} of {thread}", BLOCKING
        if handle not in self.streams:
            self.first.append(self.stream_made(handle, flags))
        return self.streams[handle]

    def stream_made(self, handle, flags):
        self.made["streams"] += 1
        self.streams[handle] = self.made["streams"]
        return f"+ {flags}"

    def allocation(self, kind, field):
        if field[5] != "0":
            return f"! {field[5]}"
        if field[4] == "0":
            return None
        stream = self.stream(field[6], field[2]) if kind == "A" else None
        self.number(self.blocks, field[3], "blocks")
        return f"a {field[4]}" if kind == "a" else f"A {field[4]} {stream}"

    def release(self, kind, field):
        if field[3] == "0":
            return "f 0"
        block = self.blocks.pop(field[3], None)
        if block is None:
            return None
        age = self.made["blocks"] - block
        return f"f {age}" if kind == "f" else f"F {age} {self.stream(field[4], field[2])}"

    def host_memory(self, kind, field):
        if kind == "h":
            self.number(self.pinned, field[3], "pinned")
            return f"h {field[4]}"
        block = self.pinned.pop(field[3], None)
        return None if block is None else f"H {self.made['pinned'] - block}"

    def event(self, kind, field):
        if kind == "r":
            stream = self.stream(field[4], field[2])
            event = self.events.get(field[3])
            if event is None:
                event = self.number(self.events, field[3], "events")
            return f"r {event} {stream}"
        event = self.events.get(field[4] if kind == "w" else field[3])
        if event is None:
            return None
        if kind == "w":
            return f"w {self.stream(field[3], field[2])} {event}"
        if kind == "x":
            del self.events[field[3]]
        if kind == "q" and field[4] != "0":
            return None
        return f"{'e' if kind == 'q' else kind} {event}"

    def pack(self, line):
        """What remains of @line: none, one line, or more where another thread goes on, or a stream
        is used that was never made. Raises BadTrace."""
        field = line.split()
        check(field)
        self.first = []
        packed = self.call(field)
        # Nobody wrote down who launches.
        if not packed or field[0] == "k" or field[2] == self.thread:
            return self.first + ([packed] if packed else [])
        self.thread = field[2]
        number = self.threads.setdefault(self.thread, len(self.threads))
        return [f"t {number}", *self.first, packed]

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
            return f"k {self.stream(field[1], self.thread)} {min(int(field[2][:20]), LAUNCHES_MOST)}"
        if kind == "+":
            return self.stream_made(field[3], field[4])
        if kind == "-":
            stream = self.streams.pop(field[3], None)
            return f"- {stream}" if stream else None
        if kind == "s" or (kind == "Q" and field[4] == "0"):
            return f"{'q' if kind == 'Q' else 's'} {self.stream(field[3], field[2])}"
        return "c" if kind == "c" else None


# lines


def check(field):
    """Raises BadTrace unless a recording can have such a line."""
    kind = field[0]
    if kind not in WORDS:
        raise BadTrace(f"no event begins like this: {kind[:20]}")
    if len(field) != WORDS[kind]:
        raise BadTrace(f"{kind} has {WORDS[kind]} words, and this has {len(field)}")
    for place in NUMBERS.get(kind, ()):
        if not re.fullmatch(r"\d+", field[place]):
            raise BadTrace(f"{field[place][:20]} is no whole number")
    for place in range(1 if kind == "k" else 3, len(field)):
        if kind != "m" and not re.fullmatch(r"[0-9a-fA-F]+", field[place]):
            raise BadTrace(f"{field[place][:20]} is no handle, address or number")


def counts(line):
    return line.strip() and not line.startswith("#")


def version_of(lines):
    """What a recording says of itself in the first line; None if it says nothing."""
    head = HEAD.match(lines[0]) if lines else None
    return head and head[1]


def is_recording(lines):
    """Is this a recording, or a trace already? If it does not say so, the first line tells that is
    no launch."""
    if version_of(lines):
        return True
    for line in lines:
        field = line.split()
        if counts(line) and field[0] != "k":
            return len(field) == WORDS.get(field[0], 0)
    return True


def pack_lines(lines, name):
    """The lines of a trace, of those of a recording. Raises BadTrace, which names @name and the line."""
    packer, packed, version = Packer(), [], version_of(lines)
    if version not in (None, VERSION):
        raise BadTrace(f"{name}:1: a recording of version {version}, and {VERSION} is all that is known here")
    # A line that has no end is a part of one: whoever wrote it was ended.
    for number, line in enumerate(lines[:-1] if version else lines, 1):
        is_left_out = not counts(line) or (version and line[0] not in WORDS)
        try:
            packed += [] if is_left_out else packer.pack(line)
        except BadTrace as bad:
            raise BadTrace(f"{name}:{number}: {bad}") from None
    return packed


def read(path):
    """The lines of a file, .xz or not; what is no text is no event either."""
    opener = lzma.open if path.endswith(".xz") else open
    try:
        with opener(path, "rt", encoding="ascii", errors="replace") as source:
            return source.read().split("\n")
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise BadTrace(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def load(path):
    """The text of the trace in @path, be it one or a recording of a program. Raises BadTrace."""
    lines = read(path)
    text = "\n".join(pack_lines(lines, path) if is_recording(lines) else lines).rstrip("\n")
    return text and text + "\n"


# files


def pack(source, target):
    text = "\n".join(pack_lines(read(source), source)) + "\n"
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME) as packed:
        packed.write(text)


def unpack(source, target):
    text = "\n".join(read(source))
    with open(target, "w", encoding="ascii") as plain:
        plain.write(text)


def main():
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["--unpack"] and len(arguments) == 3:
            unpack(*arguments[1:])
        elif len(arguments) == 2:
            pack(*arguments)
        else:
            sys.exit(__doc__)
    except BadTrace as bad:
        sys.exit(str(bad))


if __name__ == "__main__":
    main()
