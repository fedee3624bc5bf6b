#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ensures that all dependencies of the build are there, and prints the folder of ggml + libllama + llama-common for
# CMAKE_PREFIX_PATH (empty: CMake finds them by itself). Returns at once if nothing is missing; needs the network only for
# missing parts.
#   get-deps.sh packages [MORE…]   only Debian packages, with MORE in addition
#   get-deps.sh portable   ggml for every processor of this architecture, not for this machine's
#   get-deps.sh vulkan     also ggml's library for GPUs with Vulkan drivers
#   get-deps.sh cuda [ARCHITECTURES]   also that for NVIDIA GPUs: of this machine, or for a list such as "80;90"; needs nvcc
#   WINNOW_SDIST=FILE      take llama-cpp-python's source package from FILE instead of pip
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=tools/ggml/source.sh
. "$here/ggml/source.sh"
readonly ggml_least=0.25  # as in the top CMakeLists.txt

# ---- Debian packages ---------------------------------------------------------------------------------------------------------------------

packages=(cmake ninja-build g++ make patch python3 python3-pip python3-venv python3-pytest python3-jsonschema python3-prometheus-client python3-jinja2
  libhwy-dev libeigen3-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libedit-dev libvalijson-dev
  libxxhash-dev libhiredis-dev libssl-dev libicu-dev libboost-dev prometheus-cpp-dev libgtest-dev libbenchmark-dev)

architecture=$(dpkg --print-architecture 2>/dev/null || true)

# For this architecture, even if the package is installed for others.
is_installed() {
  dpkg-query -W -f '${db:Status-Abbrev}${Architecture}\n' "$1" 2>/dev/null | grep -qE "^ii +(all|$architecture)$"
}

# Boost's headers, at least 1.81. Debian 12 has them only in a package with the version in its name.
readonly boost_least=1.81

has_boost() {
  local status has package
  while read -r status has package; do
    if [[ $status = ii && $package =~ ^libboost[0-9.]*-dev$ ]] && dpkg --compare-versions "$has" ge $boost_least; then return 0; fi
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Version} ${Package}\n' 'libboost*-dev' 2>/dev/null)
  return 1
}

# The package to install, according to apt's lists.
boost_package() {
  local candidate
  candidate=$(apt-cache policy libboost-dev | sed -n 's/^ *Candidate: //p')
  if dpkg --compare-versions "$candidate" ge $boost_least; then echo libboost-dev; return; fi
  apt-cache search --names-only '^libboost[0-9.]+-dev$' | cut -d' ' -f1 | sort -V | tail -n 1
}

missing_packages() {
  local p
  for p in "$@"; do
    case $p in
      ninja-build) command -v ninja >/dev/null ;;
      g++) command -v c++ >/dev/null ;;
      python3-venv) python3 -m ensurepip --version >/dev/null 2>&1 ;;
      python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
      python3-pytest) command -v pytest-3 >/dev/null || command -v pytest >/dev/null ;;
      libboost-dev) has_boost ;;
      python3-jsonschema | python3-prometheus-client | python3-jinja2 | lib* | *-dev | *-headers) is_installed "$p" ;;
      *) command -v "$p" >/dev/null ;;
    esac || echo "$p"
  done
}

# Asks for a password only on a terminal.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
}

# Fails with one line if something is missing and must not be installed.
install_packages() {
  local missing
  command -v dpkg >/dev/null || return 0  # not Debian: CMake will name what it does not find
  missing=$(missing_packages "$@" | xargs)
  [ -n "$missing" ] || return 0
  if ! as_root true 2>/dev/null; then
    say "missing Debian packages: $missing (install them, or run this as root)"
    return 1
  fi
  as_root apt-get update -qq >&2
  if [[ " $missing " = *" libboost-dev "* ]]; then missing=${missing/libboost-dev/$(boost_package)}; fi
  say "installing $missing"
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
}

# ---- ggml + libllama + llama-common ---------------------------------------------------------------------------------------------------------------------

