#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Routes -- does the shim behave in a stranger's process?

What can go wrong between a program, the loader and the driver, case by case:
what is found by which look-up, whose look-up it is, who else is in the process,
what its children do, and how it ends.
"""

import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile

from harness import BIN, SHIM, SIM, SOURCE, Skipped, case, expect, main, passes, reports_in, start

EXPORTS = os.path.join(SOURCE, '../../sim_driver/exports.tsv')


def library(name):
    path = ctypes.util.find_library(name)
    if not path:
        raise Skipped(f'lib{name} is not installed')
    return path


# what is found

@case
def exports():
    done = passes('routes-exports', EXPORTS, STREAMPOOL_DIAG='1', STREAMPOOL_FORMAT='json')
    unseen = [report['unseen'] for report in reports_in(done.stderr)]
    # Built with older headers, we do not hook all that the driver has.
    if int(done.stdout.split()[-1]) >= 13000:
        expect(unseen == [None], f'the program could submit unseen, by {unseen}')
    print(done.stdout)


@case
def exports_of_old_drivers():
    for age in ('11010', '11020', '12000'):
        print(age, passes('routes-exports', EXPORTS, driver=os.path.join(SIM, age)).stdout)


@case
def exports_with_other_addresses():
    # A driver whose two look-ups disagree: what we do not know is left alone.
    done = passes('routes-exports', EXPORTS, SIM_GPA_DIFFERENT='1', STREAMPOOL_DIAG='1',
                  STREAMPOOL_FORMAT='json')
    unseen = [report['unseen'] for report in reports_in(done.stderr)]
    expect(len(unseen) == 1 and unseen[0], f'nothing was unseen: {unseen}')


@case
def requests_of_a_runtime():
    print(passes('routes-requests', os.path.join(SOURCE, 'cudart13_requests.tsv')).stdout)


@case
def real_runtime():
    found = [f'{folder}/libcudart.so.13' for folder in
             ('/usr/local/cuda/lib64', '/usr/local/cuda/lib', '/usr/local/cuda-13.0/lib')
             if os.path.exists(f'{folder}/libcudart.so.13')]
    if not found:
        raise Skipped('there is no libcudart.so.13')
    spy = os.path.join(BIN, 'libroutes_spy.so')
    print(passes('routes-runtime', found[0], preload=f'{spy}:{SHIM}').stdout)


@case
def get_proc_address_contract():
    passes('routes-contract')


@case
def ways():
    passes('routes-ways')
    passes('routes-ways', STREAMPOOL_MODE='observe')


@case
def ways_when_switched_off():
    for variables in ({'STREAMPOOL_MODE': 'off'}, {'STREAMPOOL_DISABLE': '1'},
                      {'STREAMPOOL_ONLY': 'another'}):
        done = passes('routes-ways', **variables)
        expect('streampool' not in done.stderr, f'{variables} reports: {done.stderr}')
    done = passes('routes-ways', STREAMPOOL_ONLY='another,routes-ways')
    expect(done.stderr, 'the program that was named is not served')


@case
def retry_when_memory_is_short():
    passes('routes-retry')


@case
def no_driver():
    passes('routes-weak', 'absent', driver='')


@case
def old_driver():
    passes('routes-weak', 'old', driver=os.path.join(SIM, '11010'))


@case
def driver_in_two_libraries():
    passes('routes-halves', driver=f'{BIN}/halves:{BIN}/halves/inner',
           STREAMPOOL_MODE='off')


# who asks

@case
def callers():
    passes('routes-caller')


@case
def plugin_by_runpath():
    passes('routes-loading', 'runpath')


@case
def plugin_with_deepbind():
    passes('routes-loading', 'deepbind')


@case
def driver_started_unseen():
    done = passes('routes-loading', 'unseen', STREAMPOOL_FORMAT='json')
    expect(len(reports_in(done.stderr)) == 1, f'the shim did not begin: {done.stderr}')


@case
def second_driver():
    passes('routes-loading', 'second')
    passes('routes-loading', 'second-first')


@case
def closing():
    passes('routes-loading', 'closing')


@case
def two_threads_start():
    passes('routes-abba')


# who else is there

def allocates_with(name):
    for preload in (f'{SHIM}:{name}', f'{name}:{SHIM}'):
        passes('routes-user', 'opened', preload=preload)
        passes('/bin/true', preload=preload)


@case
def allocator_that_looks():
    allocates_with(os.path.join(BIN, 'libroutes_allocator.so'))


@case
def jemalloc():
    allocates_with(library('jemalloc'))


@case
def tcmalloc():
    allocates_with(library('tcmalloc_minimal'))


def sanitized(folder, kind, runtime):
    """A program built with a sanitizer of gcc's, which is a library, and that library."""
    if not shutil.which('gcc'):
        raise Skipped('there is no gcc')
    program = os.path.join(folder, kind)
    built = subprocess.run(['gcc', f'-fsanitize={kind}', '-o', program,
                            os.path.join(SOURCE, 'nothing.c')], check=False, capture_output=True)
    path = subprocess.run(['gcc', f'-print-file-name={runtime}'], check=False,
                          capture_output=True, text=True).stdout.strip()
    if built.returncode or not os.path.isabs(path):
        raise Skipped(f'gcc has no {kind} sanitizer')
    return program, path


