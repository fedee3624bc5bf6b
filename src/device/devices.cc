// SPDX-License-Identifier: Apache-2.0
#include "winnow/devices.h"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/format.h"
#include "device/backend_log.h"
#include "device/cuda_queue.h"
#include "device/device.h"
#include "winnow/error.h"

namespace winnow {

namespace {

/// A backend of GPUs.
struct Backend {
  const char* library;  ///< in the name of its library
  const char* name;     ///< as ggml registers it; its devices have this name and a number
  bool is_built;        ///< by tools/get-deps.sh
};
constexpr std::array kBackends{Backend{"cuda", "CUDA", true}, Backend{"hip", "ROCm", false},
                               Backend{"musa", "MUSA", false}, Backend{"sycl", "SYCL", false},
                               Backend{"vulkan", "Vulkan", true}};

bool equal(const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; }

bool is_gpu(ggml_backend_dev_t device) {
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

std::string name_of_backend(ggml_backend_dev_t device) {
  return ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
}

std::vector<ggml_backend_dev_t> gpus() {
  std::vector<ggml_backend_dev_t> out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    if (auto* const device = ggml_backend_dev_get(i); is_gpu(device)) out.push_back(device);
  }
  return out;
}

/// Returns why the backend cannot be used, or nothing.
std::string load(const Backend& backend) {
  if (ggml_backend_reg_by_name(backend.name) != nullptr) return {};
  device::forward_backend_log();
  const auto library = fmt::format("libggml-{}.so", backend.library);
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // ggml only logs the reason
  if (handle == nullptr) {
    const std::string reason = dlerror();
    return reason.starts_with(library) && backend.is_built
               ? fmt::format("{} (tools/get-deps.sh {} builds it)", reason, backend.library)
               : reason;
  }
  const bool is_loaded = ggml_backend_load(library.c_str()) != nullptr;
  dlclose(handle);
  if (is_loaded) return {};
  return fmt::format("{} finds no driver, or is of another version than ggml {}", library, ggml_version());
}

/// The devices that a user can choose from, as part of a sentence.
std::string found_devices() {
  std::vector<std::string> names;
  for (const auto& device : devices())
    names.push_back(fmt::format("{} ({}, {} free)", device.name, device.description, format_bytes(device.free_bytes)));
  if (!names.empty()) return fmt::format("there is {}", fmt::join(names, ", "));
  const auto reason = device::last_backend_error();
  return "there is no GPU that ggml can use" + (reason.empty() ? "" : " (" + reason + ")");
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  std::vector<std::string> backends;
  for (const auto& backend : kBackends) backends.emplace_back(backend.library);
  throw UsageError(fmt::format("'{}' is not a device: give cpu, auto or a backend ({}); {}", name,
                               fmt::join(backends, ", "), found_devices()));
}

/// The device of a backend with this number, or the first one. Null if there is none.
ggml_backend_dev_t find(const Backend& backend, const std::string& number) {
  for (auto* const device : gpus()) {
    const bool is_of_backend = equal(name_of_backend(device), backend.name);
    if (is_of_backend && (number.empty() || equal(ggml_backend_dev_name(device), backend.name + number))) return device;
  }
  return nullptr;
}

std::shared_ptr<device::Device> open(ggml_backend_dev_t device) {
  ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
  if (backend == nullptr)
    throw UsageError(fmt::format("the device {} ({}) could not be initialized", ggml_backend_dev_name(device),
                                 ggml_backend_dev_description(device)));
  const auto queue = name_of_backend(device) == "CUDA" ? device::cuda_queue(backend.get()) : device::Queue{};
  return std::make_shared<device::Device>(std::move(backend), queue);
}

std::shared_ptr<device::Device> open_first() {
  const auto loaded = devices();
  return loaded.empty() ? nullptr : open(ggml_backend_dev_by_name(loaded.front().name.c_str()));
}

}  // namespace

std::vector<DeviceInfo> devices() {
  for (const auto& backend : kBackends) load(backend);
  std::vector<DeviceInfo> out;
  for (auto* const device : gpus()) {
    auto& info = out.emplace_back(DeviceInfo{ggml_backend_dev_name(device), ggml_backend_dev_description(device)});
    ggml_backend_dev_memory(device, &info.free_bytes, &info.total_bytes);
  }
  return out;
}

std::shared_ptr<device::Device> open_device(std::string_view name) {
  const std::string wanted(name);
  if (equal(wanted, "cpu")) return nullptr;
  if (equal(wanted, "auto")) return open_first();
  const auto letters = wanted.find_last_not_of("0123456789") + 1;
  const auto number = wanted.substr(letters);
  const auto is_wanted = [word = wanted.substr(0, letters)](const Backend& b) {
    return equal(word, b.library) || equal(word, b.name);
  };
  const auto* const backend = std::ranges::find_if(kBackends, is_wanted);
  if (backend == kBackends.end()) refuse_unknown(name);
  if (const auto reason = load(*backend); !reason.empty())
    throw UsageError(fmt::format("there is no device '{}': {}", name, reason));
  auto* const device = find(*backend, number);
  if (device == nullptr) throw UsageError(fmt::format("there is no device '{}': {}", name, found_devices()));
  return open(device);
}

}  // namespace winnow
