#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and benchmarks that need a GPU, for a bare machine with python3, PyTorch and CUDA's libraries: nothing is
# installed, built or fetched.
#   run.sh CALL CARRIED RECORDS [PART,…]   CARRIED: the archive that carry.sh made, or a folder where it was unpacked
# Calls, each of at most seven minutes:
#   right     checks the kernels, alone and under compute-sanitizer, and the engine on the GPU: every architecture
#             against llama.cpp on the CPU, every method against the CPU
#   figures   speed of a model with random weights in the shape of Llama-3.1-8B in bf16: decoding one sequence and
#             reading, up to 32,768 tokens, beside llama.cpp, transformers and kvpress
#   long      the same at 131,008 tokens
#   batches   decoding 8 and 24 sequences, the same model in Q4_K_M, and the kernels beside PyTorch's
# Each part has a limit in seconds, and gets no more than what is left of its call; a part for which nothing is left is
# not begun. A failing part does not stop the others. RECORDS gets PART.log, PART.json of what was measured, and of all
# calls together parts.txt, records.jsonl and table.md. Parts that are named are the only ones to run.
#   WINNOW_MODELS=FOLDER   keeps the models there for later calls (21 GB); otherwise they are removed
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wanted=${1:?right, figures, long or batches} carried=${2:?archive of the programs} records=${3:?folder for the records}
only=,${4:-},
readonly seconds_of_call=400  # and ten for a part that does not stop when it is told to
mkdir -p "$records"
failed=0
export WINNOW_TEST_DEVICE=cuda

scratch=$(mktemp -d "${TMPDIR:-/tmp}/winnow.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
models=${WINNOW_MODELS:-$scratch}
if [ -d "$carried" ]; then
  folder=$(cd "$carried" && pwd)
else
  folder=$scratch/carried
  python3 -m tarfile -e "$carried" "$folder" || exit 1
fi

# CUDA's libraries are those of the toolkit or, if there is none, of PyTorch.
cuda=$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/../lib64
compgen -G "$cuda/libcublas.so.*" >/dev/null ||
  cuda=$(python3 -c 'import glob, nvidia; print(":".join(d for p in nvidia.__path__ for d in glob.glob(p + "/*/lib")))' 2>/dev/null)
readonly libraries=$folder:$cuda

# Runs a carried program. Python must not get the carried libraries.
own() { LD_LIBRARY_PATH=$libraries "$folder/$1" "${@:2}"; }

# limited NAME SECONDS OUTPUT COMMAND...: errors go to RECORDS/NAME.log.
limited() {
  local name=$1 limit=$2 output=$3 begin=$SECONDS status=0 left=$((seconds_of_call - SECONDS))
  shift 3
  if [ $left -lt 5 ]; then say "$name: not begun, no time is left"; failed=1; return 0; fi
  if [ "$limit" -gt $left ]; then limit=$left; fi
  rm -f "$output" "$records/$name.log"
  # A benchmark that is interrupted prints what it has measured.
  timeout --signal=INT --kill-after=10 "$limit" bash -c '"$@"' bash "$@" >>"$output" 2>>"$records/$name.log" || status=$?
  if [ $status = 0 ]; then say "$name: done in $((SECONDS - begin)) s"; return 0; fi
  failed=1
  if [ $((SECONDS - begin)) -ge "$limit" ]; then say "$name: stopped after $limit s"; else say "$name: failed ($status) after $((SECONDS - begin)) s"; fi
  tail -n 5 "$records/$name.log"
}
say() { echo "$*" | tee -a "$records/parts.txt"; }
chosen() { [[ $only = ,, || $only = *,$1,* ]]; }
part() { if chosen "$1"; then limited "$1" "$2" "$records/$1.log" "${@:3}"; fi; }
measure() { if chosen "$1"; then limited "$1" "$2" "$records/$1.json" "${@:3}"; fi; }

versions() {
  nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.sm,clocks.max.sm,power.limit --format=csv
  nvcc --version | tail -n 2
  uname -r
  nproc
  df -h "$scratch"
  own winnow --version
}

sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return 0; }
  LD_LIBRARY_PATH=$libraries compute-sanitizer --tool "$1" --error-exitcode 9 "$folder/device_test"
}
export -f versions sanitize own
export folder libraries scratch

rates() {
  measure copy 20 own kernel_times copy
  measure product 40 python3 "$here/peers.py" product
}

