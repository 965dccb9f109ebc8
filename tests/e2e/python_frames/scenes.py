#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenes -- a program whose stack is known to Python, and to python.c

    scenes.py LIBRARY SUITE

Runs with every CPython that python.c knows, so with the syntax of 3.8. Each place
calls check(), which compares what the library took with what the interpreter says.
Prints what was wrong, and how many stacks were compared.
"""
import asyncio
import ctypes
import functools
import gc
import marshal
import os
import subprocess
import sys
import sysconfig
import threading
import time
import traceback

MOST = 64
WRONG = []
COMPARED = [0]
BUFFER = threading.local()


def load(path):
    """The library's functions, called without the GIL and with it."""
    free, held = ctypes.CDLL(path), ctypes.PyDLL(path)
    for library in (free, held):
        library.frames_words.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint]
        library.frames_words.restype = ctypes.c_long
        library.frames_steady.argtypes = [ctypes.c_long]
        library.frames_steady.restype = ctypes.c_long
        library.frames_cost.argtypes = [ctypes.c_long]
        library.frames_cost.restype = ctypes.c_double
        library.frames_line.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t,
                                        ctypes.c_int, ctypes.c_int]
        library.frames_line.restype = ctypes.c_uint
        library.frames_sees.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        library.frames_knows.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    free.frames_start()
    return free, held


def wrong(message):
    WRONG.append(message)


def buffer():
    if not hasattr(BUFFER, 'bytes'):
        BUFFER.bytes = ctypes.create_string_buffer(1 << 16)
    return BUFFER.bytes


def words(length, room):
    """[(line, file, function)] of what frames_words() wrote, as bytes."""
    if length < 0:
        return length
    parts = room.raw[:length].split(b'\0')
    return [(int(parts[i]), parts[i + 1], parts[i + 2]) for i in range(0, len(parts) - 1, 3)]


def expected(frame, summary):
    """The same from the interpreter: of its frames, and of the traceback made of them."""
    found = []
    for entry in reversed(summary):
        code = frame.f_code
        if (code.co_filename, frame.f_lineno) != (entry.filename, entry.lineno):
            wrong(f'the test itself: {entry} and {frame} differ')
        name = getattr(code, 'co_qualname', code.co_name)
        found.append((entry.lineno, os.fsencode(code.co_filename),
                      name.encode('utf-8', 'surrogateescape')))
        frame = frame.f_back
    return found[:MOST]


def check():
    """Innermost is this function, in the line of each call."""
    room = buffer()
    for library in LIBRARIES:
        # All in one line, so that this frame is at the same one in all of them.
        frame, summary, length = sys._getframe(), traceback.extract_stack(), library.frames_words(room, len(room), MOST); wanted = expected(frame, summary)  # fmt: skip
        got = words(length, room)
        COMPARED[0] += 1
        if got != wanted:
            wrong(f'{summary[-2].name}:\n  took   {got}\n  wanted {wanted}')
    return True


# scenes


def nested():
    def inner(depth):
        def innermost():
            return check()
        return innermost() if depth == 0 else inner(depth - 1)
    return inner(3)


class Outer:
    class Inner:
        def method(self):
            return check()

        @classmethod
        def of_class(cls):
            return cls().method()

        @staticmethod
        def of_nobody():
            return Outer.Inner.of_class()

        @property
        def read(self):
            return self.of_nobody()

        def __enter__(self):
            check()

        def __exit__(self, *_):
            check()

        def __getattr__(self, name):
            return check()


def classes():
    Outer.Inner().read
    Outer.Inner().missing
    with Outer.Inner():
        check()

    class Local(Outer.Inner):
        here = check()
    Local().method()


def generators():
    def numbers():
        yield check()
        yield from more()
        (yield check())

    def more():
        for _ in range(2):
            yield check()

    for _ in numbers():
        check()
    list(check() for _ in range(2))
    [check() for _ in range(2)]
    {check(): check() for _ in range(2)}
    sender = numbers()
    next(sender)
    sender.send(None)
    sender.close()


def coroutines():
    async def leaf():
        check()
        await asyncio.sleep(0)
        return check()

    async def several():
        for _ in range(2):
            yield await leaf()

    async def root():
        async for _ in several():
            check()
        await asyncio.gather(leaf(), leaf())
        [_ async for _ in several()]

    asyncio.run(root())


