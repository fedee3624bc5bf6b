// Finds a sentence that is hidden in long text, with every method at several budgets: one prefill of each text serves all of them.
//   winnow_needle MODEL FOLDER [--tokens 1000,2000] [--budgets 64,128] [--specs snapkv,h2o]
// FOLDER has the essays, as .txt files. Question-aware. Prints one CSV row for each spec and budget: needles found, in words and in digits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "winnow/error.h"
#include "winnow/generate.h"
#include "winnow/methods.h"

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

/// A text of so many tokens with the needle behind the sentence that ends nearest to the depth, and the question.
std::string haystack(const winnow::Model& model, const std::string& all, const Needle& needle, int tokens, int depth_percent) {
  const auto ids = model.tokenize(std::string_view(all).substr(0, static_cast<std::size_t>(tokens) * 8));
  const double share = static_cast<double>(tokens) / static_cast<double>(ids.size());
  const std::string text = all.substr(0, static_cast<std::size_t>(share * static_cast<double>(tokens) * 8));
  std::size_t at = text.size() * static_cast<std::size_t>(depth_percent) / 100;
  at = depth_percent == 0 ? 0 : depth_percent == 100 ? text.size() : text.find(". ", at);
  at = at == std::string::npos ? text.size() : at;
  return text.substr(0, at) + (at == 0 ? "" : ". ") + needle.sentence + " " + text.substr(std::min(text.size(), at + (at == 0 ? 0 : 2))) +
         "\n\n" + needle.question;
}

struct Found {
  std::map<std::string, int> by_kind;
};

void run(const std::string& model_path, const std::string& folder, const std::vector<int>& lengths, const std::vector<std::string>& budgets,
         std::vector<std::string> specs) {
  const auto model = winnow::Model::load(model_path);
  const std::string all = essays(folder);
  std::vector<winnow::CacheOptions> options(1);
  for (const auto& spec : specs) {
    for (const auto& budget : budgets) {
      winnow::CacheOptions o;
      o.spec = winnow::Spec::parse(spec);
      o.budget = winnow::Budget::parse(budget);
      options.push_back(std::move(o));
    }
  }
  std::vector<Found> found(options.size());
  std::map<std::string, int> asked;
  winnow::Session session(model, {});
  for (const int length : lengths) {
    for (const Needle& needle : kNeedles) {
      for (const int depth : {0, 25, 50, 75, 100}) {
        const auto ids = model->tokenize(haystack(*model, all, needle, length, depth));
        auto prefilled = session.prefill(ids, options);
        std::vector<winnow::Cache*> caches;
        for (auto& cache : prefilled.caches) caches.push_back(&cache);
        const std::vector<std::vector<float>> logits(caches.size(), prefilled.logits);
        winnow::GenerateOptions generate;
        generate.max_tokens = 10;
        const auto answers = winnow::generate(session, caches, logits, generate);
        for (std::size_t i = 0; i < answers.size(); ++i) {
          found[i].by_kind[needle.kind] += answers[i].text.find(needle.answer) != std::string::npos ? 1 : 0;
        }
        ++asked[needle.kind];
        std::fprintf(stderr, "%zu tokens, depth %d%%, %s: full answers '%s'\n", ids.size(), depth, needle.kind, answers[0].text.c_str());
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
  std::vector<int> lengths = {1000, 2000};
  std::vector<std::string> budgets = {"64", "128", "256", "512"};
  std::vector<std::string> specs;
  for (const auto& method : winnow::list_methods()) {
    if (method.name != "full") specs.push_back(method.name);
  }
  app.add_option("MODEL", model)->required();
  app.add_option("FOLDER", folder)->required();
  app.add_option("--tokens", lengths, "lengths of the texts")->delimiter(',');
  app.add_option("--budgets", budgets, "entries per KV head")->delimiter(',');
  app.add_option("--spec", specs, "a method; may be repeated");
  CLI11_PARSE(app, argc, argv);
  try {
    run(model, folder, lengths, budgets, specs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
