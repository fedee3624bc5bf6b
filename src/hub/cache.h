// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hf-cache.h>

#include <string>
#include <vector>

namespace winnow::hub {

/// The folder of a repository in the hub's cache. Throws ModelError where there is no place for a cache.
std::string folder_of(const std::string& repository);

/// The file by whose lock the download of a file with this checksum is told to others.
std::string lock_of(const std::string& repository, const std::string& checksum);

/// The files of each version of a repository that the cache has, by path: first those of the version that was asked for
/// last, then the newest. Files whose contents are not there are left out.
std::vector<hf_cache::hf_files> versions_of(const std::string& repository);

}  // namespace winnow::hub