def executed():
    exec('check()')
    exec('\n' * 700 + 'check()\n' + '\n' * 300 + 'check()')
    eval('(\n\n   check(\n  ))')
    for name in ('kürzer/ñandú.py', 'größe_日本語.py', 'emoji_\U0001f40d.py', '\udcff.py',
                 'ﬀ' * 10):
        exec(compile('def größe():\n  return check()\ngröße()', name, 'exec'), {'check': check})


def continued():
    picked = (lambda first,
              second:
              check()
              and first)(
        check(),

        check(
        ))
    value = [
        check(), 1,
        picked, *[
            check()
        ]
    ] + [
        check()]
    return (check()
            if value else
            None) or check()


def errors():
    try:
        check()
        raise ValueError
    except ValueError:
        check()
    finally:
        check()
    for _ in range(2):
        try:
            continue
        finally:
            check()
    try:
        exec('1 +')
    except SyntaxError as error:
        str(error); check()


def through_c():
    sorted([3, 1, 2], key=lambda _: check())
    functools.reduce(lambda a, b: check(), range(3))
    list(map(lambda _: check(), range(2)))

    class Dying:
        def __del__(self):
            check()

    Dying()
    cycle = Dying()
    cycle.itself = cycle
    del cycle
    gc.collect()
    again = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: int(check()))
    again()


def recursion(depth=100):
    check() if depth == 0 else recursion(depth - 1)


def hot():
    """Calls and lines after the interpreter has made its own instructions of them."""
    def leaf(i):
        return i if i < 2990 else check()

    for i in range(3000):
        leaf(
            i)


def long_line():
    a = 1
    b = [(a + 1) * (a + 2) - (a + 3), (a + 4) * (a + 5) - (a + 6), (a + 7) * (a + 8), a + 9, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8, a + 9, a + 10, a + 11, a + 12, a + 13, a + 14, a + 15, a + 16, a + 17, a + 18, check(), a + 19]  # fmt: skip
    return check() and b


def traced():
    def trace(frame, event, argument):
        return trace

    kept = sys.gettrace()
    sys.settrace(trace)
    try:
        nested()
        generators()
        continued()
    finally:
        sys.settrace(kept)
    if hasattr(sys, 'monitoring'):
        tool, events = sys.monitoring.PROFILER_ID, sys.monitoring.events
        sys.monitoring.use_tool_id(tool, 'scenes')
        sys.monitoring.register_callback(tool, events.LINE, lambda *_: None)
        sys.monitoring.set_events(tool, events.LINE | events.PY_START)
        nested()
        continued()
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)


def between():
    """Frames that are on the stack and not yet, or not at all, in their first line."""
    def with_cell(a, b):
        return lambda: (a, b)

    def numbers(a):
        yield lambda: a

    def collecting(phase, _):
        times.append(phase)
        check()

    times, threshold = [], gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    for i in range(20):
        with_cell(i, i)
        next(numbers(i))
    gc.set_threshold(*threshold)
    gc.callbacks.remove(collecting)
    if not times:
        wrong('no collection called back')

    def trace(frame, event, argument):
        if event == 'exception':
            raised.append(check())
        return trace

    raised, kept = [], sys.gettrace()
    sys.settrace(trace)
    try:
        numbers(1).throw(ValueError)
    except ValueError:
        pass
    finally:
        sys.settrace(kept)
    if not raised:
        wrong('no exception was traced')


def immortal():
    """From 3.14 on a frame marks the address of a code object that is never freed."""
    def kept():
        def numbers():
            yield check()
        return check() and list(numbers())

    for code in codes(kept.__code__):
        # The lower half of the count of references; what is set here tells 3.12 and later.
        ctypes.c_uint32.from_address(id(code)).value = 3 << 30
    kept()


SCENES = [nested, classes, generators, coroutines, executed, continued, errors, through_c,
          recursion, hot, long_line, traced, between, immortal]


