// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::hub {

/// The address of the hub as it may be shown, without a password. Throws UsageError for one that is no address.
std::string endpoint();

/// HF_TOKEN; empty: there is none.
std::string token();

/// Why the hub did not give the list of a repository's files, as a sentence. Asks it again.
std::string why_not_listed(const std::string& repository);

/// The sentence for a status with which the hub refuses a repository or one of its files.
std::string refusal(const std::string& repository, long status);

}  // namespace winnow::hub
