// SPDX-License-Identifier: Apache-2.0
#include "support/host_device.h"

#include <ggml-backend-impl.h>
#include <ggml-cpu.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "winnow/devices.h"

namespace winnow::test {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArena = std::size_t{1} << 30U;

/// The device's memory, and ggml's view of it. Blocks lie side by side, so that few calls unlock them all.
class HostDevice {
 public:
  HostDevice(std::size_t bytes, ggml_op refused);
  ~HostDevice() {
    ggml_backend_free(cpu_);
    munmap(arena_, kArena);
  }
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  ggml_backend_t backend() { return &backend_; }
  std::size_t free() const {
    const std::scoped_lock lock(mutex_);
    return bytes_ - used_;
  }
  ggml_backend_buffer_t allocate(std::size_t bytes);
  void release(void* block);
  /// Takes one of the tasks that kernels run. Returns false if none is left.
  bool take_task() { return tasks_left_.fetch_sub(1) > 0; }
  void set_tasks(long count) { tasks_left_ = count; }
  ggml_status compute(ggml_cgraph* graph) {
    const Open open(*this);
    return ggml_backend_graph_compute(cpu_, graph);
  }
  /// Adds work that is done when somebody waits for it.
  void queue(std::function<void()> work) {
    const std::scoped_lock lock(queue_mutex_);
    queue_.push_back(std::move(work));
  }
  void synchronize();
  /// Queues nodes [first, end) of a graph.
  void queue_part(ggml_cgraph* graph, int first, int end);

  /// Unlocks a block during its lifetime; null: all of them.
  class Open {
   public:
    explicit Open(const HostDevice& device, void* block = nullptr)
        : device_(device), block_(block), lock_(device.mutex_) {
      device_.protect(block_, PROT_READ | PROT_WRITE);
    }
    ~Open() { device_.protect(block_, PROT_NONE); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    const HostDevice& device_;
    void* block_;
    std::scoped_lock<std::mutex> lock_;
  };

 private:
  void protect(void* one, int access) const {
    if (one != nullptr) {
      mprotect(one, blocks_.at(static_cast<std::byte*>(one)).whole, access);
      return;
    }
    for (auto next = blocks_.begin(); next != blocks_.end();) {  // neighbours together
      auto* const begin = next->first;
      auto* end = begin;
      for (; next != blocks_.end() && next->first == end; ++next) end += next->second.whole;
      mprotect(begin, static_cast<std::size_t>(end - begin), access);
    }
  }
  /// The first gap of so many bytes; null: there is none.
  std::byte* find_gap(std::size_t whole) const;

  std::size_t bytes_;
  ggml_op refused_;
  std::atomic<long> tasks_left_ = std::numeric_limits<long>::max();
  std::mutex queue_mutex_;
  std::vector<std::function<void()>> queue_;
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  struct Size {
    std::size_t whole;  ///< pages
    std::size_t asked;
  };
  std::byte* arena_;
  std::map<std::byte*, Size> blocks_;
  ggml_backend_t cpu_ = ggml_backend_cpu_init();
  ggml_backend_buffer_type type_{};
  ggml_backend_device device_{};
  ggml_backend backend_{};
};

HostDevice& device_of(ggml_backend_buffer_t buffer) { return *static_cast<HostDevice*>(buffer->buft->context); }

void free_buffer(ggml_backend_buffer_t buffer) { device_of(buffer).release(buffer->context); }
void* base_of(ggml_backend_buffer_t buffer) { return buffer->context; }

std::atomic<long> kernels = 0;
std::atomic<long> copies = 0;
std::atomic<std::size_t> bytes_to_host = 0;

void fill(ggml_backend_buffer_t buffer, ggml_tensor* tensor, std::uint8_t value, std::size_t at, std::size_t bytes) {
  const HostDevice::Open open(device_of(buffer), buffer->context);
  std::memset(static_cast<std::byte*>(tensor->data) + at, value, bytes);
}

void set(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* from, std::size_t at, std::size_t bytes) {
  const HostDevice::Open open(device_of(buffer), buffer->context);
  std::memcpy(static_cast<std::byte*>(tensor->data) + at, from, bytes);
  ++copies;
}

void get(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* to, std::size_t at, std::size_t bytes) {
  const HostDevice::Open open(device_of(buffer), buffer->context);
  std::memcpy(to, static_cast<const std::byte*>(tensor->data) + at, bytes);
  ++copies;
  bytes_to_host += bytes;
}

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
  const HostDevice::Open open(device_of(buffer), buffer->context);
  std::memset(buffer->context, value, buffer->size);
}

HostDevice::HostDevice(std::size_t bytes, ggml_op refused)
    : bytes_(bytes),
      refused_(refused),
      arena_(static_cast<std::byte*>(
          mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (arena_ == MAP_FAILED) throw std::bad_alloc();
  ggml_backend_cpu_set_n_threads(cpu_, 1);
  type_.context = this;
  type_.device = &device_;
  type_.iface.get_name = [](ggml_backend_buffer_type_t) { return "host device"; };
  type_.iface.alloc_buffer = [](ggml_backend_buffer_type_t type, std::size_t size) {
    return static_cast<HostDevice*>(type->context)->allocate(size);
  };
  type_.iface.get_alignment = [](ggml_backend_buffer_type_t) { return std::size_t{64}; };
  device_.context = this;
  device_.iface.get_name = [](ggml_backend_dev_t) { return "host device"; };
  device_.iface.get_memory = [](ggml_backend_dev_t of, std::size_t* free, std::size_t* total) {
    const auto& device = *static_cast<const HostDevice*>(of->context);
    *free = device.free();
    *total = device.bytes_;
  };
  device_.iface.get_buffer_type = [](ggml_backend_dev_t of) { return &static_cast<HostDevice*>(of->context)->type_; };
  device_.iface.supports_op = [](ggml_backend_dev_t of, const ggml_tensor* node) {
    const auto& device = *static_cast<const HostDevice*>(of->context);
    return (node->op == GGML_OP_NONE || node->op != device.refused_) && ggml_backend_supports_op(device.cpu_, node);
  };
  backend_.context = this;
  backend_.device = &device_;
  backend_.iface.get_name = [](ggml_backend_t) { return "host device"; };
  backend_.iface.free = [](ggml_backend_t backend) { delete static_cast<HostDevice*>(backend->context); };
  backend_.iface.synchronize = [](ggml_backend_t backend) {
    static_cast<HostDevice*>(backend->context)->synchronize();
  };
  backend_.iface.graph_compute = [](ggml_backend_t backend, ggml_cgraph* graph) {
    return static_cast<HostDevice*>(backend->context)->compute(graph);
  };
}

std::byte* HostDevice::find_gap(std::size_t whole) const {
  std::byte* at = arena_;
  for (const auto& [block, size] : blocks_) {
    if (static_cast<std::size_t>(block - at) >= whole) return at;
    at = block + size.whole;
  }
  return static_cast<std::size_t>(arena_ + kArena - at) >= whole ? at : nullptr;
}

ggml_backend_buffer_t HostDevice::allocate(std::size_t bytes) {
  const std::size_t whole = (bytes / kPage + 1) * kPage;
  const std::scoped_lock lock(mutex_);
  if (bytes > bytes_ - used_) return nullptr;
  std::byte* const block = find_gap(whole);
  if (block == nullptr) return nullptr;
  mprotect(block, whole, PROT_READ | PROT_WRITE);
  std::memset(block, 0xff, whole);
  mprotect(block, whole, PROT_NONE);
  blocks_[block] = {whole, bytes};
  used_ += bytes;
  ggml_backend_buffer_i calls{};
  calls.free_buffer = free_buffer;
  calls.get_base = base_of;
  calls.memset_tensor = fill;
  calls.set_tensor = set;
  calls.get_tensor = get;
  calls.clear = clear;
  return ggml_backend_buffer_init(&type_, calls, block, bytes);
}

/// Unlocks the memory once for all work, which takes long.
void HostDevice::synchronize() {
  const std::scoped_lock lock(queue_mutex_);
  const auto all = std::exchange(queue_, {});
  if (all.empty()) return;
  const Open open(*this);
  for (const auto& work : all) work();
}

void HostDevice::queue_part(ggml_cgraph* graph, int first, int end) {
  queue([this, part = std::make_shared<device::GraphPart>(graph, first, end)] {
    ggml_backend_graph_compute(cpu_, part->graph());
  });
}

/// Waits for the device, as NVIDIA's runtime does.
void HostDevice::release(void* block) {
  synchronize();
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(block));
  used_ -= found->second.asked;
  madvise(block, found->second.whole, MADV_DONTNEED);
  blocks_.erase(found);
}

}  // namespace

