#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fetch-package.sh NAME==VERSION SHA256 FOLDER: downloads the file of a Python package that has this checksum, and prints
# its path. No code of the package runs: pip compares the checksum first, and if it asks a source package for metadata,
# the build backend below answers.
set -euo pipefail
readonly package=$1 sha256=$2 folder=$3

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/scikit_build_core"
cat >"$work/scikit_build_core/build.py" <<END
import pathlib

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name, version = "$package".replace("-", "_").split("==")
    folder = pathlib.Path(metadata_directory) / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder.name
END
echo "$package --hash=sha256:$sha256" >"$work/requirements.txt"

for attempt in 1 2 3; do
  PYTHONPATH=$work python3 -m pip download --quiet --no-deps --no-build-isolation --require-hashes -r "$work/requirements.txt" \
    -d "$work/file" >&2 && break
  [ "$attempt" = 3 ] && { echo "$package could not be fetched; run this again" >&2; exit 1; }
  sleep 2
done
file=$(ls "$work/file")
mv "$work/file/$file" "$folder/$file"
echo "$folder/$file"
