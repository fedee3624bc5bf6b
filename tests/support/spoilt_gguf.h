// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <gguf.h>

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace winnow::test {

/// Replaces some bytes of a tensor in a GGUF file, and restores them in the destructor.
class SpoiltBytes {
 public:
  SpoiltBytes(const std::string& path, const std::string& tensor, std::size_t at, const std::vector<char>& bytes)
      : file_(path, std::ios::in | std::ios::out | std::ios::binary), at_(place_of(path, tensor) + at), old_(bytes) {
    file_.seekg(static_cast<std::streamoff>(at_));
    file_.read(old_.data(), static_cast<std::streamsize>(old_.size()));
    write(bytes);
  }
  SpoiltBytes(const SpoiltBytes&) = delete;
  SpoiltBytes& operator=(const SpoiltBytes&) = delete;
  ~SpoiltBytes() { write(old_); }

 private:
  static std::size_t place_of(const std::string& path, const std::string& tensor) {
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {true, nullptr}));
    const auto id = gguf_find_tensor(gguf.get(), tensor.c_str());
    if (id < 0) throw std::runtime_error("no tensor " + tensor + " in " + path);
    return gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), id);
  }
  void write(const std::vector<char>& bytes) {
    file_.seekp(static_cast<std::streamoff>(at_));
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file_.flush();
  }

  std::fstream file_;
  std::size_t at_;
  std::vector<char> old_;
};

/// Does the same with values of an f32 tensor.
class SpoiltValue : public SpoiltBytes {
 public:
  SpoiltValue(const std::string& path, const std::string& tensor, std::size_t index, float value)
      : SpoiltValue(path, tensor, index, 1, value) {}
  SpoiltValue(const std::string& path, const std::string& tensor, std::size_t first, std::size_t count, float value)
      : SpoiltBytes(path, tensor, first * sizeof(float), bytes_of(std::vector<float>(count, value))) {}

 private:
  static std::vector<char> bytes_of(const std::vector<float>& values) {
    std::vector<char> out(values.size() * sizeof(float));
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
};

}  // namespace winnow::test
