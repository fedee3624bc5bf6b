#!/usr/bin/env bash
# Runs compare.py in a Python environment of its own, made in the user's cache when it is first needed. Arguments are compare.py's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sha256sum "$here/requirements.txt" | cut -c 1-12)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/winnow/oracle-$version
if [ ! -f "$environment/ready" ]; then
  echo "installing kvpress and what it needs (several GB) into $environment" >&2
  python3 -m venv --clear "$environment"
  "$environment/bin/pip" install --quiet -r "$here/requirements.txt"
  touch "$environment/ready"
fi
exec "$environment/bin/python" "$here/compare.py" "$@"
