#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs speed.py beside PyTorch and kvpress. Arguments are speed.py's.
here=$(cd "$(dirname "$0")" && pwd)
PYTHONPATH="$here/../../tools/oracle" exec "$here/../../tools/peers-python.sh" "$here/speed.py" "$@"
