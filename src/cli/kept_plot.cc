#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/kept.h"
#include "cli/output.h"
#include "winnow/error.h"

extern char** environ;  // NOLINT: POSIX has it declared by the program

namespace winnow::cli {

namespace {

constexpr int kMostBins = 1000;

/// In single quotes gnuplot knows no escapes but the doubled quote; the spec is printable.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

std::string terminal_of(const std::string& path) {
  const auto extension = std::filesystem::path(path).extension();
  if (extension == ".svg") return "svg size 1000,700 background 'white'";
  if (extension == ".png") return "pngcairo size 1000,700";
  throw UsageError(fmt::format("-o {}: a picture is an .svg or a .png", path));
}

/// What gnuplot reads: settings, then a row of densities for each head. The picture goes to its stdout.
std::string script(const Kept& kept, const std::string& terminal) {
  const int bins = std::min(kept.n_prompt, kMostBins);
  const auto rows = kept.layers.size() * static_cast<std::size_t>(kept.heads());
  const double share = 100.0 * static_cast<double>(kept.entries()) / (static_cast<double>(rows) * kept.n_prompt);
  std::string out = fmt::format(
      "set terminal {}\nset title {} noenhanced\nset xlabel 'position'\nset ylabel 'layer'\nset cblabel 'share kept'\n"
      "set cbrange [0:1]\nset palette defined (0 'white', 0.25 '#9ecae1', 1 '#08306b')\nset tics out\n"
      "set xrange [0:{}]\nset yrange [{}:0]\n"
      "plot '-' matrix using (($1+0.5)*{}):(($2+0.5)/{}.0):3 with image notitle\n",
      terminal, quoted(fmt::format("{}: {:.1f} % of {} tokens kept", kept.spec, share, kept.n_prompt)), kept.n_prompt, kept.layers.size(),
      static_cast<double>(kept.n_prompt) / bins, kept.heads());
  for (const auto& layer : kept.layers) {
    for (const auto& head : layer) {
      for (const double density : densities(head, kept.n_prompt, bins)) out += fmt::format("{:.3g} ", density);
      out += "\n";
    }
  }
  return out + "e\n";
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
  if (error == ENOENT) throw InputError("drawing a file needs gnuplot, which is not there: it is in the package gnuplot-nox");
  if (error != 0) throw InputError(fmt::format("cannot start gnuplot: {}", std::strerror(error)));
  return process;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File temporary() {
  File file(std::tmpfile());
  if (file == nullptr) throw InputError(fmt::format("cannot make a temporary file: {}", std::strerror(errno)));
  return file;
}

std::string all_of(std::FILE* file) {
  std::string out;
  std::rewind(file);
  char buffer[1 << 14];
  while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), file)) out.append(buffer, n);
  return out;
}

}  // namespace

void plot(const Kept& kept, const std::string& path) {
  const std::string text = script(kept, terminal_of(path));
  const File in = temporary();
  const File out = temporary();
  if (std::fwrite(text.data(), 1, text.size(), in.get()) != text.size() || std::fflush(in.get()) != 0) {
    throw InputError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  std::rewind(in.get());
  const pid_t process = start(fileno(in.get()), fileno(out.get()));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  const std::string drawn = all_of(out.get());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawn.empty()) {
    throw InputError(fmt::format("gnuplot could not draw {}", path));
  }
  write_file(path, drawn);
}

}  // namespace winnow::cli
