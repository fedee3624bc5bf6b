#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# notices.sh LIBRARY…: prints the license terms for a package: winnow's, ggml's, and those of the Debian packages of the
# LIBRARYs and of header-only libraries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

section() { printf '\n==== %s ====\n\n' "$1"; cat "$2"; }

echo "winnow and what is in its packages, each with its terms. Texts that are named as /usr/share/common-licenses/… are Debian's."
section winnow "$here/../LICENSE"
section "ggml, libllama and llama-common" "$here/ggml-license.txt"
owners=$(for library in "$@"; do dpkg-query -S "*/$(basename "$(readlink -f "$library")")"; done | cut -d: -f1)
for package in $owners nlohmann-json3-dev libeigen3-dev libcli11-dev libvalijson-dev; do
  if [ -f "/usr/share/doc/$package/copyright" ]; then echo "$package"; fi
done | sort -u | while read -r package; do section "$package" "/usr/share/doc/$package/copyright"; done
