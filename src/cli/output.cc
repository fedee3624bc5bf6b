#include "cli/output.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "winnow/error.h"

namespace winnow::cli {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string reason() { return std::strerror(errno); }

std::string read_all(std::FILE* file, const std::string& name) {
  std::string out;
  char buffer[1 << 16];
  while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), file)) out.append(buffer, n);
  if (std::ferror(file) != 0) throw InputError(fmt::format("cannot read {}: {}", name, reason()));
  return out;
}

}  // namespace

void write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw InputError(fmt::format("cannot write to stdout: {}", reason()));
  }
}

std::string read_text(const std::string& path) {
  if (path == "-") return read_all(stdin, "stdin");
  if (std::filesystem::is_directory(path)) throw InputError(fmt::format("cannot read {}: it is a folder", path));
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) throw InputError(fmt::format("cannot read {}: {}", path, reason()));
  return read_all(file.get(), path);
}

void write_file(const std::string& path, std::string_view text) {
  const std::string part = path + ".part";
  std::unique_ptr<std::FILE, Close> file(std::fopen(part.c_str(), "wb"));
  if (file == nullptr) throw InputError(fmt::format("cannot write {}: {}", part, reason()));
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0 && fsync(fileno(file.get())) == 0;
  const std::string why = written ? "" : reason();
  file.reset();
  if (!written) {
    std::filesystem::remove(part);
    throw InputError(fmt::format("cannot write the {} bytes of {}: {}", text.size(), path, why));
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) throw InputError(fmt::format("cannot write {}: {}", path, error.message()));
}

}  // namespace winnow::cli
