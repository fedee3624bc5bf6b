#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Python with kvpress, PyTorch and what they need (several GB when it is first run). Arguments are Python's.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/python-with.sh" "$here/peers-requirements.txt" "$@"
