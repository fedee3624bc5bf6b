// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/kept.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/printable.h"
#include "cli/output.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Reads the file value by value, so that even a long wrong file is refused at its first wrong value.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Kept take() {
    if (kept_.n_prompt == 0) throw error("it does not have the prompt's length (n_prompt)");
    if (kept_.layers.empty() || kept_.layers.front().empty()) throw error("it has no layers");
    if (!kept_.windows.empty() && kept_.windows.size() != kept_.layers.size()) {
      throw error(
          fmt::format("it has windows for {} layers, but {} layers", kept_.windows.size(), kept_.layers.size()));
    }
    if (names_.contains("text_tokens") != names_.contains("text_hash"))
      throw error("it has only one of text_tokens and text_hash");
    if (names_.contains("text_hash")) kept_.text = std::move(text_);
    for (std::size_t layer = 0; layer < kept_.layers.size(); ++layer) check(layer);
    return std::move(kept_);
  }

  bool null() override { return other("null"); }
  bool boolean(bool /*value*/) override { return other("a truth value"); }
  bool number_float(double value, const std::string& /*text*/) override { return other(fmt::format("{}", value)); }
  bool binary(binary_t& /*value*/) override { return other("bytes"); }

  bool number_integer(std::int64_t value) override {
    if (value >= 0) return number_unsigned(static_cast<std::uint64_t>(value));
    throw error(fmt::format("{} is where a position or a length should be", value));
  }

  bool number_unsigned(std::uint64_t value) override {
    const bool length = depth_ == 1 && key_ == "n_prompt";
    const bool text = depth_ == 1 && key_ == "text_tokens";
    const bool window = depth_ == 2 && key_ == "windows";
    if (!length && !text && !window && !(depth_ == 4 && key_ == "layers")) return other(fmt::format("{}", value));
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) || (length && value == 0)) {
      const char* const what = length   ? "length of a prompt"
                               : text   ? "length of a text"
                               : window ? "window"
                                        : "position";
      throw error(fmt::format("{} is not a {}", value, what));
    }
    if (length) {
      kept_.n_prompt = static_cast<int>(value);
    } else if (text) {
      text_.tokens = value;
    } else if (window) {
      kept_.windows.push_back(static_cast<int>(value));
    } else {
      kept_.layers.back().back().push_back(static_cast<std::int32_t>(value));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (depth_ != 1 || (key_ != "spec" && key_ != "text_hash")) return other("a string");
    (key_ == "spec" ? kept_.spec : text_.hash) = brief(value);
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (depth_ != 0) return other("an object");
    depth_ = 1;
    return true;
  }
  bool end_object() override { return true; }

  bool key(std::string& name) override {
    static const std::set<std::string> known{"spec", "n_prompt", "text_tokens", "text_hash", "layers", "windows"};
    if (!known.contains(name)) throw error(fmt::format("it has a '{}'", brief(name)));
    if (!names_.insert(name).second) throw error(fmt::format("it has its {} twice", name));
    key_ = name;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    const int deepest = key_ == "layers" ? 4 : key_ == "windows" ? 2 : 1;
    if (depth_ == 0 || depth_ >= deepest) return other("a list");
    ++depth_;
    if (depth_ == 3) kept_.layers.emplace_back();
    if (depth_ == 4) kept_.layers.back().emplace_back();
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*what*/) override {
    throw error(fmt::format("it is not valid JSON, or was cut off, at byte {}", byte));
  }

 private:
  InputError error(const std::string& why) const {
    return InputError(fmt::format("{} is not a file of run --dump-kept: {}", brief(path_), why));
  }

  bool other(const std::string& what) const {
    throw error(depth_ == 0 ? fmt::format("it holds {}", what) : fmt::format("{} is not possible in '{}'", what, key_));
  }

  void check(std::size_t layer) const {
    const auto& heads = kept_.layers[layer];
    if (heads.size() != kept_.layers.front().size()) {
      throw error(
          fmt::format("layer {} has {} heads, but layer 0 has {}", layer, heads.size(), kept_.layers.front().size()));
    }
    for (std::size_t head = 0; head < heads.size(); ++head) {
      std::int32_t least = 0;
      for (const auto position : heads[head]) {
        const std::string place = fmt::format("layer {} head {}", layer, head);
        if (position >= kept_.n_prompt)
          throw error(fmt::format("{} keeps {} of {} tokens", place, position, kept_.n_prompt));
        if (position < least) throw error(fmt::format("{} has {} after {}", place, position, least - 1));
        least = position + 1;
      }
    }
  }

  std::string path_;
  std::string key_;
  std::set<std::string> names_;
  int depth_ = 0;  ///< 1: in the object, 2: in the list of layers, 3: of heads, 4: of positions
  Kept kept_;
  TextIdentity text_;
};

}  // namespace

std::vector<std::size_t> Kept::chosen() const {
  std::vector<std::size_t> all(layers.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::size_t> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [this](std::size_t layer) { return is_chosen(layer); });
  return out.empty() ? all : out;
}

std::size_t Kept::entries() const {
  std::size_t sum = 0;
  for (const auto layer : chosen()) {
    for (const auto& head : layers[layer]) sum += head.size();
  }
  return sum;
}

Kept read_kept(const std::string& path) {
  Reader reader(path);
  nlohmann::json::sax_parse(read_file(path), &reader);
  return reader.take();
}

std::vector<double> densities(const std::vector<std::int32_t>& positions, int n_prompt, int bins) {
  const auto begin = [&](int bin) { return static_cast<std::int64_t>(bin) * n_prompt / bins; };
  std::vector<double> out(bins);
  std::size_t next = 0;
  for (int bin = 0; bin < bins; ++bin) {
    int count = 0;
    for (; next < positions.size() && positions[next] < begin(bin + 1); ++next) ++count;
    out[bin] = static_cast<double>(count) / static_cast<double>(begin(bin + 1) - begin(bin));
  }
  return out;
}

}  // namespace winnow::cli
