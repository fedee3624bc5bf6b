// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/file.h"

/// Files of checksummed sections; format in docs/file-formats.md.
namespace winnow::cache {

/// Identification of a kind of file.
struct FileFormat {
  std::array<char, 8> magic;
  std::uint32_t version;
  const char* noun;  ///< in messages: `a saved cache`

  FileKind kind() const { return {{magic.data(), magic.size()}, noun}; }
};

/// Writes a file of sections of known lengths.
class SectionWriter {
 public:
  /// Writes the header. `lengths`: bytes of the sections' contents.
  SectionWriter(ByteSink& to, const FileFormat& format, std::vector<std::size_t> lengths);

  /// Writes the next section; fill(sink) writes its contents. Throws std::logic_error unless it writes the announced
  /// number of bytes.
  void section(const std::function<void(ByteSink&)>& fill);

 private:
  ByteSink& to_;
  std::vector<std::size_t> lengths_;
  std::size_t next_ = 0;
};

/// Reads such a file. No length is used before it is known to lie within the file. REQUIRES: verify() before the
/// contents are used.
class SectionReader {
 public:
  /// Checks the header and the places of the sections. Throws InputError for a file that is empty, truncated, damaged,
  /// or of another kind or version.
  SectionReader(const ByteSource& from, const FileFormat& format);

  int count() const { return static_cast<int>(sections_.size()); }
  /// Throws InputError, with the name `what`, if the section's checksum fails.
  void verify(int index, const std::string& what) const;
  /// Contents of a section.
  ByteCursor section(int index) const;

 private:
  struct Section {
    std::size_t at;      ///< offset of the contents
    std::size_t length;  ///< of the contents
  };
  void check_header(const FileFormat& format) const;

  const ByteSource& from_;
  std::vector<Section> sections_;
};

}  // namespace winnow::cache