def run_scenes():
    for scene in SCENES:
        scene()
    for scene in SCENES:
        thread = threading.Thread(target=scene)
        thread.start()
        thread.join()
    if COMPARED[0] < 400:
        wrong(f'only {COMPARED[0]} stacks were compared')
    few = ctypes.create_string_buffer(4096)
    for most in (0, 1, 2):
        got = words(LIBRARIES[0].frames_words(few, len(few), most), few)
        if len(got) != most:
            wrong(f'{len(got)} frames for {most}')
    return f'{COMPARED[0]} stacks'


# lines: each instruction of the standard library


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, 'co_code'):
            yield from codes(constant)


def line_starts(code):
    """[(first byte, line)]"""
    if sys.version_info >= (3, 10):
        return [(start, line or 0) for start, _, line in code.co_lines()]
    import dis
    return list(dis.findlinestarts(code))


def run_lines():
    version = sys.version_info
    kind = 0 if version < (3, 10) else 1 if version < (3, 11) else 2
    library = LIBRARIES[0]
    instructions = 0
    folder = sysconfig.get_path('stdlib')
    names = ('argparse', 'ast', 'datetime', 'inspect', 'statistics', 'tarfile', 'typing', 'uuid')
    for name in names:
        path = os.path.join(folder, name + '.py')
        with open(path, 'rb') as file:
            source = file.read()
        for code in codes(compile(source, path, 'exec')):
            table = code.co_lnotab if kind == 0 else code.co_linetable
            starts = dict(line_starts(code))
            line = code.co_firstlineno
            for at in range(0, len(code.co_code), 2):
                line = starts.get(at, line)
                got = library.frames_line(kind, table, len(table), code.co_firstlineno, at)
                instructions += 1
                if got != line:
                    wrong(f'{path} {code.co_name} at {at}: line {got}, not {line}')
                    break
    if instructions < 10000:
        wrong(f'only {instructions} instructions')
    return f'{instructions} instructions'


# stress


def busy(stop, library, results):
    def generator():
        while not stop[0]:
            yield library.frames_steady(2000)

    def deeper(depth):
        return deeper(depth - 1) if depth else list(generator())

    results += deeper(20)


def meddle(stop):
    """What another thread can do to frames that are not its own."""
    while not stop[0]:
        for frame in sys._current_frames().values():
            while frame:
                frame.f_locals, frame.f_lineno, frame.f_code.co_code
                frame = frame.f_back
        gc.collect()
        compile('\n'.join(f'def f{i}(): return {i}' for i in range(50)), '<again>', 'exec')
        time.sleep(0)


