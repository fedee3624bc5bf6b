#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Python with kvpress, PyTorch and what they need, in an environment of its own that is made in the user's cache when it is first needed.
# Arguments are Python's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sha256sum "$here/peers-requirements.txt" | cut -c 1-12)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/winnow/peers-$version
if [ ! -f "$environment/ready" ]; then
  echo "installing kvpress and what it needs (several GB) into $environment" >&2
  python3 -m venv --clear "$environment"
  "$environment/bin/pip" install --quiet --require-hashes -r "$here/peers-requirements.txt"
  touch "$environment/ready"
fi
exec "$environment/bin/python" "$@"
