// SPDX-License-Identifier: Apache-2.0
#include "hub/cache.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "winnow/error.h"

namespace winnow::hub {

namespace {

namespace fs = std::filesystem;

/// `models--USER--REPO`
std::string folder_name(const std::string& repository) {
  auto out = "models--" + repository;
  return out.replace(out.find('/'), 1, "--");
}

std::string cache_folder() {
  try {
    return hf_cache::get_cache_path();
  } catch (const std::exception&) {
    throw ModelError("there is no folder for downloaded models: set HF_HOME or HOME");
  }
}

hf_cache::hf_files files_in(const fs::path& version) {
  hf_cache::hf_files out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(version, error), end; !error && at != end; at.increment(error)) {
    if (!fs::is_regular_file(at->path(), error)) continue;
    hf_cache::hf_file file;
    file.path = at->path().lexically_relative(version).generic_string();
    file.local_path = file.final_path = at->path().string();
    out.push_back(std::move(file));
  }
  std::ranges::sort(out, {}, &hf_cache::hf_file::path);
  return out;
}

/// Folder of the version that was requested last, as llama.cpp finds it; empty: none.
fs::path last_asked_for(const std::string& repository) {
  try {
    const auto files = hf_cache::get_cached_files(repository);
    if (files.empty()) return {};
    const auto& file = files.front();
    return file.final_path.substr(0, file.final_path.size() - file.path.size() - 1);
  } catch (const fs::filesystem_error& error) {
    throw ModelError(fmt::format("cannot read {}: {}", cache_folder(), error.code().message()));
  }
}

}  // namespace

std::string folder_of(const std::string& repository) { return cache_folder() + "/" + folder_name(repository); }

std::string lock_of(const std::string& repository, const std::string& checksum) {
  return fmt::format("{}/.locks/{}/{}.lock", cache_folder(), folder_name(repository), checksum);
}

std::vector<hf_cache::hf_files> versions_of(const std::string& repository) {
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  const auto first = last_asked_for(repository);
  std::error_code error;
  for (fs::directory_iterator at(folder_of(repository) + "/snapshots", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path() != first) others.emplace_back(fs::last_write_time(at->path(), error), at->path());
  }
  std::ranges::sort(others, std::greater<>());
  std::vector<hf_cache::hf_files> out;
  if (!first.empty()) out.push_back(files_in(first));
  for (const auto& [time, version] : others) out.push_back(files_in(version));
  return out;
}

}  // namespace winnow::hub
