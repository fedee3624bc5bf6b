// SPDX-License-Identifier: Apache-2.0
#include "hub/choice.h"

#include <common.h>
#include <download.h>
#include <gtest/gtest.h>
#include <log.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp.h"

namespace winnow::hub {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

/// The files that llama.cpp chooses from a cached repository.
std::vector<std::string> taken_by_llama_cpp(const std::string& repository, const std::string& quant) {
  common_params_model model;
  model.hf_repo = repository + (quant.empty() ? "" : ":" + quant);
  common_download_opts opts;
  opts.offline = true;
  std::vector<std::string> out;
  for (const auto& file : common_download_get_hf_plan(model, opts).model_files) out.push_back(file.path);
  return out;
}

std::vector<std::string> taken_here(const std::string& repository, const std::string& quant) {
  std::vector<std::string> out;
  for (const auto& file : choose(hf_cache::get_cached_files(repository), quant).parts) out.push_back(file.path);
  return out;
}

void write_repository(const fs::path& cache, const std::string& name, const std::vector<std::string>& files) {
  const auto folder = cache / ("models--user--" + name);
  fs::create_directories(folder / "refs");
  std::ofstream(folder / "refs" / "main") << kCommit;
  for (const auto& file : files) {
    const auto path = folder / "snapshots" / kCommit / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
}

TEST(Choice, is_that_of_llama_cpp) {
  const test::TempFolder cache;
  setenv("HF_HUB_CACHE", cache.path().c_str(), 1);
  unsetenv("LLAMA_CACHE");
  common_log_set_verbosity_thold(-1);
  const std::vector<std::vector<std::string>> repositories = {
      {"a-Q4_K_M.gguf", "a-Q8_0.gguf", "a-F16.gguf"},
      {"a.q8_0.gguf", "a.bf16.gguf"},
      {"a.gguf"},
      {"README.md", "a-IQ1_S.gguf", "mmproj-a-Q4_K_M.gguf", "imatrix-Q8_0.gguf", "mtp-a-Q4_K_M.gguf"},
      {"Q4_K_M/big-Q4_K_M-00001-of-00003.gguf", "Q4_K_M/big-Q4_K_M-00002-of-00003.gguf",
       "Q4_K_M/big-Q4_K_M-00003-of-00003.gguf", "Q8_0/big-Q8_0-00001-of-00002.gguf",
       "Q8_0/big-Q8_0-00002-of-00002.gguf"},
      {"big-Q8_0-00002-of-00002.gguf"},
      {"UD-Q4_K_XL/x-UD-Q4_K_XL.gguf", "x-Q4_K_S.gguf", "x-Q3_K_M-imat.gguf"},
      {"a-Q4_K_M.GGUF", "dflash-Q8_0.gguf", "x-eagle3-Q8_0.gguf", "x-dspark-Q8_0.gguf"},
      {"x-0001-of-0002.gguf", "y-00001-OF-00001.gguf", "-00001-of-00002.gguf"},
      {"model.safetensors"},
  };
  const std::vector<std::string> quants = {"",       "Q4_K_M", "q8_0", "F16",   "Q4",      "K_M", "IQ1_S",
                                           "Q4_K_S", "Q3_K_M", "of",   "00001", "Q4_K_XL", "a",   "UD-Q4_K_XL"};
  int found = 0;
  for (std::size_t i = 0; i < repositories.size(); ++i) {
    const auto name = "r" + std::to_string(i);
    write_repository(cache.path(), name, repositories[i]);
    for (const auto& quant : quants) {
      auto theirs = taken_by_llama_cpp("user/" + name, quant);
      std::ranges::sort(theirs);  // parts have no fixed order
      EXPECT_EQ(taken_here("user/" + name, quant), theirs) << name << ":" << quant;
      found += theirs.empty() ? 0 : 1;
    }
  }
  EXPECT_GE(found, 30);
}

hf_cache::hf_files listed(const std::vector<std::string>& paths) {
  hf_cache::hf_files out;
  for (const auto& path : paths) {
    out.emplace_back();
    out.back().path = path;
  }
  return out;
}

TEST(Choice, says_how_many_parts_are_missing) {
  const auto choice = choose(listed({"a-Q8_0-00001-of-00003.gguf", "a-Q8_0-00003-of-00003.gguf"}), "");
  EXPECT_EQ(choice.count, 3);
  EXPECT_EQ(choice.parts.size(), 2U);
  EXPECT_FALSE(choice.is_complete());
}

TEST(Quants, are_the_last_words_of_models_each_once) {
  EXPECT_EQ(
      quants_of(listed({"a-q4_k_m.gguf", "b.Q8_0.gguf", "c-Q8_0-00001-of-00002.gguf", "c-Q8_0-00002-of-00002.gguf",
                        "mmproj-F16.gguf", "plain.gguf", "notes-F32.txt", "x-.gguf"})),
      (std::vector<std::string>{"Q4_K_M", "Q8_0"}));
}

}  // namespace
}  // namespace winnow::hub
