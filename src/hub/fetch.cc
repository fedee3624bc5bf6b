// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch.h"

#include <download.h>
#include <log.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/format.h"
#include "base/log.h"
#include "base/printable.h"
#include "hub/cache.h"
#include "hub/checksum.h"
#include "hub/choice.h"
#include "hub/endpoint.h"
#include "hub/hub_name.h"
#include "hub/lock.h"
#include "winnow/error.h"

namespace winnow::hub {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 40;  // quants in a message

/// File of an unfinished download of llama.cpp.
std::string unfinished(const std::string& path) { return path + ".downloadInProgress"; }

/// Size of a file; 0 if there is none.
std::size_t bytes_of(const std::string& path) {
  std::error_code error;
  const auto out = fs::file_size(path, error);
  return error ? 0 : out;
}

/// Free bytes on the file system of a path.
std::size_t free_at(const std::string& path) {
  std::error_code error;
  const auto space = fs::space(fs::path(path).parent_path(), error);
  return error ? std::size_t(-1) : space.available;
}

std::string disk_is_full(const std::string& path, std::size_t missing) {
  return fmt::format(
      "{} of {} are still to be downloaded, but only {} are free: make room and run the same command again",
      format_bytes(missing), path, format_bytes(free_at(path)));
}

/// Receives llama.cpp's reports on a download.
class DownloadReport : public common_download_callback {
 public:
  DownloadReport(const hf_cache::hf_file& file, const FetchOptions& options) : file_(file), options_(options) {}

  void on_start(const common_download_progress& p) override {
    const auto part = unfinished(file_.local_path);
    // For a download that is complete but not renamed, llama.cpp would request bytes beyond its end.
    if (p.total > 0 && bytes_of(part) > p.total) fs::remove(part);
    if (p.total > 0 && bytes_of(part) == p.total) fs::resize_file(part, p.total - 1);
    const auto missing = p.total - std::min(p.total, bytes_of(part));
    if (missing > free_at(part)) throw ModelError(disk_is_full(file_.local_path, missing));
    log().info("downloading {} of {} ({}) from {}", printable(file_.path), file_.repo_id, format_bytes(p.total),
               endpoint());
    tell(bytes_of(part), p.total);
  }
  void on_update(const common_download_progress& p) override { tell(p.downloaded, p.total); }
  void on_done(const common_download_progress& /*p*/, bool /*ok*/) override {}

  std::size_t total() const { return total_; }

 private:
  void tell(std::size_t bytes, std::size_t total) {
    total_ = total;
    options_.on_progress({file_.path, bytes, total});
  }

