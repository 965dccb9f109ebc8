#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetch headers -- CUDA driver headers of one version, from PyPI
#
#   scripts/fetch_headers.sh PACKAGE VERSION FOLDER
#
# NVIDIA publishes the runtime as Python packages, and the driver's headers are
# in them. Only the headers are kept, in FOLDER/include; nothing is installed.

set -euo pipefail

if [ $# != 3 ]; then
        echo "usage: scripts/fetch_headers.sh PACKAGE VERSION FOLDER" >&2
        exit 2
fi
package=$1 version=$2 folder=$3

[ -f "$folder/include/cuda.h" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work" "$package==$version"
python3 -m zipfile -e "$work"/*.whl "$work/wheel"

# Up to CUDA 12 the folder is nvidia/cuda_runtime/include, then nvidia/cu13/include.
include=$(dirname "$(find "$work/wheel/nvidia" -name cudaTypedefs.h | head -n 1)")
mkdir -p "$folder"
rm -rf "$folder/include"
mv "$include" "$folder/include"
