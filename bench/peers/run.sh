#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh speed|needles|long_answers …: runs the program of that name with PyTorch and kvpress. Other arguments go to
# the program.
# long_answers needs the Python package, such as PYTHONPATH=build/release/python.
here=$(cd "$(dirname "$0")" && pwd)
program=$here/${1:?speed, needles or long_answers}.py
shift
PYTHONPATH="$here/../../tools/oracle${PYTHONPATH:+:$PYTHONPATH}" exec "$here/../../tools/peers-python.sh" "$program" "$@"