@case
def address_sanitizer():
    with tempfile.TemporaryDirectory() as folder:
        program, runtime = sanitized(folder, 'address', 'libasan.so')
        # The sanitizer insists on being the first; so it is, or is told not to.
        done = start(program)
        expect('does not come first' in done.stderr, f'it did not complain: {done.stderr}')
        passes(program, preload=f'{runtime}:{SHIM}')
        passes(program, ASAN_OPTIONS='verify_asan_link_order=0')


@case
def thread_sanitizer():
    with tempfile.TemporaryDirectory() as folder:
        program, runtime = sanitized(folder, 'thread', 'libtsan.so')
        if start(program, preload='').returncode:
            raise Skipped('the thread sanitizer does not run here')
        passes(program, preload=f'{runtime}:{SHIM}')
        passes(program)


@case
def another_interposer():
    other = os.path.join(BIN, 'libroutes_other.so')
    for preload in (f'{SHIM}:{other}', f'{other}:{SHIM}'):
        for how in ('linked', 'opened'):
            done = passes('routes-user', how, preload=preload, OTHER_TELLS='1')
            expect('other: ' in done.stderr, f'the other library was not there: {done.stderr}')
            expect(how == 'linked' or ' 0 look-ups' not in done.stderr,
                   f'it was passed by: {done.stderr}')
        # What we hand out are our own functions, whoever else has the names.
        passes('routes-user', 'asked', preload=preload)
    # In front of us it sees every call, and we see them after it.
    done = passes('routes-user', 'linked', preload=f'{other}:{SHIM}', OTHER_TELLS='1')
    expect('other: 10 allocs, 10 frees' in done.stderr, done.stderr)
    expect('streampool' in done.stderr, f'the shim saw nothing: {done.stderr}')


@case
def two_copies():
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, 'libstreampool_copy.so')
        # Under another name inside, too: the loader does not load one name twice.
        with open(SHIM, 'rb') as original, open(copy, 'wb') as other:
            other.write(original.read().replace(b'libstreampool_shim.so\0',
                                                b'libstreampool_copy.so\0'))
        for how in ('linked', 'opened'):
            done = passes('routes-user', how, preload=f'{SHIM}:{copy}', STREAMPOOL_FORMAT='json')
            expect(len(reports_in(done.stderr)) == 1, f'not one report: {done.stderr}')
            passes('routes-ways', preload=f'{SHIM}:{copy}')


# children

