# SPDX-License-Identifier: Apache-2.0
"""Ground -- what scripts that run on a GPU machine stand on

The shim is given or built here, C programs of the tests are compiled with what is
found, and nothing is fetched. All of it lies in build-gpu/.
"""

import os
import platform
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, 'build-gpu')
CONFORMANCE = os.path.join(ROOT, 'tests', 'conformance')


def call(command, env, limit):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=limit)
    if done.returncode:
        raise RuntimeError(f'{os.path.basename(command[0])}: {done.stdout.decode()[-1500:]}')


def add_options(parser):
    parser.add_argument('--shim', help='libstreampool_shim.so, instead of building it')
    parser.add_argument('--uthash', help='folder with uthash.h, for building the shim')


def find_shim(options):
    """The one that is named, or a release build of this tree."""
    given = options.shim or os.environ.get('STREAMPOOL_LIB')
    path = os.path.abspath(given) if given else build_shim(options.uthash)
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    return path


def build_shim(uthash):
    env = dict(os.environ)
    if uthash:
        flags = '-I' + os.path.abspath(uthash)
        env['CFLAGS'] = f'{flags} {env.get("CFLAGS", "")}'.strip()
    build = os.path.join(FOLDER, 'shim')
    meson = [sys.executable, '-m', 'mesonbuild.mesonmain']
    if shutil.which('meson'):
        meson = ['meson']
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        call(meson + ['setup', '--buildtype=release', '-Dtests=false', build, ROOT], env, 120)
    call(meson + ['compile', '-C', build, 'streampool_shim'], env, 300)
    return os.path.join(build, 'shim', 'libstreampool_shim.so')


def find_headers():
    """The compiler's arguments for cuda.h."""
    found = subprocess.run([sys.executable, os.path.join(ROOT, 'scripts', 'find_cuda.py'),
                            '--include', ''], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if found.returncode:
        raise RuntimeError(found.stderr.decode().strip())
    return ['-isystem', found.stdout.decode().splitlines()[0]]


def program(name, sources, include, flags=('-O1', '-g')):
    """Compile C sources of the tests; the path of the program."""
    path = os.path.join(FOLDER, name)
    call([os.environ.get('CC', 'cc'), '-std=gnu11', *flags, *include, '-I', CONFORMANCE, '-o', path,
          *sources, os.path.join(CONFORMANCE, 'cu.c'), '-ldl', '-lpthread'], None, 60)
    return path


def machine():
    try:
        smi = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version,memory.total',
                              '--format=csv,noheader'], stdout=subprocess.PIPE, timeout=20)
        gpus = smi.stdout.decode().strip().replace('\n', '; ')
    except (OSError, subprocess.TimeoutExpired):
        gpus = 'nvidia-smi not found'
    return f'{gpus}; {os.cpu_count()} CPU cores, Linux {platform.release()}, Python ' \
           f'{platform.python_version()}, {time.strftime("%Y-%m-%d")}.'
