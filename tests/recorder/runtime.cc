// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime without a GPU. Memory is the host's, filled with zeros, kernels do nothing, and each call that matters
// for the order of work is a line of the file WINNOW_RECORD: what, stream, and more (records.py reads them).
//   WINNOW_RECORD_ERROR=N   there is no device: counting them fails with this error
//   WINNOW_RECORD_FAIL=N    the Nth allocation fails, and all after it
// Functions that are missing here, and need no result, are generated (stubs.py).
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kMemory = std::size_t{80} << 30U;

struct Recorder {
  std::mutex mutex;
  std::FILE* file = std::getenv("WINNOW_RECORD") == nullptr ? nullptr : std::fopen(std::getenv("WINNOW_RECORD"), "w");
  std::map<const void*, std::string> kernels;
  std::map<void*, std::size_t> blocks;
  std::size_t used = 0;
  int allocations = 0;

  ~Recorder() {
    if (file != nullptr) std::fclose(file);
  }
};

Recorder& recorder() {
  static Recorder one;
  return one;
}

int number(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

/// The stream's address, or the name of a default stream. Each thread has its own "per thread".
std::string name_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return "legacy";
  if (stream == cudaStreamPerThread) return "per thread " + std::to_string(gettid());
  return std::to_string(reinterpret_cast<std::uintptr_t>(stream));
}

void record(const char* what, cudaStream_t stream, const std::string& more = "") {
  auto& r = recorder();
  const std::scoped_lock lock(r.mutex);
  if (r.file != nullptr) std::fprintf(r.file, "%s\t%s\t%s\n", what, name_of(stream).c_str(), more.c_str());
}

struct Launch {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local Launch configured;

cudaError_t launch(const void* kernel, const Launch& how) {
  const auto sizes = [](const dim3& d) {
    return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
  };
  std::string name;
  {
    const std::scoped_lock lock(recorder().mutex);
    name = recorder().kernels[kernel];
  }
  record("launch", how.stream,
         name + "\t" + sizes(how.grid) + "\t" + sizes(how.block) + "\t" + std::to_string(how.shared));
  return cudaSuccess;
}

const char* direction(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return "to device";
    case cudaMemcpyDeviceToHost:
      return "to host";
    default:
      return "within";
  }
}

template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = static_cast<Handle>(std::calloc(1, 64));
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
void __cudaRegisterVar(void** /*handle*/, char* /*host*/, char* /*device*/, const char* /*name*/, int /*ext*/,
                       std::size_t /*size*/, int /*constant*/, int /*global*/) {}
void __cudaRegisterFunction(void** /*handle*/, const char* host, char* /*device*/, const char* name, int /*threads*/,
                            uint3* /*tid*/, uint3* /*bid*/, dim3* /*block*/, dim3* /*grid*/, int* /*warp*/) {
  const std::scoped_lock lock(recorder().mutex);
  recorder().kernels[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  configured = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configured.grid;
  *block = configured.block;
  *shared = configured.shared;
  *static_cast<cudaStream_t*>(stream) = configured.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** /*arguments*/, std::size_t shared,
                               cudaStream_t stream) {
  return launch(kernel, {grid, block, shared, stream});
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** /*arguments*/, std::size_t shared,
                             cudaStream_t stream) {
  return launch(kernel, {grid, block, shared, stream});
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* kernel, void** /*arguments*/) {
  return launch(kernel, {how->gridDim, how->blockDim, how->dynamicSmemBytes, how->stream});
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    record("shared memory", nullptr, recorder().kernels[kernel] + "\t" + std::to_string(value));
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* /*kernel*/) {
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 64;
  out->binaryVersion = out->ptxVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return static_cast<cudaError_t>(number("WINNOW_RECORD_ERROR"));
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int /*device*/) {
  std::memset(out, 0, sizeof *out);
  std::strcpy(out->name, "recorder");
  out->major = 9;
  out->multiProcessorCount = 132;
  out->warpSize = 32;
  out->totalGlobalMem = kMemory;
  out->sharedMemPerBlock = 49152;
  out->sharedMemPerBlockOptin = 232448;
  out->sharedMemPerMultiprocessor = 233472;
  out->maxThreadsPerBlock = 1024;
  out->l2CacheSize = 50 << 20U;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  *value = attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 232448
           : attribute == cudaDevAttrMultiProcessorCount        ? 132
           : attribute == cudaDevAttrComputeCapabilityMajor     ? 9
                                                                : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int /*device*/) {
  std::snprintf(id, static_cast<std::size_t>(size), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* /*kernel*/, int /*threads*/,
                                                                   std::size_t /*shared*/, unsigned /*flags*/) {
  *blocks = 2;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = kMemory;
  *free = kMemory - recorder().used;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  auto& r = recorder();
  const int fail = number("WINNOW_RECORD_FAIL");
  {
    const std::scoped_lock lock(r.mutex);
    if (++r.allocations >= fail && fail > 0) return cudaErrorMemoryAllocation;
    constexpr std::size_t kLine = 256;  // to which NVIDIA's allocations are aligned
    *out = std::aligned_alloc(kLine, (bytes / kLine + 1) * kLine);
    std::memset(*out, 0, bytes);
    r.blocks[*out] = bytes;
    r.used += bytes;
  }
  record("allocate", nullptr, std::to_string(bytes));
  return cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  auto& r = recorder();
  const std::scoped_lock lock(r.mutex);
  r.used -= r.blocks[block];
  r.blocks.erase(block);
  std::free(block);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  *out = std::calloc(1, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  std::free(block);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  record("fill", nullptr);
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  record("fill", stream);
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  record(direction(kind), nullptr, std::to_string(bytes));
  std::memcpy(to, from, bytes);
  record("synchronize", nullptr);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  record(direction(kind), stream, std::to_string(bytes));
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  make(stream);
  record("stream", *stream, flags == cudaStreamNonBlocking ? "non-blocking" : "blocking");
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  record("synchronize", stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  record("synchronize all", nullptr);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  record("capture", stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) { return make(graph); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t /*graph*/, unsigned long long /*flags*/) {
  return make(executable);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t /*executable*/, cudaStream_t stream) {
  record("launch", stream, "graph\t1,1,1\t1,1,1\t0");
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) { return make(event); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "an error of the recorder";
  }
}

}  // extern "C"
