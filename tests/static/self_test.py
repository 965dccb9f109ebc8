#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test -- each static check sees the violation it is for

    self_test.py ROOT CC

A check that finds nothing proves nothing until it has found something. Every
case plants one violation in a small tree of its own, or in what a tool is said
to have printed, and expects exactly the complaint about it.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, CC = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import check_called
import check_exports
import check_floors
import check_format
import check_paths
import check_submissions
import check_tidy
import count_results
import find_cuda
import update_readme

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
SCRIPT = "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"

# path: text. Nothing is wrong here.
CLEAN = {
    "include/streampool/model.h": LICENCE + "#include <stdint.h>\n",
    "model/fit.c": LICENCE + '#include "fit.h"\n#include <streampool/model.h>\n',
    "model/table.h": LICENCE + "#include <uthash.h>\n",
    "model/magazine.h": LICENCE + "#include <stdatomic.h>\n",
    "shim/base/config.c": LICENCE + '#include "base/log.h"\nconst char *v = secure_getenv("A");\n',
    "shim/report/report.c": LICENCE + '#include "driver/entry_points.h"\n',
    "shim/route/on_memory.c": LICENCE + "if (likely(x)) {}\n",
    "shim/track/backing.c": LICENCE + '#include "report/counters.h"\n',
    "shim/driver/driver.c": LICENCE + "#include <cuda.h>\n#include <dlfcn.h>\n",
    "tests/model/fit.c": LICENCE + "if (unlikely(x)) {}\n",
    "shim/track/stream.c": LICENCE + '/* getenv(),\n * likely() */\nchar *say = "environ";\n',
    "tools/plan/plan.c": LICENCE + '#include "run.h"\n#include <stdio.h>\n#include <streampool/model.h>\n',
    "scripts/tool": SCRIPT,
}

# what is planted: path, text that is added at the end, part of the complaint
PLANTED = [
    ("include/streampool/model.h", "#include <cuda.h>", "include/streampool may not include cuda.h"),
    ("include/streampool/model.h", "#include <unistd.h>", "may not include unistd.h"),
    ("model/fit.c", "#include <pthread.h>", "model may not include pthread.h"),
    ("model/fit.c", "#include <stdatomic.h>", "model may not include stdatomic.h"),
    ("model/fit.c", "#include <uthash.h>", "model may not include uthash.h"),
    ("model/fit.c", '#include "base/lock.h"', "model may not include base/lock.h"),
    ("shim/base/config.c", "#include <cuda.h>", "shim/base may not include cuda.h"),
    ("shim/base/config.c", '#include "log.h"', "shim/base may not include log.h"),
    ("shim/driver/driver.c", "#include <streampool/model.h>", "may not include streampool/model.h"),
    ("shim/driver/driver.c", '#include "route/route.h"', "may not include route/route.h"),
    ("shim/report/report.c", '#include "driver/driver.h"', "may not include driver/driver.h"),
    ("shim/driver/driver.c", '#include "report/counters.h"', "may not include report/counters.h"),
    ("shim/route/on_memory.c", '#include "entry/start.h"', "may not include entry/start.h"),
    ("shim/route/on_memory.c", 'x = getenv("A");', "only config.c reads the environment"),
    ("shim/driver/driver.c", "if (unlikely(x)) {}", "branch hints"),
    ("shim/driver/driver.c", "x = __builtin_expect(x, 1);", "branch hints"),
    ("tools/plan/plan.c", '#include "track/layout.h"', "tools may not include track/layout.h"),
    ("tools/plan/plan.c", "#include <cuda.h>", "tools may not include cuda.h"),
    ("tests/model/fit.c", "\n" * 600, "lines, more than 600"),
]


