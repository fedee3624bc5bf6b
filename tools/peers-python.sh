#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Python with kvpress, PyTorch and their dependencies (downloads several GB at first). Arguments go to Python.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/python-with.sh" "$here/peers-requirements.txt" "$@"
