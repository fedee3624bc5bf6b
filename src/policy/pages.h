// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "policy/views.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// Option `page`: entries of a page; default `entries`.
Option page_option(int entries);
/// Option `dense`: number of first layers that read everything.
Option dense_option();

/// Number of pages of a lane that a query reads, at least 1.
using PageCount = std::function<int(const Terms&, int length, int pages)>;

/// Makes each query of a method read the pages with the largest upper bound of its products with their keys (Quest:
/// Tang et al., 2024, "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference", section 3). The last page
/// is always read, as one of them. `options` has page_option() and dense_option(). REQUIRES: lanes that only grow, of
/// rotated keys.
void read_pages(Method& method, const Options& options, const PageCount& count);

}  // namespace winnow::policy