class Tree(unittest.TestCase):
    """A tree of files in a temporary folder."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as target:
            target.write(text)

    def expect_one(self, violations, part):
        violations = list(violations)
        self.assertEqual(len(violations), 1, violations)
        self.assertIn(part, violations[0])


class Floors(Tree):
    def test_a_clean_tree_is_clean(self):
        self.assertEqual(list(check_floors.checks(self.root)), [])

    def test_each_planted_line_is_seen(self):
        for path, text, part in PLANTED:
            with self.subTest(path=path, text=text.strip()):
                self.write(path, CLEAN[path] + text + "\n")
                self.expect_one(check_floors.checks(self.root), part)
                self.write(path, CLEAN[path])

    def test_a_missing_licence_is_seen(self):
        self.write("model/fit.c", "\n" + LICENCE)
        self.expect_one(check_floors.checks(self.root), "model/fit.c:1: the first line is not")

    def test_a_script_without_licence_is_seen(self):
        self.write("scripts/tool", "#!/bin/sh\n")
        self.expect_one(check_floors.checks(self.root), "scripts/tool:1: no '# SPDX")

    def compile(self, path, text):
        source = os.path.join(self.root, "object.c")
        target = os.path.join(self.root, "build", path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([*CC.split(), "-c", "-o", target, source], check=True)

    def test_symbols_are_read_from_objects(self):
        shim, model = "shim/libshim_objs.a.p/a.o", "model/libm.a.p/a.o"
        build = os.path.join(self.root, "build")
        use = "void {0}(void); void test(void);\nvoid test(void) {{ {0}(); }}\n"
        self.expect_one(check_floors.check_symbols(build), "no objects")

        self.compile(shim, use.format("memcpy_of_ours"))
        self.compile(model, use.format("spm_free"))
        self.assertEqual(list(check_floors.check_symbols(build)), [])

        self.compile(shim, use.format("cuMemFree_v2"))
        self.expect_one(check_floors.check_symbols(build), "calls cuMemFree_v2 by name")

        self.compile("shim/libshim_objs.a.p/driver_lookup.c.o", use.format("cuMemFree_v2"))
        self.compile(shim, use.format("custom"))
        self.assertEqual(list(check_floors.check_symbols(build)), [])

        self.compile(model, use.format("pthread_mutex_lock"))
        self.expect_one(check_floors.check_symbols(build), "may not use pthread_mutex_lock")


class Paths(Tree):
    def test_a_clean_tree_is_clean(self):
        self.write("scripts/tool", SCRIPT + "ls /usr/local/cuda $root/made/x /tmp\n")
        self.assertEqual(list(check_paths.checks(self.root)), [])

    def test_the_pointer_of_a_linked_working_tree_is_none_of_ours(self):
        self.write(".git", "gitdir: /" + "home/me/tree/.git/worktrees/x\n")
        self.assertEqual(list(check_paths.checks(self.root)), [])

    def test_a_path_of_one_machine_is_seen(self):
        for path in ("/" + "home/me/cuda", "/" + "work/main", "-I/" + "root/include"):
            with self.subTest(path=path):
                self.write("scripts/tool", SCRIPT + path + "\n")
                self.expect_one(check_paths.checks(self.root), "is a path of one machine")


class Exports(unittest.TestCase):
    def test_names_must_match_both_ways(self):
        self.assertEqual(list(check_exports.check_names({"a"}, {"a"})), [])
        self.assertEqual(list(check_exports.check_names({"a", "log"}, {"a"})), ["exported, but in no list: log"])
        self.assertEqual(list(check_exports.check_names({"a"}, {"a", "b"})), ["in a list, but not exported: b"])

    def test_newer_symbols_of_the_c_library_are_seen(self):
        fine = "   U dlopen@GLIBC_2.2.5\n   U memcpy@GLIBC_2.14\n   U f@@GLIBC_2.28\n   w __cxa\n"
        self.assertEqual(list(check_exports.check_versions(fine)), [])
        self.assertEqual(len(list(check_exports.check_versions("   U dlopen@GLIBC_2.34\n"))), 1)
        self.assertEqual(len(list(check_exports.check_versions("   U _dl_sym@GLIBC_PRIVATE\n"))), 1)

    def test_needed_libraries_are_read(self):
        row = " 0x01 (NEEDED)  Shared library: [{}]\n"
        libc = row.format("libc.so.6")
        self.assertEqual(list(check_exports.check_needed(libc + row.format("libdl.so.2"))), [])
        self.assertEqual(len(list(check_exports.check_needed(libc + row.format("libcuda.so.1")))), 1)
        self.assertEqual(len(list(check_exports.check_needed(""))), 1)

    def test_a_stray_global_of_a_real_library_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = folder + "/a.c", folder + "/a.so"
            with open(source, "w", encoding="utf-8") as file:
                file.write("int init; static int own; int *f(void); int *f(void) { return &own; }\n")
            subprocess.run([*CC.split(), "-shared", "-fPIC", "-o", library, source], check=True)
            self.assertLessEqual({"init", "f"}, check_exports.exported(library))
            self.assertNotIn("own", check_exports.exported(library))


class Format(Tree):
    def test_a_badly_laid_out_file_is_seen(self):
        program = check_format.formatter()
        if not program:
            self.skipTest("no clang-format")
        shutil.copy(os.path.join(ROOT, ".clang-format"), self.root)
        for path in CLEAN:
            os.remove(os.path.join(self.root, path))
        self.write("model/a.c", "int f(void)\n{\n        return 0;\n}\n")
        self.assertEqual(list(check_format.checks(self.root, program)), [])
        self.write("model/b.c", "int f(void) {\n  return 0; }\n")
        self.expect_one(check_format.checks(self.root, program), "model/b.c")


class Tidy(Tree):
    def test_a_bug_is_seen(self):
        if not shutil.which("clang-tidy"):
            self.skipTest("no clang-tidy")
        shutil.copy(os.path.join(ROOT, ".clang-tidy"), self.root)
        path = os.path.join(self.root, "shim/a.c")
        command = f'[{{"directory": "{self.root}", "file": "shim/a.c", "command": "cc -c shim/a.c"}}]'
        self.write("compile_commands.json", command)
        self.write("shim/a.c", "int f(int x)\n{\n        return x;\n}\n")
        self.assertEqual(check_tidy.sources(self.root, self.root), [path])
        self.assertEqual(list(check_tidy.checks([path], self.root)), [])
        self.write("shim/a.c", "int f(int x)\n{\n        int y = 0;\n        return x / y;\n}\n")
        self.assertEqual(len(list(check_tidy.checks([path], self.root))), 1)


class Readme(Tree):
    TEXT = "a\n<!-- begin options -->\nold\n<!-- end options -->\nb\n"

    def test_a_stale_block_is_seen_and_filled(self):
        tables = {"options": "new\n"}.get
        self.assertEqual(update_readme.stale(self.TEXT, tables), ["options"])
        filled = update_readme.filled(self.TEXT, tables)
        self.assertEqual(filled, self.TEXT.replace("old", "new"))
        self.assertEqual(update_readme.stale(filled, tables), [])

    def test_a_page_is_bad_until_it_was_updated(self):
        page = os.path.join(self.root, "page.md")
        states = []
        with contextlib.redirect_stdout(io.StringIO()):
            for text, check in ((self.TEXT, True), (None, False), (None, True), ("no block\n", True)):
                if text:
                    self.write("page.md", text)
                states.append(update_readme.update(page, {"options": "new\n"}.get, check))
        self.assertEqual(states, [False, True, True, False])


class Results(unittest.TestCase):
    SYNTHESIS = "[\x1b[0;34m====\x1b[0m] Synthesis: Tested: 4 | Passing: 2 | Failing: 2 | Crashing: 1 \n"

    def test_criterion_programs_count_as_many(self):
        self.assertEqual(count_results.count_program("FAIL", self.SYNTHESIS), (2, 2, 0))

    def test_a_program_that_ends_badly_fails_whatever_it_printed(self):
        good = self.SYNTHESIS.replace("Passing: 2 | Failing: 2", "Passing: 4 | Failing: 0")
        self.assertEqual(count_results.count_program("OK", good), (4, 0, 0))
        for result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"):
            self.assertEqual(count_results.count_program(result, good), (4, 1, 0))
            self.assertEqual(count_results.count_program(result, ""), (0, 1, 0))

    def test_other_programs_count_as_one(self):
        self.assertEqual(count_results.count_program("OK", "hello"), (1, 0, 0))
        self.assertEqual(count_results.count_program("SKIP", ""), (0, 0, 1))
        self.assertEqual(count_results.count_program("EXPECTEDFAIL", self.SYNTHESIS), (1, 0, 0))


class Headers(Tree):
    def test_a_folder_needs_both_headers(self):
        self.write("inc/cuda.h", "#define CUDA_VERSION 12090\n")
        folder = os.path.join(self.root, "inc")
        self.assertFalse(find_cuda.holds_headers(folder))
        self.write("inc/cudaTypedefs.h", "")
        self.assertTrue(find_cuda.holds_headers(folder))
        self.assertEqual(find_cuda.version(folder), "12.9")


class Called(unittest.TestCase):
    TABLE = """
