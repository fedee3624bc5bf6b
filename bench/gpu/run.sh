#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and benchmarks that need a GPU, for a bare machine: the programs are in FOLDER (see docs/gpu.md); nothing is
# installed or built.
#   run.sh right FOLDER RECORDS     checks the kernels, alone and under compute-sanitizer, and the engine on the GPU: every
#                                   architecture against llama.cpp on the CPU, every method against the CPU
#   run.sh figures FOLDER RECORDS   measures their speed, beside PyTorch's attention, and that of a model with random
#                                   weights in the shape of Llama-3.2-1B, beside llama.cpp's
# Each part has a time limit and writes RECORDS/PART.log while it runs. A failing part does not stop the others.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wanted=${1:?right or figures} folder=${2:?folder of the programs} records=${3:?folder for the records}
mkdir -p "$records"
export LD_LIBRARY_PATH=$folder WINNOW_TEST_DEVICE=cuda
failed=0

# part NAME SECONDS COMMAND...
part() {
  local name=$1 limit=$2 begin=$SECONDS status=0
  shift 2
  timeout --kill-after=5 "$limit" "$@" >"$records/$name.log" 2>&1 || status=$?
  case $status in
    0) echo "$name: done in $((SECONDS - begin)) s" ;;
    124 | 137) echo "$name: stopped after $limit s" ;;
    *) echo "$name: failed ($status) after $((SECONDS - begin)) s"; tail -n 5 "$records/$name.log" ;;
  esac
  [ $status = 0 ] || failed=1
}

versions() {
  nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.sm,clocks.max.sm,power.limit --format=csv
  nvcc --version | tail -n 2
  uname -r
  nproc
}

sanitize() {
  local tool=$1
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return 0; }
  compute-sanitizer --tool "$tool" --error-exitcode 9 "$folder/device_test"
}
export -f versions sanitize
export folder

case $wanted in
  right)
    part versions 10 bash -c versions
    part kernels 90 "$folder/device_test" --gtest_also_run_disabled_tests
    part devices 10 "$folder/winnow" devices
    part architectures 60 "$folder/device_parity_test" --gtest_filter='*Parity*'
    part prompts 60 "$folder/device_prefill_test"
    part steps 60 "$folder/device_decode_test"
    part methods 90 "$folder/device_session_test"
    for tool in memcheck racecheck synccheck initcheck; do part "$tool" 40 bash -c "sanitize $tool"; done
    ;;
  figures)
    part versions 10 bash -c versions
    part kernel_times 90 "$folder/kernel_times"
    part peers 90 python3 "$here/peers.py"
    part model 60 "$folder/winnow_random_model" llama-3.2-1b f16 "$records/model.gguf"
    part decode 80 "$folder/winnow" bench -m "$records/model.gguf" --device cuda -p 0 -n 64 -d 0,8192 -b 1,8 -r 3 \
      --engine winnow,llama.cpp
    part prefill 80 "$folder/winnow" bench -m "$records/model.gguf" --device cuda -p 8192 -n 0 -r 3 \
      --kv full,snapkv,h2o,ems --budget 1024 --engine winnow,llama.cpp
    rm -f "$records/model.gguf"
    ;;
  *)
    echo "run.sh takes right or figures" >&2
    exit 2
    ;;
esac
exit $failed
