// SPDX-License-Identifier: Apache-2.0
#include "eval/report/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "winnow/error.h"

extern char** environ;  // NOLINT: POSIX has it declared by the program

namespace winnow::eval {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File temporary() {
  File file(std::tmpfile());
  if (file == nullptr) throw InputError(fmt::format("cannot make a temporary file: {}", std::strerror(errno)));
  return file;
}

File filled(const std::string& text) {
  File file = temporary();
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
    throw InputError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  std::rewind(file.get());
  return file;
}

std::string all_of(std::FILE* file) {
  std::string out;
  std::rewind(file);
  char buffer[1 << 14];
  while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), file)) out.append(buffer, n);
  return out;
}

/// Starts gnuplot with a file as its stdin and another as its stdout.
pid_t start(int in, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char name[] = "gnuplot";
  char* arguments[] = {name, nullptr};
  pid_t process = 0;
  const int error = posix_spawnp(&process, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT)
    throw InputError("drawing needs gnuplot, which is not installed: on Debian, install gnuplot-nox");
  if (error != 0) throw InputError(fmt::format("cannot start gnuplot: {}", std::strerror(error)));
  return process;
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : static_cast<unsigned char>(c) < ' ' ? " " : std::string(1, c);
  return out + "'";
}

std::string gnuplot(const std::string& script) {
  const File in = filled(script);
  const File out = temporary();
  const pid_t process = start(fileno(in.get()), fileno(out.get()));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  std::string drawn = all_of(out.get());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawn.empty()) throw InputError("gnuplot could not draw");
  return drawn;
}

std::vector<std::string> gnuplot_svgs(const std::vector<std::string>& scripts) {
  if (scripts.empty()) return {};
  std::string all;
  for (const auto& script : scripts) all += script;
  const std::string drawn = gnuplot(all);
  std::vector<std::string> out;
  const std::string end = "</svg>";
  std::size_t at = 0;
  while ((at = drawn.find("<svg", at)) != std::string::npos) {
    const auto after = drawn.find(end, at);
    if (after == std::string::npos) break;
    out.push_back(drawn.substr(at, after + end.size() - at));
    at = after;
  }
  if (out.size() != scripts.size())
    throw InputError(fmt::format("gnuplot drew {} of {} plots", out.size(), scripts.size()));
  return out;
}

bool has_gnuplot() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((std::filesystem::path(folder) / "gnuplot").c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace winnow::eval
