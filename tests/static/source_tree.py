# SPDX-License-Identifier: Apache-2.0
"""Source tree -- which files the static checks read

A file is named by its path from the root of the tree, with slashes.
"""

import os

FOLDERS = ("include", "model", "shim", "tools", "tests", "scripts", ".ci")
TOP = ("meson.build", "meson_options.txt", ".clang-format", ".clang-tidy", ".editorconfig")
C_ENDINGS = (".c", ".h", ".S", ".def")
CODE_ENDINGS = C_ENDINGS + (".py", ".sh", ".map")


def files(root):
    """Every file of the project, build folders and caches left out. In a linked working tree .git is
    a file too, and git's own."""
    found = [name for name in sorted(os.listdir(root)) if os.path.isfile(os.path.join(root, name))]
    found = [name for name in found if name != ".git"]
    for top in FOLDERS:
        for folder, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
            for name in sorted(names):
                if not name.endswith(".pyc"):
                    found.append(os.path.relpath(os.path.join(folder, name), root))
    return found


def lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        return source.read().split("\n")


def is_script(root, path):
    """A program without an ending: the first line tells."""
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(root, path), "rb") as source:
        return source.read(2) == b"#!"


def is_code(root, path):
    named = path.endswith(CODE_ENDINGS) or os.path.basename(path) in TOP
    return named or is_script(root, path)
