// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "policy/views.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `page`: entries of a page, by default `entries`.
Option page_option(int entries);
/// `dense`: first layers that read everything.
Option dense_option();

/// How many pages of a lane of so many entries a query reads, at least 1.
using PageCount = std::function<int(const Terms&, int length, int pages)>;

/// Lets each query of a method read the pages of a lane whose keys could give it the largest products (Quest: Tang et
/// al., 2024, "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference", section 3). The last page is
/// always read, and counts. `options` has the two above. REQUIRES: lanes that only grow, of rotated keys.
void read_pages(Method& method, const Options& options, const PageCount& count);

}  // namespace winnow::policy