SP_HOOK(cuFooAsync, cuFooAsync_v2, 4000, _ptsz,
SP_HOOK(cuFooNew, cuFooNew, 4000, ,
SP_RETRY(cuFooLoad, cuFooLoad, 4000, ,
"""

    def test_a_handler_that_no_test_calls_is_seen(self):
        tests = ["OK(cu.FooNew(&foo));", "f(sp_on_cuFooAsync_v2);"]
        self.assertEqual(list(check_called.checks(self.TABLE, tests)), [])
        found = list(check_called.checks(self.TABLE, tests[:1]))
        self.assertEqual(found, ["cuFooAsync has a handler, and no test that calls it"])

    def test_words_are_no_calls(self):
        self.assertEqual(check_called.called('/* cuFoo()\n */ sim_fail("cuBar", 1); cuBaz_v2_ptsz(0);'), {"cuBaz"})


class Submissions(unittest.TestCase):
    """A small driver of which everything is known."""

    CUDA = """
        #define CUDA_VERSION 13000
        /* CUresult CUDAAPI cuOnlyInAComment(CUstream stream); */
        CUresult CUDAAPI cuFooAsync(CUdeviceptr to,
                                    CUstream hStream);
        CUresult CUDAAPI cuFooAsync_v2_ptsz(CUdeviceptr to, CUstream hStream);
        CUresult CUDAAPI cuMemcpyFoo(CUdeviceptr to);
        CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config);
        CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list);
        __CUDA_DEPRECATED CUresult CUDAAPI cuStreamQuery(CUstream hStream);
        CUresult CUDAAPI cuFooCreate(CUstream *phStream);
    """
    TYPES = """
        typedef CUresult (CUDAAPI *PFN_cuFooAsync_v4000)(CUdeviceptr_v1 to, CUstream hStream);
        typedef CUresult (CUDAAPI *PFN_cuFooAsync_v7000_ptsz)(CUdeviceptr_v2 to, CUstream hStream);
        typedef CUresult (CUDAAPI *PFN_cuMemcpyFoo_v3020)(CUdeviceptr_v2 to);
        typedef CUresult (CUDAAPI *PFN_cuMemcpyFoo_v7000_ptds)(CUdeviceptr_v2 to);
        typedef CUresult (CUDAAPI *PFN_cuLaunchKernelEx_v11060)(const CUlaunchConfig *config);
        typedef CUresult (CUDAAPI *PFN_cuLaunchCooperativeKernelMultiDevice_v9000)(void);
        typedef CUresult (CUDAAPI *PFN_cuStreamQuery_v2000)(CUstream hStream);
    """
    TABLE = """
SP_HOOK(cuLaunchKernelEx, cuLaunchKernelEx, 11060, ,
SP_HOOK(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 9000, ,
"""
    ROWS = """
SP_SUBMIT_PAIR(cuFooAsync, cuFooAsync_v2, 4000, 7000, COPY,
        (CUdeviceptr to, CUstream stream), (to, stream))
SP_SUBMIT_DEFAULT(cuMemcpyFoo, cuMemcpyFoo_v2, 3020, (CUdeviceptr to), (to))
"""
    OTHER = "SP_OTHER(cuFooCreate, PLAIN)\nSP_OTHER(cuStreamQuery, ASKS)\n"

    def check(self, **changed):
        texts = {"TABLE": self.TABLE, "ROWS": self.ROWS, "OTHER": self.OTHER, "CUDA": self.CUDA, "TYPES": self.TYPES}
        for name, (old, new) in changed.items():
            self.assertIn(old, texts[name])
            texts[name] = texts[name].replace(old, new)
        return list(check_submissions.checks(*texts.values()))

    def test_a_known_driver_is_known(self):
        self.assertEqual(self.check(), [])

    def test_a_function_with_a_stream_and_no_class_is_seen(self):
        new = "CUresult CUDAAPI cuNewAsync(int n, CUstream hStream);\n#define"
        self.assertEqual(self.check(CUDA=("#define", new)), ["cuNewAsync takes a stream and is in no class"])
        new = "CUresult CUDAAPI cuNew_ptsz(int n);\n#define"
        self.assertEqual(self.check(CUDA=("#define", new)), ["cuNew takes a stream and is in no class"])

    def test_a_copy_without_a_stream_is_seen(self):
        new = "CUresult CUDAAPI cuMemsetNew(int n);\n#define"
        self.assertEqual(self.check(CUDA=("#define", new)), ["cuMemsetNew is a copy, a set or a launch and is in no class"])

    def test_any_other_new_function_is_seen(self):
        new = "CUresult CUDAAPI cuNew(int n);\n#define"
        self.assertEqual(self.check(CUDA=("#define", new)), ["cuNew takes no stream, it seems, and is in no class"])

    def test_a_stream_is_never_plain(self):
        self.assertEqual(self.check(OTHER=("ASKS", "PLAIN")), ["cuStreamQuery takes a stream and is listed as PLAIN"])

    def test_a_missing_version_is_seen(self):
        row = "SP_SUBMIT(cuFooAsync, cuFooAsync_v2, 4000, , COPY,\n"
        found = self.check(ROWS=("SP_SUBMIT_PAIR(cuFooAsync, cuFooAsync_v2, 4000, 7000, COPY,\n", row))
        self.assertEqual(found, ["cuFooAsync of CUDA 7000_ptsz has no row"])

    def test_a_missing_function_is_seen(self):
        found = self.check(ROWS=("SP_SUBMIT_DEFAULT", "SP_RETRY"))
        self.assertEqual(found, ["cuMemcpyFoo is a copy, a set or a launch and is in no class"])

    def test_a_handler_that_is_gone_is_seen(self):
        found = self.check(TABLE=("SP_HOOK(cuLaunchKernelEx", "SP_RETRY(cuLaunchKernelEx"))
        self.assertEqual(found, ["cuLaunchKernelEx of CUDA 11060 has no row"])

    def test_a_row_of_nothing_is_seen(self):
        found = self.check(ROWS=("3020,", "3030,"))
        self.assertIn("the row cuMemcpyFoo of CUDA 3030 is of no function of the headers", found)
        self.assertEqual(self.check(ROWS=("SP_SUBMIT_DEFAULT", "SP_SUBMIT(cuLater, cuLater, 13010, , COPY,\nSP_SUBMIT_DEFAULT")), [])

    def test_a_row_for_no_function_is_seen(self):
        symbols = check_submissions.hooked(self.TABLE, self.ROWS)
        told = {"a.def": "#define RECORD_cuMemcpyFoo_v2(to) X\n#define USES_cuLaunchKernelEx X\n#define WORK X\n"}
        self.assertEqual(list(check_submissions.check_told(symbols, told)), [])
        told["b.def"] = "#define RECORD_cuMemcpyFoo(to) X\n"
        found = list(check_submissions.check_told(symbols, told))
        self.assertEqual(found, ["b.def has cuMemcpyFoo, which is no function with a hook"])

    def test_the_lists_are_in_order(self):
        found = self.check(OTHER=("SP_OTHER(cuFooC", "SP_OTHER(cuZ, ASKS)\nSP_OTHER(cuFooC"))
        self.assertEqual(found, ["other_calls.def is not sorted by name"])
        found = self.check(OTHER=("SP_OTHER(cuFooC", "SP_OTHER(cuFooAsync, ASKS)\nSP_OTHER(cuFooC"))
        self.assertEqual(found, ["cuFooAsync submits and does not"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
