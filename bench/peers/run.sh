#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh speed|needles|long_answers …: runs speed.py, needles.py or long_answers.py beside PyTorch and kvpress. Other arguments are the program's.
here=$(cd "$(dirname "$0")" && pwd)
program=$here/${1:?speed, needles or long_answers}.py
shift
PYTHONPATH="$here/../../tools/oracle" exec "$here/../../tools/peers-python.sh" "$program" "$@"
