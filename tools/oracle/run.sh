#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs compare.py with kvpress. Arguments go to compare.py.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../peers-python.sh" "$here/compare.py" "$@"
