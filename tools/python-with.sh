#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python-with.sh NAME-requirements.txt …: runs Python with these packages, in a separate environment that is made in the
# user's cache when it is first needed. Other arguments go to Python. Exits with 77 (a skipped test) if the packages are
# not available.
set -euo pipefail
requirements=$1
shift
name=$(basename "$requirements" -requirements.txt)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/winnow
environment=$cache/$name-$(sha256sum "$requirements" | cut -c 1-12)
mkdir -p "$cache"
exec 9>"$cache/$name-lock"
flock 9
if [ ! -f "$environment/ready" ]; then
  echo "installing what $name needs into $environment" >&2
  python3 -m venv --clear "$environment" >&2 || { echo "$name: skipped, an environment for it could not be made" >&2; exit 77; }
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$requirements" >"$environment/log" 2>&1 ||
    { tail -n 1 "$environment/log" >&2; echo "$name: skipped, pip could not get its packages" >&2; exit 77; }
  touch "$environment/ready"
fi
flock -u 9
exec 9>&-
exec "$environment/bin/python" "$@"
