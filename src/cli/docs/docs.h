// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each function adds its command to `winnow docs`.
void add_docs_add(CLI::App& docs);
void add_docs_ask(CLI::App& docs);
void add_docs_calibrate(CLI::App& docs);
void add_docs_store(CLI::App& docs);  ///< list, show, rm, verify, export, import, gc

}  // namespace winnow::cli
