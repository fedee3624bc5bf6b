#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh speed|needles …: runs speed.py or needles.py beside PyTorch and kvpress. Other arguments are the program's.
here=$(cd "$(dirname "$0")" && pwd)
program=$here/${1:?speed or needles}.py
shift
PYTHONPATH="$here/../../tools/oracle" exec "$here/../../tools/peers-python.sh" "$program" "$@"
