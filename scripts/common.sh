# SPDX-License-Identifier: Apache-2.0
#
# Common -- what setup, demo and test share; sourced by them, never run
#
# A Meson that scripts/setup had to fetch is in .venv, and wins over the system's.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

use_own_meson() {
        if [ -x "$root/.venv/bin/meson" ]; then
                export PATH="$root/.venv/bin:$PATH"
        fi
}
use_own_meson

# set_up OPTION...: scripts/setup, which may have fetched a Meson just now.
set_up() {
        scripts/setup "$@"
        use_own_meson
}

say() {
        printf '\n== %s\n' "$*"
}

# configure FOLDER OPTION...: make a build folder, or make it again if the
# options or the compiler changed. Ninja notices by itself when a file did.
configure() {
        local folder=$1 wanted
        shift
        wanted="CC=${CC:-} $*"
        if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/.configured" 2>/dev/null)" = "$wanted" ]; then
                return 0
        fi
        rm -rf "$folder"
        mkdir -p "$folder"
        if ! meson setup "$@" "$folder" "$root" >"$folder/.setup-log" 2>&1; then
                tail -n 20 "$folder/.setup-log" >&2
                return 1
        fi
        printf '%s\n' "$wanted" >"$folder/.configured"
}

# build FOLDER [TARGET...]: quiet unless it fails.
build() {
        local folder=$1
        shift
        if ! ninja -C "$folder" "$@" >"$folder/.build-log" 2>&1; then
                grep -v '^\[[0-9]*/[0-9]*\] [A-Z]' "$folder/.build-log" >&2 || cat "$folder/.build-log" >&2
                return 1
        fi
}
