// Finds a sentence that is hidden in long text, with every method at several budgets: one prefill of each text serves all of them.
//   winnow_needle MODEL FOLDER [--tokens 1000,2000] [--protocol aware|agnostic] [--budgets 64,128] [--spec snapkv]
// FOLDER has the essays, as .txt files. Prints one CSV row for each spec and budget: needles found, in words and in digits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "compositions.h"
#include "winnow/error.h"
#include "winnow/generate.h"

namespace {

struct Needle {
  const char* sentence;
  const char* question;  ///< what the model completes
  const char* answer;
  const char* kind;
};

constexpr Needle kNeedles[] = {
    {"The best thing to do in San Francisco is to eat a sandwich and sit in Dolores Park on a sunny day.",
     "The best thing to do in San Francisco is to", "eat a sandwich", "words"},
    {"The secret of grandmother's soup is a spoon of dried blue mushrooms.", "The secret of grandmother's soup is a spoon of",
     "dried blue mushrooms", "words"},
    {"The old lighthouse keeper hid his gold coins in a green teapot.", "The old lighthouse keeper hid his gold coins in a", "green teapot",
     "words"},
    {"The special magic number of Lisbon is 7391825.", "The special magic number of Lisbon is", "7391825", "digits"},
    {"The special magic number of Oslo is 2648013.", "The special magic number of Oslo is", "2648013", "digits"},
};

std::string essays(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
    all += "\n\n";
  }
  return all;
}

/// A text of so many tokens with the needle behind the sentence that ends nearest to the depth.
std::string haystack(const winnow::Model& model, const std::string& all, const Needle& needle, int tokens, int depth_percent) {
  const auto ids = model.tokenize(std::string_view(all).substr(0, static_cast<std::size_t>(tokens) * 8));
  const double share = static_cast<double>(tokens) / static_cast<double>(ids.size());
  const std::string text = all.substr(0, static_cast<std::size_t>(share * static_cast<double>(tokens) * 8));
  std::size_t at = text.size() * static_cast<std::size_t>(depth_percent) / 100;
  at = depth_percent == 0 ? 0 : depth_percent == 100 ? text.size() : text.find(". ", at);
  at = at == std::string::npos ? text.size() : at;
  return text.substr(0, at) + (at == 0 ? "" : ". ") + needle.sentence + " " + text.substr(std::min(text.size(), at + (at == 0 ? 0 : 2)));
}

/// Each cache's answer to the question, which it sees before or after it is compressed.
std::vector<winnow::Generation> ask(winnow::Session& session, const std::string& text, const std::string& question,
                                    const std::string& protocol, std::span<const winnow::CacheOptions> options) {
  auto read = session.model().tokenize(text);
  const auto asked = session.model().tokenize("\n\n" + question);
  const bool agnostic = protocol == "agnostic";
  if (!agnostic) read.insert(read.end(), asked.begin(), asked.end());
  auto prefilled = session.prefill(read, options);
  std::vector<std::vector<float>> logits(options.size(), prefilled.logits);
  std::vector<winnow::Cache*> caches;
  for (std::size_t i = 0; i < options.size(); ++i) {
    caches.push_back(&prefilled.caches[i]);
    if (agnostic) logits[i] = session.extend(prefilled.caches[i], asked);
  }
  winnow::GenerateOptions generate;
  generate.max_tokens = 10;
  return winnow::generate(session, caches, logits, generate);
}

struct Found {
  std::map<std::string, int> by_kind;
};

void run(const std::string& model_path, const std::string& folder, const std::vector<int>& lengths, const std::string& protocol,
         const std::vector<winnow::CacheOptions>& options, const winnow::SessionOptions& session_options) {
  const auto model = winnow::Model::load(model_path);
  const std::string all = essays(folder);
  std::vector<Found> found(options.size());
  std::map<std::string, int> asked;
  winnow::Session session(model, session_options);
  for (const int length : lengths) {
    for (const Needle& needle : kNeedles) {
      for (const int depth : {0, 25, 50, 75, 100}) {
        const auto answers = ask(session, haystack(*model, all, needle, length, depth), needle.question, protocol, options);
        for (std::size_t i = 0; i < answers.size(); ++i) {
          found[i].by_kind[needle.kind] += answers[i].text.find(needle.answer) != std::string::npos ? 1 : 0;
        }
        ++asked[needle.kind];
        std::fprintf(stderr, "%d tokens, depth %d%%, %s: full answers '%s'\n", length, depth, needle.kind, answers[0].text.c_str());
      }
    }
  }
  std::printf("spec,budget,words of %d,digits of %d\n", asked["words"], asked["digits"]);
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::printf("\"%s\",%s,%d,%d\n", options[i].spec.print().c_str(), i == 0 ? "-" : options[i].budget->print().c_str(),
                found[i].by_kind["words"], found[i].by_kind["digits"]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("finds hidden sentences with every method");
  std::string model;
  std::string folder;
  std::vector<int> lengths = {1000, 2000, 4000};
  std::string protocol = "aware";
  winnow::SessionOptions session;
  winnow::bench::Compositions compositions({"64", "128", "256", "512", "1024"});
  app.add_option("MODEL", model)->required();
  app.add_option("FOLDER", folder)->required();
  app.add_option("--tokens", lengths, "lengths of the texts")->delimiter(',');
  app.add_option("--protocol", protocol, "whether the question is seen before the cache is compressed")
      ->check(CLI::IsMember({"aware", "agnostic"}));
  app.add_option("--threads", session.threads, "0: all cores");
  compositions.add_options(app);
  return winnow::bench::run_program(app, argc, argv, [&] { run(model, folder, lengths, protocol, compositions.options(), session); });
}
