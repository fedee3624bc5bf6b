#!/usr/bin/env bash
# Runs compare.py beside kvpress. Arguments are compare.py's.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../peers-python.sh" "$here/compare.py" "$@"