# Makes a model of random weights unless it is there.
need_model() {
  if [ -e "$models/$1.gguf" ]; then return 0; fi
  if [ "$1" != bf16 ]; then need_model bf16; fi
  limited "model_$1" 100 "$records/model_$1.log" make_model "$1"
}
make_model() {
  local from=()
  if [ "$1" != bf16 ]; then from=(--from "$models/bf16.gguf"); fi
  rm -f "$models/$1.part"
  own winnow_random_model llama-3.1-8b "$1" "$models/$1.part" "${from[@]}" && mv "$models/$1.part" "$models/$1.gguf"
}
export -f make_model
export models records

# bench NAME SECONDS MODEL OPTIONS...
bench() {
  if ! chosen "$1"; then return 0; fi
  need_model "$3"
  measure "$1" "$2" own winnow bench -m "$models/$3.gguf" --device "$WINNOW_TEST_DEVICE" -o json "${@:4}"
}

# peer NAME SECONDS OPTIONS...: transformers or kvpress.
peer() { PYTHONPATH=$folder/peers measure "$1" "$2" python3 "$here/peers_end_to_end.py" "${@:3}"; }

case $wanted in
  right)
    part versions 10 versions
    part kernels 90 own device_test --gtest_also_run_disabled_tests
    part devices 10 own winnow devices
    part architectures 60 own device_parity_test --gtest_filter='*Parity*'
    part prompts 60 own device_prefill_test
    part steps 60 own device_decode_test
    part methods 90 own device_session_test
    for tool in memcheck racecheck synccheck initcheck; do part "$tool" 40 sanitize "$tool"; done
    exit $failed
    ;;
  figures)
    part versions 10 versions
    rates
    bench decode 60 bf16 -p 0 -n 64 -d 0 -r 5 --kv full --engine winnow,llama.cpp,llama.cpp-fa
    bench prefill 130 bf16 -p 8192,32768 -n 0 -r 2 --kv full,snapkv,h2o,ems,ada-snapkv --budget 1024 --engine winnow,llama.cpp-fa
    bench decode_32k 80 bf16 -p 0 -n 64 -d 32768 -r 3 --kv full,snapkv --budget 1024 --engine winnow,llama.cpp-fa
    peer transformers 60 transformers --prompts 8192,32768 --depths 0,32768
    peer snapkv 50 snapkv --prompts 32768 --depths 32768
    peer h2o 40 h2o --prompts 8192 --runs 2
    peer ada-snapkv 40 ada-snapkv --prompts 32768 --runs 2
    ;;
  long)
    # Reading 131,008 tokens takes long, so it is measured once: as the depth before decoding, after the same with 8,192
    # tokens. With 64 new ones this fills the context of 131,072.
    part versions 10 versions
    rates
    bench long 190 bf16 -p 0 -n 64 -d 8192,131008 -r 2 --kv full,snapkv,h2o,ems --budget 1024 --engine winnow
    bench long_llama 110 bf16 -p 0 -n 64 -d 8192,131008 -r 2 --kv full --engine llama.cpp-fa
    peer long_transformers 80 transformers --prompts 131008 --depths 131008 --runs 1
    peer long_snapkv 80 snapkv --prompts 131008 --depths 131008 --runs 1
    ;;
  batches)
    # 24 full caches of 32,768 tokens take 96 GiB of the GPU's memory and of the host's.
    part versions 10 versions
    rates
    bench batch_24_snapkv 50 bf16 -p 0 -n 64 -d 32768 -b 24 -r 3 --kv snapkv --budget 1024 --engine winnow
    bench batch_8 80 bf16 -p 0 -n 64 -d 32768 -b 8 -r 3 --kv full,snapkv --budget 1024 --engine winnow
    bench batch_8_llama 60 bf16 -p 0 -n 64 -d 32768 -b 8 -r 3 --kv full --engine llama.cpp-fa
    bench decode_q4_k_m 50 q4_k_m -p 0 -n 64 -d 0 -r 5 --kv full --engine winnow,llama.cpp,llama.cpp-fa
    bench batch_24 100 bf16 -p 0 -n 64 -d 32768 -b 24 -r 2 --kv full --engine winnow
    peer batch_transformers 60 transformers --depths 32768 --batches 8,24 --runs 1
    peer compiled 90 compiled --depths 0,32768
    measure kernel_times 60 own kernel_times
    measure kernel_peers 60 python3 "$here/peers.py"
    ;;
  *)
    echo "run.sh takes right, figures, long or batches" >&2
    exit 2
    ;;
esac
python3 "$here/table.py" "$records" || failed=1
exit $failed
