#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/run.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBatch = 16;

struct Line {
  int number = 0;
  std::string id;
  PromptText prompt;
};

Line parse_line(const std::string& text, int number, const PromptText& defaults, const std::string& file) {
  const auto fail = [&](const std::string& why) {
    return InputError(fmt::format("{} line {}: {}", file, number, why));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw fail("no JSON object");
  const auto string_at = [&](const char* key) {
    if (!json.contains(key)) return std::string();
    if (!json[key].is_string()) throw fail(fmt::format("{} is not a string", key));
    return json[key].get<std::string>();
  };
  Line line{number, fmt::format("{}", number), defaults};
  if (json.contains("id")) line.id = json["id"].is_string() ? json["id"].get<std::string>() : json["id"].dump();
  line.prompt.text = string_at("text");
  line.prompt.question = string_at(json.contains("question") ? "question" : "prompt");
  if (line.prompt.text.empty() && line.prompt.question.empty()) throw fail("neither text nor question");
  return line;
}

/// Ids that an earlier run has finished. A last line that was cut is dropped.
std::set<std::string> finished(const std::string& path) {
  std::set<std::string> out;
  std::ifstream file(path, std::ios::binary);
  if (!file) return out;
  std::string whole;
  for (std::string text; std::getline(file, text);) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("id") || !json["id"].is_string()) {
      log().warn("{}: a line that is no record was dropped", path);
      continue;
    }
    out.insert(json["id"].get<std::string>());
    whole += text + "\n";
  }
  file.close();
  write_file(path, whole);
  return out;
}

class Jsonl {
 public:
  Jsonl(const RunOptions& options, Session& session) : options_(options), session_(session) {}

  void run() {
    const std::string text = read_text(options_.jsonl);
    done_ = finished(options_.output);
    out_.open(options_.output, std::ios::binary | std::ios::app);
    if (!out_) throw InputError(fmt::format("cannot write {}", options_.output));
    std::istringstream in(text);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (!line.empty()) take(line, number);
      if (batch_.size() == kBatch) flush();
    }
    flush();
    if (failed_ > 0)
      throw InputError(fmt::format("{} of {} lines of {} could not be run", failed_, number, options_.jsonl));
  }

 private:
  struct Pending {
    std::string id;
    Cache cache;
    std::vector<float> logits;
    CacheStats stats;
    int tokens;
  };

  void take(const std::string& text, int number) {
    try {
      const Line line = parse_line(text, number, options_.prompt, options_.jsonl);
      if (done_.contains(line.id)) return;
      const Prompt prompt = session_.model().tokenize(line.prompt);
      batch_.push_back(prefill(line.id, prompt));
    } catch (const Interrupted&) {
      flush();
      throw;
    } catch (const Error& error) {
      ++failed_;
      log().error("{}", error.what());
    }
  }

  Pending prefill(const std::string& id, const Prompt& prompt) {
    const int tokens = static_cast<int>(prompt.text.size() + prompt.question.size());
    const auto caches = std::span(&options_.cache, 1);
    if (options_.protocol == Protocol::aware || prompt.text.empty()) {
      auto one = std::move(session_.prefill(prompt.text, std::span(&prompt.question, 1), caches).front());
      const CacheStats stats = one.caches.front().stats();
      return {id, std::move(one.caches.front()), std::move(one.logits), stats, tokens};
    }
    auto one = session_.prefill(prompt.text, caches);
    const CacheStats stats = one.caches.front().stats();
    auto logits =
        prompt.question.empty() ? std::move(one.logits) : session_.extend(one.caches.front(), prompt.question);
    return {id, std::move(one.caches.front()), std::move(logits), stats, tokens};
  }

  /// Decodes the batch and writes its lines.
  void flush() {
    if (batch_.empty()) return;
    std::vector<Cache*> caches;
    std::vector<std::vector<float>> logits;
    for (auto& pending : batch_) {
      caches.push_back(&pending.cache);
      logits.push_back(std::move(pending.logits));
    }
    const auto generations = generate(session_, caches, logits, options_.generate);
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (generations[i].finish == FinishReason::interrupted) throw Interrupted("interrupted");
      const auto& stats = batch_[i].stats;
      const Json json{{"id", batch_[i].id},
                      {"spec", options_.cache.spec.print()},
                      {"answer", generations[i].text},
                      {"finish_reason", generations[i].finish == FinishReason::stop ? "stop" : "length"},
                      {"tokens", {{"prompt", batch_[i].tokens}, {"generated", generations[i].tokens.size()}}},
                      {"cache",
                       {{"entries_per_head_mean", stats.entries_per_head_mean},
                        {"bytes_held", stats.bytes_held},
                        {"bytes_full", stats.bytes_full}}}};
      out_ << dump(json, -1) << std::flush;
    }
    if (!out_) throw InputError(fmt::format("cannot write {}: is the disk full?", options_.output));
    batch_.clear();
  }

  const RunOptions& options_;
  Session& session_;
  std::set<std::string> done_;
  std::ofstream out_;
  std::vector<Pending> batch_;
  int failed_ = 0;
};

}  // namespace

void run_jsonl(const RunOptions& options, Session& session) { Jsonl(options, session).run(); }

}  // namespace winnow::cli
