#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try-root.sh SUITE COMMAND: runs COMMAND on a bare system: a fresh root of a Debian suite (bookworm, trixie, …) with only
# git, make, and a clean clone of the committed state. Prints the time that it took. Needs root, and debootstrap at first.
#   demo, test   make demo, make test
#   dist         installs each package of build/dist in a separate root without compilers, and asks its server
#   other        a shell command, run in the clone; files in its build/dist are copied to this checkout
# The network settings (apt's sources, proxies, pip's index) are taken from this system, but neither caches nor a
# compiler.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
readonly here cache=${XDG_CACHE_HOME:-$HOME/.cache}/winnow

say() { echo "$*" >&2; }

if [ $# != 2 ]; then say "try-root.sh SUITE COMMAND: COMMAND is demo, test, dist, or one of the shell"; exit 2; fi
readonly suite=$1 wanted=$2
[[ $suite =~ ^[a-z]+$ ]] || { say "'$suite' is no suite of Debian"; exit 2; }
[ "$(id -u)" = 0 ] || { say "try-root.sh must run as root, which may change roots"; exit 1; }

# ---- The root ---------------------------------------------------------------------------------------------

# Lines "ADDRESS RELEASE COMPONENT": this system's own package sources, for the wanted suite. None on systems other than
# Debian.
sources() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  grep -qx 'ID=debian' /etc/os-release || return 0
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    sed -n "s/^\([^ ]* \)$codename\(-security\|-updates\|\) main$/\1$suite\2 main/p"
}

# Runs a command in new namespaces, so that its mounts and processes end with it.
apart() { unshare --mount --pid --fork --kill-child "$@"; }

# Makes the root's archive, once.
make_archive() {
  local mirror proxy root=$work/new
  command -v debootstrap >/dev/null || { say "debootstrap is missing: apt-get install debootstrap"; exit 1; }
  say "making a root of $suite"
  mirror=$(sources | head -n 1 | cut -d' ' -f1)
  proxy=$(apt-config shell p Acquire::http::Proxy | cut -d"'" -f2)
  # shellcheck disable=SC2086
  http_proxy=${http_proxy:-$proxy} apart debootstrap --variant=minbase --include=git,make "$suite" "$root" $mirror >"$work/log" ||
    { tail -n 20 "$work/log" >&2; exit 1; }
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  tar cf "$archive.part.$$" -C "$root" .
  mv "$archive.part.$$" "$archive"
  rm -rf --one-file-system "$root"
}

# Unpacks a root into a folder, and copies the network settings.
unpack() {
  local root=$1 certificates found
  mkdir "$root"
  tar xf "$archive" -C "$root"
  found=$(sources)
  if [ -n "$found" ]; then sed 's/^/deb /' <<<"$found" >"$root/etc/apt/sources.list"; fi
  apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' >"$root/etc/apt/apt.conf.d/90host" || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  if [ -f /etc/pip.conf ]; then cp -L /etc/pip.conf "$root/etc/"; fi
  certificates=${PIP_CERT:-$(python3 -m pip config get global.cert 2>/dev/null || true)}
  if [ -f "$certificates" ]; then cp -L "$certificates" "$root/etc/pip-certificates"; fi
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # no service starts
  chmod +x "$root/usr/sbin/policy-rc.d"
}

# This system's environment variables for the network, as NAME=VALUE.
network() {
  env -0 | grep -zE '^((https?|no)_proxy|HTTPS?_PROXY|NO_PROXY|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|PROXY|DEFAULT_TIMEOUT))=' || true
  if [ -f "$1/etc/pip-certificates" ]; then printf 'PIP_CERT=/etc/pip-certificates\0'; fi
}

# in_root ROOT COMMAND: runs a shell command in the root's /root/winnow, and prints the time that it took.
in_root() {
  local root=$1 variables status=0
  mapfile -d '' variables < <(network "$root")
  TIMEFORMAT="$suite, $2: %R s, of which processors worked %U s and the system %S s"
  # shellcheck disable=SC2016
  time apart bash -euc '
    root=$1
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${@:3}" \
      bash -euo pipefail -c "cd /root/winnow; $2"' - "$root" "$2" "${variables[@]}" || status=$?
  return $status
}

# ---- The commands -----------------------------------------------------------------------------------------

work=$(mktemp -d "${TMPDIR:-/var/tmp}/winnow-root.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
readonly archive=$cache/root-$suite.tar
mkdir -p "$cache"
[ -f "$archive" ] || make_archive

# In the checkout's folder, for a clean clone.
run_in_clone() {
  unpack "$work/root"
  git clone --quiet --no-hardlinks "$here" "$work/root/root/winnow"
  in_root "$work/root" "$1"
  if [ -d "$work/root/root/winnow/build/dist" ]; then
    mkdir -p "$here/build"
    rm -rf "$here/build/dist"
    cp -r "$work/root/root/winnow/build/dist" "$here/build/dist"
  fi
}

try_packages() {
  local kind model
  [ -f "$here/build/dist/SHA256SUMS" ] || { say "build/dist has no packages: make dist, or try-root.sh bookworm 'make dist'"; exit 1; }
  model=$("$here/tools/get-model.sh")
  for kind in deb tar.gz wheel Containerfile; do
    unpack "$work/$kind"
    mkdir "$work/$kind/root/winnow"
    cp -r "$here/build/dist" "$here/packaging/try.sh" "$work/$kind/root/winnow/"
    cp "$model" "$work/$kind/srv/model.gguf"
    in_root "$work/$kind" "./try.sh $kind"
    rm -rf --one-file-system "${work:?}/$kind"
  done
}

case $wanted in
  demo | test) run_in_clone "make $wanted" ;;
  dist) try_packages ;;
  *) run_in_clone "$wanted" ;;
esac