namespace {

/// Queues a kernel of a device, which is the stream.
template <auto kernel, class Task>
const char* queued(const Task& task, void* stream) {
  auto& device = *static_cast<HostDevice*>(stream);
  if (!device.take_task()) return "no kernel for this device";
  ++kernels;
  device.queue([task] {
    if (const char* const refusal = (winnow_kernels()->*kernel)(task, nullptr)) throw std::logic_error(refusal);
  });
  return nullptr;
}

ggml_status queue_part(ggml_backend_t backend, ggml_cgraph* graph, int first, int end) {
  static_cast<HostDevice*>(backend->context)->queue_part(graph, first, end);
  return GGML_STATUS_SUCCESS;
}

std::shared_ptr<device::Device> make_device(std::size_t bytes, const device::Kernels* table,
                                            ggml_op refused = GGML_OP_NONE,
                                            long tasks = std::numeric_limits<long>::max()) {
  auto* const host = new HostDevice(bytes, refused);
  host->set_tasks(tasks);
  const device::Queue queue{table, host, table == nullptr ? nullptr : queue_part};
  return std::make_shared<device::Device>(ggml_backend_ptr(host->backend()), queue);
}

/// The device that the tests' variable names; null: it names none.
std::shared_ptr<device::Device> named_device() {
  const char* const name = std::getenv("WINNOW_TEST_DEVICE");
  return name == nullptr ? nullptr : open_device(name);
}

}  // namespace

std::shared_ptr<device::Device> host_device(std::size_t bytes, ggml_op refused) {
  return make_device(bytes, nullptr, refused);
}

namespace {

const device::Kernels& emulated() {
  using device::Kernels;
  static const Kernels table{device::kKernelVersion,
                             queued<&Kernels::prefill, device::PrefillTask>,
                             queued<&Kernels::observe, device::ObserveTask>,
                             queued<&Kernels::decode, device::DecodeTask>,
                             queued<&Kernels::store, device::StoreTask>,
                             queued<&Kernels::products, device::ProductsTask>};
  return table;
}

}  // namespace

std::shared_ptr<device::Device> host_device_with_kernels(std::size_t bytes) { return make_device(bytes, &emulated()); }

std::shared_ptr<device::Device> host_device_that_refuses(long before) {
  return make_device(std::numeric_limits<std::size_t>::max(), &emulated(), GGML_OP_NONE, before);
}

Traffic traffic() { return {kernels, copies, bytes_to_host}; }

std::shared_ptr<device::Device> tested_device() {
  auto device = named_device();
  return device == nullptr ? host_device() : device;
}

std::shared_ptr<device::Device> tested_device_with_kernels() {
  auto device = named_device();
  return device == nullptr || !device->has_kernels() ? host_device_with_kernels() : device;
}

}  // namespace winnow::test
