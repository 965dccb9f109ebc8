#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Binary -- is the library built so that any process can load it?

Reads the finished library with objdump, and builds the one function that must
not be a function, dlsym, in every flavour that could turn its jump into a call.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import SHIM, SOURCE, Skipped, case, expect, main

OLDEST = (2, 28)
SHIM_SOURCE = os.path.normpath(os.path.join(SOURCE, '../../../shim'))

# Not in the libc and libdl of glibc 2.28: they were in libpthread then.
MOVED = re.compile(r'pthread_(create|join|detach|key_create|key_delete|getspecific|setspecific|once|'
                   r'mutex_trylock|mutex_timedlock|rwlock_\w+|sigmask|kill|cancel)$|sem_\w+$')


def output(*command):
    if not shutil.which(command[0]):
        raise Skipped(f'{command[0]} is not installed')
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def disassembly(path, objdump='objdump'):
    text = output(objdump, '-d', '--no-show-raw-insn', '--disassemble=dlsym', path)
    return [' '.join(line.split('\t')[1:]).split('#')[0].strip() for line in text.split('\n')
            if re.match(r'\s+[0-9a-f]+:\t', line)]


@case
def needs_nothing_newer_than_glibc_2_28():
    for line in output('objdump', '-T', SHIM).split('\n'):
        expect('GLIBC_PRIVATE' not in line, line)
        version = re.search(r'GLIBC_([0-9.]+)', line)
        if version:
            expect(tuple(map(int, version[1].split('.')))[:2] <= OLDEST, line)
        if '*UND*' in line:
            expect(not MOVED.match(line.split()[-1]), f'in 2.28 this is in libpthread: {line}')


@case
def needs_only_the_c_library():
    needed = re.findall(r'NEEDED\s+(\S+)', output('objdump', '-p', SHIM))
    expect(needed and set(needed) <= {'libc.so.6', 'libdl.so.2', 'libpthread.so.0'}, f'needed: {needed}')
    # Without it, dlopen() of an old glibc would not be found.
    expect('libdl.so.2' in needed, f'needed: {needed}')


@case
def has_no_version_on_dlsym():
    lines = [line for line in output('objdump', '-T', SHIM).split('\n')
             if line.endswith(' dlsym')]
    expect(len(lines) == 1 and '*UND*' not in lines[0] and 'GLIBC' not in lines[0], lines)


@case
def executes_no_stack():
    stack = [line for line in output('readelf', '-lW', SHIM).split('\n') if 'GNU_STACK' in line]
    expect(stack and 'RWE' not in stack[0], f'{stack}')
    expect('TEXTREL' not in output('readelf', '-d', SHIM), 'the text is relocated')


def judge(instructions, jump, call, where):
    expect(len(instructions) > 10, f'{where}: {instructions}')
    expect(re.match(jump, instructions[-1]), f'{where}: the last is {instructions[-1]}')
    jumps = [i for i in instructions if re.match(jump, i)]
    calls = [i for i in instructions if re.match(call, i)]
    # One jump when the real function is known, one after it was found by the one call.
    expect(len(jumps) == 2, f'{where}: jumps are {jumps}')
    expect(len(calls) == 1, f'{where}: calls are {calls}')


@case
def dlsym_jumps():
    judge(disassembly(SHIM), r'jmpq?\s+\*', 'call', SHIM)


@case
def dlsym_jumps_in_every_flavour():
    flavours = ['-O0', '-O2', '-Os', '-O2 -fsanitize=address', '-O0 -fsanitize=undefined',
                '-O2 -fsanitize=thread', '-O0 -fstack-protector-all', '-O2 -fcf-protection=full',
                '-O0 --coverage', '-O2 -pg', '-O2 -fno-optimize-sibling-calls']
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, 'dlsym.o')
        for flavour in flavours:
            subprocess.run([*os.environ['ROUTES_CC'].split(), *flavour.split(), '-fPIC', '-c',
                            os.path.join(SHIM_SOURCE, 'driver/dlsym.S'), '-o', built], check=True)
            judge(disassembly(built), r'jmpq?\s+\*', 'call', flavour)


@case
def dlsym_on_aarch64():
    compiler = shutil.which('aarch64-linux-gnu-gcc')
    if not compiler:
        raise Skipped('there is no compiler for aarch64')
    with tempfile.TemporaryDirectory() as folder:
        built = os.path.join(folder, 'dlsym.o')
        subprocess.run([compiler, '-fPIC', '-c', os.path.join(SHIM_SOURCE, 'driver/dlsym.S'), '-o',
                        built], check=True)
        judge(disassembly(built, 'aarch64-linux-gnu-objdump'), r'br\s+x16', r'bl\s', 'aarch64')
        emulator = shutil.which('qemu-aarch64-static') or shutil.which('qemu-aarch64')
        root = '/usr/aarch64-linux-gnu'
        if not emulator or not os.path.exists(root + '/lib/libc.so.6'):
            raise Skipped('assembled, but there is nothing to run it on')
        run_on_aarch64(compiler, [emulator, '-L', root], folder)


def run_on_aarch64(compiler, emulator, folder):
    """The callers' test with the thunk alone: nothing there concerns the driver."""
    def build(name, *parts):
        path = os.path.join(folder, name)
        subprocess.run([compiler, '-fPIC', '-I' + SHIM_SOURCE, '-include',
                        'base/glibc.h', '-o', path, *parts], check=True)
        return path

    source = [os.path.join(SOURCE, name) for name in os.listdir(SOURCE)]
    by_name = {os.path.basename(path): path for path in source}
    thunk = build('libthunk.so', '-shared', '-fvisibility=hidden',
                  os.path.join(SHIM_SOURCE, 'driver/dlsym.S'),
                  os.path.join(SHIM_SOURCE, 'driver/real_dlsym.c'), by_name['thunk.c'])
    build('libroutes_second.so', '-shared', by_name['caller_second.c'])
    build('libroutes_first.so', '-shared', by_name['caller_first.c'], '-L' + folder,
          '-lroutes_second')
    for name in ('local', 'cudnn', 'sibling'):
        build(f'libroutes_{name}.so', '-shared', by_name[f'{name}.c'])
    program = build('caller', by_name['caller.c'], '-DROUTES_ROUNDS=1000', '-L' + folder,
                    '-Wl,-rpath-link,' + folder,
                    '-lroutes_first', '-lpthread')
    done = subprocess.run([*emulator, '-E', f'LD_LIBRARY_PATH={folder}', '-E',
                           f'LD_PRELOAD={thunk}', '-E', f'ROUTES_SHIM={thunk}', program],
                          check=False, capture_output=True, text=True)
    expect(done.returncode == 0, f'{done.returncode}: {done.stdout}{done.stderr}')


if __name__ == '__main__':
    sys.exit(main())