  const hf_cache::hf_file& file_;
  const FetchOptions& options_;
  std::size_t total_ = 0;
};

/// Reason why llama.cpp has given up the download of a file.
std::string why_broken(const hf_cache::hf_file& file, int status, std::size_t total) {
  if (status > 0) return refusal(file.repo_id, status);
  const auto have = bytes_of(unfinished(file.local_path));
  const auto missing = total - std::min(total, have);
  if (missing > free_at(file.local_path)) return disk_is_full(file.local_path, missing);
  if (total == 0) return fmt::format("cannot reach {} over the network", endpoint());
  return fmt::format("the download of {} from {} stopped at {} of {} bytes: run the same command again to continue",
                     printable(file.path), endpoint(), have, total);
}

void download(const hf_cache::hf_file& file, const FetchOptions& options) {
  DownloadReport report(file, options);
  common_download_opts opts;
  opts.bearer_token = token();
  opts.callback = &report;
  constexpr bool kNamedByChecksum = true;
  const int status = common_download_file_single(file.url, file.local_path, opts, kNamedByChecksum);
  if (!fs::exists(file.local_path)) throw ModelError(why_broken(file, status, report.total()));
}

/// Throws ModelError for a wrong checksum. `remedy` ends the message.
void check(const hf_cache::hf_file& file, const FetchOptions& options, const char* remedy) {
  constexpr std::size_t kDigitsOfSha256 = 64;
  const auto kind = file.oid.size() == kDigitsOfSha256 ? Checksum::sha256 : Checksum::git_blob;
  const auto size = bytes_of(file.local_path);
  const auto found = checksum_of(file.local_path, kind, [&](std::size_t /*read*/) {
    options.on_progress({file.path, size, size});
  });
  if (found == file.oid) return;
  throw ModelError(fmt::format("{} of {} has the checksum {}, expected {}: {}", printable(file.path), file.repo_id,
                               found, file.oid, remedy));
}

/// Ensures that a listed file is in the cache.
void fetch(const hf_cache::hf_file& file, const FetchOptions& options) {
  if (fs::exists(file.final_path)) return;
  if (file.oid.empty())
    throw ModelError(
        fmt::format("{} has no checksum for {}, so it is not downloaded", endpoint(), printable(file.path)));
  const Lock lock(lock_of(file.repo_id, file.oid), [&] {
    options.on_progress({file.path, bytes_of(unfinished(file.local_path)), 0});
  });
  if (fs::exists(file.final_path)) return;  // another process was faster
  if (fs::exists(file.local_path)) {
    check(file, options, ("remove " + file.local_path + ", which was downloaded before").c_str());
  } else {
    download(file, options);
    try {
      check(file, options, "the downloaded file is removed");
    } catch (const ModelError&) {
      fs::remove(file.local_path);
      throw;
    }
  }
  hf_cache::finalize_file(file);
  if (!fs::exists(file.final_path)) throw ModelError(fmt::format("cannot write {}", file.final_path));
}

/// The files of a model among those that the hub lists.
hf_cache::hf_files chosen(const HubName& name, const hf_cache::hf_files& listed) {
  auto choice = choose(listed, name.quant);
  if (choice.parts.empty()) {
    auto quants = quants_of(listed);
    if (quants.empty()) throw ModelError(fmt::format("{} at {} has no GGUF file", name.repository, endpoint()));
    const bool are_all = quants.size() <= kMostNamed;
    if (!are_all) quants.resize(kMostNamed);
    throw ModelError(fmt::format("{} has no quant {}: it has {}{}", name.repository, name.quant,
                                 fmt::join(quants, ", "), are_all ? "" : ", …"));
  }
  if (!choice.is_complete())
    throw ModelError(fmt::format("{} has {} of the {} parts of {}", name.repository, choice.parts.size(), choice.count,
                                 printable(choice.parts.front().path)));
  return std::move(choice.parts);
}

/// The files of a model in the cache; empty if it is not there.
hf_cache::hf_files cached(const HubName& name) {
  for (const auto& version : versions_of(name.repository)) {
    auto choice = choose(version, name.quant);
    if (!choice.parts.empty() && choice.is_complete()) return std::move(choice.parts);
  }
  return {};
}

hf_cache::hf_files files_of(const HubName& name, bool offline) {
  std::string why = "nothing is downloaded offline";
  if (!offline) {
    static_cast<void>(endpoint());  // throws unless it is an address
    const auto listed = hf_cache::get_repo_files(name.repository, token());
    if (!listed.empty()) return chosen(name, listed);
    why = why_not_listed(name.repository);
  }
  auto files = cached(name);
  if (files.empty())
    throw ModelError(fmt::format("{}, and {} has no model {}{}{}", why, folder_of(name.repository), name.repository,
                                 name.quant.empty() ? "" : ":", name.quant));
  if (!offline) log().warn("{}: using {} from the cache", why, files.front().final_path);
  return files;
}

}  // namespace

std::string fetch(const std::string& name, const FetchOptions& options) {
  common_log_set_verbosity_thold(-1);  // exceptions have the errors that llama.cpp would log
  const auto files = files_of(HubName::parse(name), options.offline);
  try {
    for (const auto& file : files) fetch(file, options);
  } catch (const fs::filesystem_error& error) {
    throw ModelError(fmt::format("cannot write {}: {}", error.path1().string(), error.code().message()));
  }
  return files.front().final_path;
}

}  // namespace winnow::hub