# An installed CMake package is used if it is new enough.
installed() {
  local probe status=0
  probe=$(mktemp -d)
  cat >"$probe/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES C CXX)
find_package(ggml $ggml_least CONFIG REQUIRED)
find_package(llama CONFIG REQUIRED)
find_library(LLAMA_COMMON llama-common REQUIRED)
find_path(LLAMA_COMMON_HEADERS llama-common/chat.h REQUIRED)
END
  cmake -S "$probe" -B "$probe/build" >/dev/null 2>&1 || status=1
  rm -rf "$probe"
  return $status
}

# The kinds of processors for which ggml is built, the oldest first, which goes to lib/. The loader picks the best one of
# lib/glibc-hwcaps/ that the machine supports.
kinds() {
  if [ "$wanted" != portable ]; then echo native; return; fi
  case $(uname -m) in
    x86_64) echo "x86-64-v2 x86-64-v3 x86-64-v4" ;;
    *) echo baseline ;;
  esac
}

kind_options() {
  case $1 in
    native) echo -DGGML_NATIVE=ON ;;
    x86-64-v2) echo -DGGML_NATIVE=OFF -DGGML_SSE42=ON -DGGML_{AVX,AVX2,BMI2,FMA,F16C}=OFF ;;
    x86-64-v3) echo -DGGML_NATIVE=OFF -DGGML_{SSE42,AVX,AVX2,BMI2,FMA,F16C}=ON ;;
    x86-64-v4) echo -DGGML_NATIVE=OFF -DGGML_{SSE42,AVX,AVX2,BMI2,FMA,F16C,AVX512}=ON ;;
    *) echo -DGGML_NATIVE=OFF ;;
  esac
}

# build_kind KIND TARGET RPATH: in $work/KIND.
build_kind() {
  # shellcheck disable=SC2046
  CC=$cc CXX=$cxx cmake -S "$work/llama_cpp_python-$version/vendor/llama.cpp" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=ON $(kind_options "$1") -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_CXX_FLAGS=$flags" \
    -DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_CURL=OFF -DGIT_EXE=OFF "-DLLAMA_BUILD_COMMIT=$version-winnow" \
    "-DCMAKE_PROJECT_llama.cpp_INCLUDE=$here/ggml/common.cmake" \
    "-DCMAKE_INSTALL_PREFIX=$work/install" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DCMAKE_INSTALL_RPATH=$3" \
    >"$work/log" 2>&1 &&
    cmake --build "$work/$1" --target "$2" 2>&1 | watched "$work/log" || { tail -n 30 "$work/log" >&2; say "ggml could not be built"; exit 1; }
}

