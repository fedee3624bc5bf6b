// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::hub {

/// Address of the hub for messages, without a password. Throws UsageError if it is not an address.
std::string endpoint();

/// HF_TOKEN; empty: none.
std::string token();

/// Reason why the hub did not list a repository's files, as a sentence. Repeats the request.
std::string why_not_listed(const std::string& repository);

/// Message for the status with which the hub refuses a repository or a file.
std::string refusal(const std::string& repository, long status);

}  // namespace winnow::hub
