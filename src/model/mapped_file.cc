// SPDX-License-Identifier: Apache-2.0
#include "model/mapped_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::model {

MappedFile::MappedFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not block
  if (fd < 0) throw ModelError(fmt::format("cannot open the model {}: {}", path, std::strerror(errno)));
  struct Close {
    int fd;
    ~Close() { close(fd); }
  } closer{fd};
  struct stat info {};
  if (fstat(fd, &info) != 0) throw ModelError(fmt::format("cannot read the model {}: {}", path, std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) throw ModelError(fmt::format("the model {} is a folder: give a GGUF file", path));
  if (!S_ISREG(info.st_mode)) throw ModelError(fmt::format("the model {} is not a regular file", path));
  if (info.st_size == 0) throw ModelError(fmt::format("the model {} is empty (0 bytes)", path));
  size_ = as_size(info.st_size);
  void* const at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED)
    throw ModelError(fmt::format("cannot map the {} bytes of {}: {}", size_, path, std::strerror(errno)));
  data_ = static_cast<std::byte*>(at);
  range_.emplace(data_, size_, path);
}

MappedFile::~MappedFile() { munmap(data_, size_); }

}  // namespace winnow::model
