// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/file.h"

/// A file of sections, each with a checksum: docs/file-formats.md has the bytes.
namespace winnow::cache {

/// What kind of file it is.
struct FileFormat {
  std::array<char, 8> magic;
  std::uint32_t version;
  const char* noun;  ///< in messages: `a saved cache`

  FileKind kind() const { return {{magic.data(), magic.size()}, noun}; }
};

/// Writes a file of sections whose lengths are known beforehand.
class SectionWriter {
 public:
  /// Writes the header. `lengths` are the bytes of the sections' contents.
  SectionWriter(ByteSink& to, const FileFormat& format, std::vector<std::size_t> lengths);

  /// Writes the next section: fill(sink) writes its contents. REQUIRES: as many bytes as were announced; throws
  /// std::logic_error.
  void section(const std::function<void(ByteSink&)>& fill);

 private:
  ByteSink& to_;
  std::vector<std::size_t> lengths_;
  std::size_t next_ = 0;
};

/// Reads such a file. Nothing that it says is used before it is known to lie within the file; contents are to be used
/// after verify().
class SectionReader {
 public:
  /// Checks the header and where the sections lie. Throws InputError: empty, truncated, another kind or version,
  /// damaged.
  SectionReader(const ByteSource& from, const FileFormat& format);

  int count() const { return static_cast<int>(sections_.size()); }
  /// Throws InputError when the section's checksum does not hold. `what` names it.
  void verify(int index, const std::string& what) const;
  /// The section's contents.
  ByteCursor section(int index) const;

 private:
  struct Section {
    std::size_t at;      ///< of the contents
    std::size_t length;  ///< of the contents
  };
  void check_header(const FileFormat& format) const;

  const ByteSource& from_;
  std::vector<Section> sections_;
};

}  // namespace winnow::cache
