#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run -- the library as a stranger meets it: installed, and found by pkg-config

    run.py --build BUILD --source ROOT --version VERSION --meson MESON --driver LIBCUDA --beside PROGRAM SUITE

Each suite is a function below. It installs into a folder of its own, uses nothing
of the build after that, and prints what is wrong; exit status 77 is "no compiler".
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
SUITES = ("at_run_time", "beside", "example", "header_c", "header_cxx", "others", "package", "plan", "symbols")
OPTIONS = None
WRONG = []


def note(condition, message):
    if not condition:
        WRONG.append(message)


def call(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    note(not done.returncode, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed:
    """What `meson install` leaves in an empty folder."""

    def __init__(self, folder):
        self.folder = folder
        call(OPTIONS.meson, "install", "--no-rebuild", "--quiet", "-C", OPTIONS.build, "--destdir", folder)

    def find(self, name):
        for path, _, names in os.walk(self.folder):
            if name in names:
                return os.path.join(path, name)
        note(False, f"{name} is not installed")
        return ""

    def package(self, *arguments):
        """The installed package's answer, and no other's."""
        env = {name: text for name, text in os.environ.items() if not name.startswith("PKG_CONFIG")}
        env["PKG_CONFIG_LIBDIR"] = os.path.dirname(self.find("streampool.pc"))
        env["PKG_CONFIG_SYSROOT_DIR"] = self.folder
        # Where the prefix is /usr, the folders are the compiler's own, but not below ours.
        env["PKG_CONFIG_ALLOW_SYSTEM_CFLAGS"] = env["PKG_CONFIG_ALLOW_SYSTEM_LIBS"] = "1"
        return call("pkg-config", *arguments, "streampool", env=env).split()

    def libraries(self):
        return os.path.dirname(self.find("libstreampool_model.so"))


def compilers(*names):
    found = [name for name in names if shutil.which(name)]
    if not found:
        print(f"none of {', '.join(names)} is here")
        sys.exit(SKIP)
    return found


def source(*names):
    return os.path.join(OPTIONS.source, "tests", *names)


def libraries_at(folder):
    env = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return {**env, "LD_LIBRARY_PATH": folder} if folder else env


def public_headers(installed):
    """The names of the model's headers, as they are installed."""
    folder = os.path.dirname(installed.find("model.h"))
    return folder, sorted(name for name in os.listdir(folder) if name != "streampool.h")


def compile_header(installed, language, standard, present):
    flags = installed.package("--cflags", "--libs")
    program = os.path.join(installed.folder, "header")
    first = ["-include", "streampool/streampool.h", "-include", "streampool/model.h"]
    for compiler in present:
        call(compiler, "-x", language, standard, *STRICT, *first, source("library", "header.c"), *flags, "-o", program)
        call(program, env=libraries_at(installed.libraries()))
        for name in public_headers(installed)[1]:
            alone = [*installed.package("--cflags"), "-include", f"streampool/{name}", os.devnull]
            call(compiler, "-x", language, standard, *STRICT, "-fsyntax-only", *alone)


# suites


def package(installed):
    """The files, and what pkg-config says of them."""
    version = installed.package("--modversion")
    note(version == [OPTIONS.version], f"version {version}, of the project: {OPTIONS.version}")
    with open(installed.find("streampool.h"), encoding="utf-8") as file:
        note(f'"{OPTIONS.version}"' in file.read(), f"streampool.h is not of version {OPTIONS.version}")
    flags = installed.package("--cflags", "--libs")
    note("-lstreampool_model" in flags, f"flags: {flags}")
    strange = [flag for flag in flags if flag != "-lstreampool_model" and flag[:2] not in ("-I", "-L")]
    note(not strange, f"the library needs nothing else, yet: {strange}")
    for flag in flags:
        if flag[:2] in ("-I", "-L"):
            note(os.path.isdir(flag[2:]), f"{flag} is no folder")
    for name in ("libstreampool_model.so", "libstreampool_model.a"):
        installed.find(name)
    names = {name for name in os.listdir(source("..", "include", "streampool")) if name != "streampool.h"}
    missing = names - set(public_headers(installed)[1])
    note("model.h" in names and not missing, f"headers that are not installed: {sorted(missing)}")


def example(installed):
    """tests/examples/pool.c as its own comment says, with either library. What a heap decides is * in pool.txt.
    So is layouts.c, which knows by itself whether it is right."""
    with open(source("library", "pool.txt"), encoding="utf-8") as file:
        wanted = re.escape(file.read()).replace(r"\*", r"(\d+)")
    archive = installed.find("libstreampool_model.a")
    flags = installed.package("--cflags", "--libs")
    static = [archive if flag == "-lstreampool_model" else flag for flag in flags]
    for compiler in compilers("cc", "gcc", "clang"):
        for libraries in (flags, static):
            program = os.path.join(installed.folder, "layouts")
            call(compiler, *STRICT, source("examples", "layouts.c"), *libraries, "-o", program)
            call(program, env=libraries_at(installed.libraries() if libraries is flags else None))
            program = os.path.join(installed.folder, "pool")
            call(compiler, *STRICT, source("examples", "pool.c"), *libraries, "-o", program)
            said = call(program, env=libraries_at(installed.libraries() if libraries is flags else None))
            found = re.fullmatch(wanted, said)
            note(found, f"{compiler}, {libraries}: it says\n{said}")
            if not found:
                continue
            hits, reserved, hits_with, reserved_with, unlocked = map(int, found.groups())
            note(hits < hits_with and 3 * reserved_with <= reserved, f"the event makes no difference:\n{said}")
            note(unlocked > 900, f"the magazine makes no difference:\n{said}")


def others(installed):
    """The other programs of tests/examples without a device: each says what its text has, with either library."""
    archive = installed.find("libstreampool_model.a")
    flags = installed.package("--cflags", "--libs")
    static = [archive if flag == "-lstreampool_model" else flag for flag in flags]
    for name in ("budget", "use"):
        with open(source("library", name + ".txt"), encoding="utf-8") as file:
            wanted = file.read()
        for compiler in compilers("cc", "gcc", "clang"):
            for libraries in (flags, static):
                program = os.path.join(installed.folder, name)
                call(compiler, *STRICT, source("examples", name + ".c"), *libraries, "-o", program)
                said = call(program, env=libraries_at(installed.libraries() if libraries is flags else None))
                note(said == wanted, f"{compiler}, {libraries}: {name} says\n{said}")


def at_run_time(installed):
    """tests/examples/layouts_at_run_time.c talks to an installed shim, and does without."""
    sys.path.insert(0, source("e2e"))
    import shimrun

    with open(source("library", "layouts_at_run_time.txt"), encoding="utf-8") as file:
        wanted = file.read()
    shim = installed.find("libstreampool_shim.so")
    program = os.path.join(installed.folder, "layouts_at_run_time")
    for compiler in compilers("cc", "gcc", "clang"):
        call(compiler, *STRICT, source("examples", "layouts_at_run_time.c"), *installed.package("--cflags"), "-ldl",
             "-o", program)  # fmt: skip
        for preload, words in ((None, "done\n"), (shim, wanted)):
            run = shimrun.run([program], preload, driver=OPTIONS.driver)
            note(run.status == 0 and run.out == words, f"{compiler}, {preload}: {run.status}\n{run.out}{run.err}")
        note(not shimrun.leaks(run.report), f"leaks: {shimrun.leaks(run.report)}")


def plan(installed):
    """The launcher plans with what was installed beside it: nothing of the source tree or of the build."""
    launcher = installed.find("streampool")
    trace = os.path.join(installed.folder, "run.trace")
    with open(trace, "w", encoding="ascii") as file:
        file.write("a 10485760\n" * 3)
    said = call(launcher, "plan", trace)
    note("STREAMPOOL_LIMIT=30M\n" in said, f"no plan:\n{said}")
    program = installed.find("streampool-plan")
    os.rename(program, program + ".gone")
    done = subprocess.run([launcher, "plan", trace], capture_output=True, text=True, check=False)
    note(done.returncode == 2 and "streampool-plan is not there" in done.stderr, f"without the program: {done}")


def header_c(installed):
    """The headers by themselves in C."""
    compile_header(installed, "c", "-std=c11", compilers("gcc", "clang"))


def header_cxx(installed):
    """The headers by themselves in C++, and linked from it."""
    compile_header(installed, "c++", "-std=c++11", compilers("g++", "clang++"))


def symbols(installed):
    """The library has the headers' functions, no other name, and needs the C library only."""
    library = installed.find("libstreampool_model.so")
    declared = set()
    folder, names = public_headers(installed)
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        declared |= set(re.findall(r"\b(spm_\w+)\s*\(", text))
    listing = call("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].partition("@")[0] for line in listing}
    note(len(declared) > 30, f"only {len(declared)} functions were found in the header")
    note(not declared - exported, f"declared, but not there: {sorted(declared - exported)}")
    note(not exported - declared, f"there, but not declared: {sorted(exported - declared)}")
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", call("readelf", "-d", "-W", library))
    others = [name for name in needed if not re.match(r"(libc|ld-linux[\w-]*)\.so\.\d+$", name)]
    note(needed and not others, f"needs {needed}")


def beside(installed):
    """A program's own model and the shim's know nothing of each other."""
    sys.path.insert(0, source("e2e"))
    import shimrun

    shim = installed.find("libstreampool_shim.so")
    names = call("nm", "-D", shim)
    note(" spm_" not in names, "the shim has, or wants, names of the model: " + ", ".join(re.findall(r"spm_\w+", names)))
    folders = os.pathsep.join([os.path.dirname(OPTIONS.driver), installed.libraries()])
    runs = [shimrun.run([OPTIONS.beside], settings={"LD_LIBRARY_PATH": folders})]
    runs += [shimrun.run([OPTIONS.beside], shim, mode, settings={"LD_LIBRARY_PATH": folders})
             for mode in ("pool", "observe", "off")]  # fmt: skip
    for run in runs:
        note(run.status == 0, f"{run.died or run.status}\n{run.out}{run.err}")
        note(run.out == runs[0].out, f"alone:\n{runs[0].out}under the shim:\n{run.out}")
    note("from libstreampool_model.so" in runs[0].out, runs[0].out)
    made = int(re.search(r"driver (\d+) allocations", runs[0].out).group(1))
    note(shimrun.pooled(runs[1].report) == made, f"the shim served {shimrun.pooled(runs[1].report)} of {made}")
    note(not shimrun.leaks(runs[1].report), f"leaks: {shimrun.leaks(runs[1].report)}")


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    for name in ("build", "source", "version", "meson", "driver", "beside"):
        parser.add_argument("--" + name)
    parser.add_argument("suite", choices=SUITES)
    OPTIONS = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="library-") as folder:
        globals()[OPTIONS.suite](Installed(folder))
    print("\n".join(WRONG) if WRONG else f"{OPTIONS.suite}: as it should be")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
