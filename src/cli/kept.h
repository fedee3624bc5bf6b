// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::cli {

/// What `winnow run --dump-kept` has written: which positions of a prompt each KV head of each layer has kept.
struct Kept {
  std::string spec;  ///< printable
  int n_prompt = 0;
  std::vector<std::vector<std::vector<std::int32_t>>> layers;  ///< [layer][KV head] positions, ascending

  int heads() const { return static_cast<int>(layers.front().size()); }
  std::size_t entries() const;
};

/// Reads and checks such a file. Throws InputError with what is wrong and where.
Kept read_kept(const std::string& path);

/// The share of each of `bins` equal parts of the prompt that one head has kept, 0 … 1. REQUIRES: 1 <= bins <=
/// n_prompt.
std::vector<double> densities(const std::vector<std::int32_t>& positions, int n_prompt, int bins);

/// How the picture is drawn on a terminal.
struct Canvas {
  int width = 80;  ///< columns
  enum class Shades : std::uint8_t { blocks, ascii } shades = Shades::blocks;
};

/// The width of the terminal, and what it can show.
Canvas terminal_canvas();

/// Head line, one row for each layer and KV head, legend.
std::string picture(const Kept& kept, const Canvas& canvas);

/// A few tokens of the text that stand together.
struct Passage {
  int first = 0;  ///< position of its first token in the prompt
  int tokens = 0;
  double share = 0;  ///< of its tokens in all heads' lanes that are kept
  std::string words;
};

/// The text's tokens as the prompt had them.
struct TextTokens {
  int first = 0;                    ///< position of the first
  std::vector<std::string> pieces;  ///< bytes of each
};

/// The `most` passages of which most is kept, none over another, best first.
std::vector<Passage> best_passages(const Kept& kept, const TextTokens& text, int most);
std::string list(const std::vector<Passage>& passages);

/// Draws the picture to an .svg or .png with gnuplot. Throws UsageError for another name, InputError when gnuplot is
/// not there or fails.
void plot(const Kept& kept, const std::string& path);

/// What `winnow inspect --kept` was asked for.
struct KeptOptions {
  std::string file;
  std::string text;
  std::string model;
  std::string system;
  std::string output;
  bool raw = false;
};

void show_kept(const KeptOptions& options);

}  // namespace winnow::cli
