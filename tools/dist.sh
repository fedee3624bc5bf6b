#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages in build/dist: a wheel, a .deb, a tar.gz, a Containerfile that installs the .deb, and their
# checksums.
#
# All come from one build in build/portable, which pip makes for the wheel; CPack packs the rest. They need a C library
# that is not older than this machine's, so releases are made on the oldest supported Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly out=build/dist work=build/dist.work tree=build/portable

tools/get-deps.sh packages python3-dev dpkg-dev file
rm -rf $out $work
mkdir -p $out $work
python=$(tools/python-with.sh tools/dist-requirements.txt -c 'import sys; print(sys.executable)')
PATH=$(dirname "$python"):$PATH

# quiet NAME COMMAND…: shows a command's output only if it fails.
quiet() {
  local log=$work/$1.log
  "${@:2}" >"$log" 2>&1 || { tail -n 50 "$log" >&2; echo "$1 failed" >&2; exit 1; }
}

echo "building winnow for any processor of this architecture" >&2
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
quiet wheel "$python" -m pip wheel --no-deps --no-build-isolation --wheel-dir $work . -C build-dir=$tree -C cmake.define.WINNOW_PORTABLE=ON \
  -C 'build.targets=winnow_python_stub;winnow_command;winnow_library'
quiet auditwheel auditwheel repair --wheel-dir $out $work/*.whl
quiet cpack cpack --config $tree/CPackConfig.cmake -B "$PWD/$work"
mv $work/*.deb $work/*.tar.gz $out
sed "s/@DEB@/$(basename $out/*.deb)/" packaging/Containerfile.in >$out/Containerfile
cd $out
sha256sum -- * >SHA256SUMS
