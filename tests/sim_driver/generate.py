#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generate -- C and linker input made from exports.tsv

exports.tsv lists what the driver exports: the name cuGetProcAddress knows a
function by, the CUDA version it came with, the per-thread suffix and the
exported symbol. A base of "-" means exported, but unknown to cuGetProcAddress.

  generate.py table exports.tsv out.c      weak stubs, look-up table, twins
  generate.py map AGE exports.tsv out.map  version script of a driver that old
"""

import sys

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Generated from exports.tsv by generate.py. */\n\n"


def read(path):
    with open(path, encoding="ascii") as source:
        lines = source.read().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    symbols = [row[3] for row in rows]
    if len(set(symbols)) != len(symbols):
        sys.exit("exports.tsv: a symbol is listed twice")
    return rows


def table(rows):
    text = [HEAD, '#include "exports.h"\n\n']
    for index, (_, _, _, symbol) in enumerate(rows):
        text.append(f"SIM_STUB({symbol}, {index})\n")
    text.append("\nconst struct sim_export sim_exports[] = {\n")
    for base, introduced, suffix, symbol in rows:
        base = "NULL" if base == "-" else f'"{base}"'
        per_thread = "false" if suffix == "-" else "true"
        text.append(
            f"        SIM_ROW({base}, {introduced}, {per_thread}, {symbol}),\n"
        )
    text.append("};\n\n")
    text.append(f"const int sim_export_count = {len(rows)};\n")
    return "".join(text)


def script(rows, age):
    names = [row[3] for row in rows if int(row[1]) <= age]
    lines = "".join(f"                {name};\n" for name in names)
    return f"{{\n        global:\n{lines}                sim_*;\n        local: *;\n}};\n"


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "table":
        text = table(read(arguments[1]))
    elif len(arguments) == 4 and arguments[0] == "map":
        text = script(read(arguments[2]), int(arguments[1]))
    else:
        sys.exit(__doc__)
    with open(arguments[-1], "w", encoding="ascii") as target:
        target.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