# llama.cpp installs this library, but neither its headers nor the chat templates that tests run; nor ggml the header for backends.
install_rest_of_common() {
  local source=$work/llama_cpp_python-$version/vendor/llama.cpp to=$work/install
  mkdir -p "$to/include/llama-common" "$to/share/llama-common"
  (cd "$source/common" && cp --parents ./*.h jinja/*.h "$to/include/llama-common")
  cp -r "$source/models/templates" "$to/share/llama-common"
  cp "$source/ggml/src/ggml-backend-impl.h" "$to/include"  # for the tests' own backend
}

build() {
  local to=$1 kind oldest newer
  read -r oldest newer <<<"$(kinds)"
  rm -rf "$cache"/build.*  # of a run that was killed: only one holds the lock
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fetch_source "$work"
  say "building ggml, libllama and llama-common with $cxx (3 to 6 minutes, once)"
  # shellcheck disable=SC2016
  build_kind "$oldest" install '$ORIGIN'
  install_rest_of_common
  for kind in $newer; do
    # shellcheck disable=SC2016
    build_kind "$kind" ggml-cpu '$ORIGIN/../..'
    mkdir -p "$work/install/lib/glibc-hwcaps/$kind"
    cp -L "$work/$kind/bin/libggml-cpu.so.0" "$work/install/lib/glibc-hwcaps/$kind"
  done
  mv "$work/install" "$to"
}

# ---- ggml's libraries for GPUs ------------------------------------------------------------------------------------------------------------

# Compute capabilities of this machine's GPUs, as in CMAKE_CUDA_ARCHITECTURES.
cuda_architectures() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    { grep -xE '[0-9]+\.[0-9]+' || true; } | tr -d . | sort -u | paste -sd ';'
}

# Sets backend_options.
choose_backend_options() {
  case $wanted in
    vulkan)
      install_packages libvulkan-dev glslc spirv-headers
      backend_options=(-DGGML_VULKAN=ON)
      ;;
    cuda)
      command -v nvcc >/dev/null || { say "there is no nvcc in PATH: install NVIDIA's CUDA toolkit"; exit 1; }
      local architectures=${1:-$(cuda_architectures)}
      [ -n "$architectures" ] ||
        { say "nvidia-smi finds no GPU here: name the architectures, as in get-deps.sh cuda \"80;90\""; exit 1; }
      backend_options=(-DGGML_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architectures" -DGGML_CUDA_NCCL=OFF)
      ;;
  esac
}

# build_backend LIBRARY: the module is loaded by a program that already has ggml's other libraries.
build_backend() {
  rm -rf "$cache"/build.*
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fetch_source "$work"
  local patch
  for patch in "$here/ggml/$wanted"/*.patch; do
    [ ! -e "$patch" ] || patch --quiet --strip=1 -d "$work/llama_cpp_python-$version/vendor/llama.cpp" <"$patch" >&2
  done
  say "building ggml's library for $wanted (vulkan: about 5 minutes on two cores; cuda: up to an hour; once)"
  # shellcheck disable=SC2016
  CC=$cc CXX=$cxx cmake -S "$work/llama_cpp_python-$version/vendor/llama.cpp" -B "$work/backend" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_CPU=OFF -DGGML_NATIVE=OFF -DGGML_CCACHE=OFF "${backend_options[@]}" \
    -DLLAMA_BUILD_{COMMON,TESTS,TOOLS,EXAMPLES,SERVER,APP}=OFF -DLLAMA_CURL=OFF -DGIT_EXE=OFF \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN' >"$work/log" 2>&1 &&
    cmake --build "$work/backend" --target "ggml-$wanted" 2>&1 | watched "$work/log" ||
    { tail -n 30 "$work/log" >&2; say "ggml's library for $wanted could not be built"; exit 1; }
  cp "$work/backend/bin/libggml-$wanted.so" "$1.part"
  mv "$1.part" "$1"
  made_with >"$1.made-with"
}

# True if a library for a backend is there, with this version's patches and options.
has_backend() { [ -e "$1" ] && [ "$(cat "$1.made-with" 2>/dev/null)" = "$(made_with)" ]; }
made_with() { { cat "$here/ggml/$wanted"/*.patch; declare -f choose_backend_options; } | sha256sum | cut -d' ' -f1; }

readonly wanted=${1:-native}
case $wanted in
  packages) more=("${@:2}") ;;
  portable | native | vulkan | cuda) more=() ;;
  *) say "get-deps.sh has no '$wanted': it takes packages, portable, vulkan, cuda or nothing"; exit 2 ;;
esac
install_packages "${packages[@]}" "${more[@]}"
install_packages libdnnl-dev || say "going on without oneDNN: long prompts will be slower"
if [ "$wanted" = packages ]; then exit 0; fi
if [ "$wanted" != portable ] && installed; then
  [[ $wanted != vulkan && $wanted != cuda ]] || say "ggml is installed: its library for $wanted must come from there"
  exit 0
fi
choose_compiler
prefix=$(folder)
backend=
if [[ $wanted = vulkan || $wanted = cuda ]]; then backend=$prefix/lib/libggml-$wanted.so; fi
if [ ! -d "$prefix" ] || { [ -n "$backend" ] && ! has_backend "$backend"; }; then
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
fi
if [ ! -d "$prefix" ]; then
  if needs_other_compiler && ! install_packages clang-16; then say "going on without clang-16: long prompts will be slower"; fi
  choose_compiler
  prefix=$(folder)
  [ -d "$prefix" ] || build "$prefix"
fi
if [ -n "$backend" ] && ! has_backend "$backend"; then
  choose_backend_options "${@:2}"
  build_backend "$backend"
fi
echo "$prefix"
