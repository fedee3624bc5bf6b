// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace winnow::network {

/// Product of rows and a packed matrix (bf16_rows.h) in bf16 with f32 sums, by oneDNN. Has one shape, and runs on the
/// calling thread only.
class Bf16Kernel {
 public:
  struct Shape {
    int rows = 0;
    int inputs = 0;   ///< a multiple of 32
    int outputs = 0;  ///< in neighbouring block columns
    auto operator<=>(const Shape&) const = default;
  };

  /// True if this build has oneDNN and the machine multiplies bf16 in hardware. Otherwise nothing else may be called.
  static bool available();
  /// `oneDNN 2.6.3`, or `no oneDNN`.
  static const char* library();

  /// Returns null if there is no fast kernel for the shape. Throws MemoryError and std::bad_alloc.
  static std::unique_ptr<Bf16Kernel> make(const Shape& shape);
  ~Bf16Kernel();

  std::size_t scratch_bytes() const;
  /// x [rows][inputs], packed block columns, y [rows][outputs]; `scratch` is 64-byte aligned and not shared with other
  /// calls. Thread-safe. Throws Error.
  void run(const std::uint16_t* x, const std::uint16_t* packed, float* y, std::byte* scratch) const;

 private:
  struct Impl;
  explicit Bf16Kernel(std::unique_ptr<Impl> impl);
  static std::unique_ptr<Bf16Kernel> try_to_make(const Shape& shape);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::network