@case
def quiet_strangers():
    for command in (['/bin/true'], ['/bin/sh', '-c', 'exit 0'], ['/usr/bin/env', '-i', '/bin/true'],
                    ['routes-nothing'], ['routes-static']):
        if command[0] == 'routes-static' and not os.path.exists(os.path.join(BIN, command[0])):
            continue
        done = passes(*command, STREAMPOOL_LOG='3', STREAMPOOL_HELP='1', STREAMPOOL_EXITCODE='9')
        expect(not done.stderr, f'{command} wrote {done.stderr!r}')


@case
def quiet_setuid():
    program = next((p for p in ('/bin/su', '/usr/bin/passwd') if os.path.exists(p)), None)
    if not program or not os.stat(program).st_mode & 0o4000 or os.getuid() == 0:
        raise Skipped('there is no program that changes its user here')
    bare = start(program, '--help', preload='')
    done = start(program, '--help')
    expect(done.returncode == bare.returncode, f'it ended with {done.returncode}')


@case
def preload_that_is_missing():
    done = start('/bin/true', preload='/nowhere/libstreampool_shim.so')
    expect(done.returncode == 0, 'a missing library ends the program')


@case
def children_by_fork():
    done = passes('routes-forks', 'fork', STREAMPOOL_FORMAT='json')
    expect(len(reports_in(done.stderr)) == 1, f'children reported: {done.stderr}')


@case
def children_by_fork_before_the_start():
    done = passes('routes-forks', 'before', STREAMPOOL_FORMAT='json')
    expect(len(reports_in(done.stderr)) == 1, f'not one report: {done.stderr}')


@case
def children_by_exec():
    done = passes('routes-forks', 'exec', os.path.join(BIN, 'routes-user'),
                  STREAMPOOL_FORMAT='json')
    expect('0 failures' in done.stdout, done.stdout)


@case
def children_by_spawn():
    passes('routes-forks', 'spawn')


@case
def driver_that_forks():
    passes('routes-user', 'linked', SIM_INIT_FORKS='1')
    passes('routes-user', 'opened', SIM_INIT_FORKS='1')


# the end

def ends(way, status=0, leaks='0', reports=1, output='done\n', **variables):
    done = passes('routes-endings', way, leaks, status=status, STREAMPOOL_FORMAT='json',
                  **variables)
    expect(done.stdout == output, f'{way}: stdout is {done.stdout!r}')
    found = reports_in(done.stderr)
    expect(len(found) == reports, f'{way}: {len(found)} reports, not {reports}: {done.stderr}')


@case
def ending_by_exit():
    ends('return')
    ends('exit7', status=7)
    ends('thread')
    ends('last')
    ends('again', status=5)


@case
def ending_without_exit():
    ends('quick', reports=0, output='')
    ends('_exit', reports=0, output='')
    ends('abort', reports=0, output='', status=-6)


@case
def ending_cut_short():
    # By the destructor of a library that is torn down after us.
    ends('return', status=4, output='', LAST_CUTS='1')


@case
def ending_with_late_frees():
    # What is freed after main() is no leak.
    ends('atexit', STREAMPOOL_EXITCODE='9')
    ends('statics', STREAMPOOL_EXITCODE='9')


@case
def ending_with_busy_threads():
    for _ in range(5):
        ends('busy')


@case
def exit_status_of_findings():
    ends('return', leaks='1', STREAMPOOL_EXITCODE='9', status=9)
    ends('thread', leaks='1', STREAMPOOL_EXITCODE='9', status=9)
    ends('return', leaks='0', STREAMPOOL_EXITCODE='9')
    ends('return', leaks='1', STREAMPOOL_EXITCODE='0')
    ends('return', leaks='1')
    # Only 0 is changed, and what counts is the last word on it.
    ends('exit7', leaks='1', STREAMPOOL_EXITCODE='9', status=7)
    ends('again', leaks='1', STREAMPOOL_EXITCODE='9', status=5)


if __name__ == '__main__':
    sys.exit(main())