def run_stress():
    stop, results = [False], []
    sys.setswitchinterval(1e-5)
    threading.settrace(lambda *_: None)
    threads = [threading.Thread(target=busy, args=(stop, LIBRARIES[i % 4 == 3], results))
               for i in range(6)]
    threading.settrace(None)
    threads += [threading.Thread(target=meddle, args=(stop,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + float(os.environ.get('FRAMES_STRESS_SECONDS', '2'))
    while time.monotonic() < end:
        if LIBRARIES[0].frames_steady(2000) != 2:
            wrong('the main thread has another number of frames')
    stop[0] = True
    for thread in threads:
        thread.join()
    # threading.py has 3 frames, or 2; busy, 21 of deeper, the generator.
    if not set(results) <= {23 + 2, 23 + 3}:
        wrong(f'frames: {sorted(set(results))}')
    return f'{2000 * len(results)} takes'


def run_ending():
    """The interpreter ends while daemon threads are in the middle of taking."""
    LIBRARIES[0].frames_steady(1)
    for how in (1, 2, 1, 2):
        threading.Thread(target=LIBRARIES[0].frames_at_the_end, args=(how,), daemon=True).start()
    time.sleep(0.05)
    return 'ended'


def run_cost():
    def depth(n, library, times):
        return depth(n - 1, library, times) if n else library.frames_cost(times)

    def both(results):
        results += [(n, depth(n, LIBRARIES[0], 20000)) for n in (0, 10, 50)]

    main, other = [], []
    both(main)
    thread = threading.Thread(target=both, args=(other,))
    thread.start()
    thread.join()
    show = lambda results: ', '.join(f'{ns:.0f} ns with {n} more frames' for n, ns in results)
    return f'first thread {show(main)}; another {show(other)}'


# what must be refused


def refuse_other_offsets(library):
    """What this interpreter tells of itself is believed; not so if it differs, or has no GIL."""
    if sys.version_info < (3, 13):
        return
    version = sys.version.encode()
    offsets = (ctypes.c_uint64 * 128)()
    runtime = ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')
    ctypes.memmove(offsets, ctypes.byref(runtime), ctypes.sizeof(offsets))
    if not library.frames_knows(version, offsets):
        wrong('the offsets of this interpreter are refused')
    offsets[2] = 1
    if library.frames_knows(version, offsets):
        wrong('a free-threaded build is taken for a known one')
    offsets[2] = 0
    for other in (13, 14):
        named = f'3.{other}.1 (main) [GCC 9]'.encode()
        if library.frames_knows(named, offsets) != (other == sys.version_info[1]):
            wrong(f'3.{other} is or is not known by the offsets of this interpreter')


def run_refusals():
    library = LIBRARIES[0]
    number = ctypes.c_int(7)
    if not library.frames_sees(ctypes.addressof(number), 4):
        wrong('memory that is there is not seen')
    page = library.frames_sees
    for address in (0, 8, 4096, 1 << 46, (1 << 64) - 8):
        if page(address, 8):
            wrong(f'memory at {address:#x} is seen')
    for version in ('3.7.9 (default) [GCC 9]', '3.99.0 (main) [GCC 9]', '3.11.0a1 (main) [GCC 9]',
                    '3.12.0b4 (main) [GCC 9]', '3.11.7', '3.10.1+cinder (main) [GCC 9]',
                    '3.8.12 (x) [Pyston 2.3.5, GCC 9.4.0]', '3.11.7 (x) [Graal, GraalVM CE]',
                    '2.7.18 (default) [GCC 9]', '3.', '', '3.13.1 (main) [GCC 9]',
                    '3.14.1 (main) [GCC 9]'):
        if library.frames_knows(version.encode(), None):
            wrong(f'{version!r} is taken for a known CPython')
    for version in ('3.8.18 (default, May) \n[GCC 12.2.0]', '3.11.2+ (heads/3.11) [Clang 17.0]',
                    '3.12.0rc2 (main) [GCC 9]', '3.9.1 | packaged by conda-forge | [GCC 9.3.0]'):
        if not library.frames_knows(version.encode(), None):
            wrong(f'{version!r} is not taken for a known CPython')
    offsets = (ctypes.c_uint64 * 128)()
    ctypes.memmove(offsets, b'xdebugpy', 8)
    for version in ('3.13.1 (main) [GCC 9]', '3.14.1 (main) [GCC 9]'):
        if library.frames_knows(version.encode(), offsets):
            wrong(f'{version!r} with other offsets is taken for a known one')
    refuse_other_offsets(library)
    return 'refused'


def run_pretended():
    """How many frames there are here and in another thread; for run_strangers()."""
    def count():
        counts.append(str(LIBRARIES[0].frames_steady(10)))

    counts = []
    count()
    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    return ' '.join(counts)


def run_strangers():
    """What cannot be read has no frames, and does no harm."""
    family = lambda minor: max(minor, 10)
    mine = family(sys.version_info[1])
    pretended = ['code', 'bytes', '3.7', '3.99']
    with open('/proc/self/status') as status:
        # In a container that filters system calls the one that is forbidden is not called.
        if 'Seccomp:\t0' in status.read():
            pretended.append('forbidden')
    pretended += [f'3.{minor}' for minor in range(8, 15) if family(minor) != mine]
    for what in pretended + ['', 'filtered']:
        answer = subprocess.run([sys.executable, __file__, sys.argv[1], 'pretended'],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, 'FRAMES_PRETEND': what})
        said = answer.stdout.decode().strip().split('\n')
        wanted = '0 0' if what in pretended else '3 4'
        if answer.returncode or said[-1] != wanted:
            wrong(f'{what or "itself"}: {answer.returncode} {said}, not {wanted}')
    return f'{len(pretended)} strangers'


SUITES = {name[4:]: suite for name, suite in globals().items() if name.startswith('run_')}

if __name__ == '__main__':
    LIBRARIES = load(sys.argv[1])
    said = SUITES[sys.argv[2]]()
    print('\n'.join(WRONG[:10]) or said)
    sys.exit(bool(WRONG))
