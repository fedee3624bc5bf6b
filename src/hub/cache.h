// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hf-cache.h>

#include <string>
#include <vector>

namespace winnow::hub {

/// Folder of a repository in the hub's cache. Throws ModelError if there is no place for a cache.
std::string folder_of(const std::string& repository);

/// Lock file for downloads of a file with this checksum.
std::string lock_of(const std::string& repository, const std::string& checksum);

/// Files of each version of a repository in the cache, by path: first the version that was requested last, then the
/// newest ones. Files without contents are left out.
std::vector<hf_cache::hf_files> versions_of(const std::string& repository);

}  // namespace winnow::hub
