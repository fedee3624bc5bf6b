// SPDX-License-Identifier: Apache-2.0
// Exported documents, whole and compressed.
#include <string>

#include "documents/archive.h"
#include "documents/some_document.h"
#include "fuzz/seed_model.h"
#include "fuzz/seeds.h"
#include "support/memory_store.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  Session session(seed_model(), {1, Precision::automatic, 512});
  documents::Archive archive(open_memory());
  for (const std::string spec : {"full", "ada-snapkv:window=4"}) {
    CacheOptions options;
    options.spec = Spec::parse(spec);
    if (spec != "full") options.budget = Budget::parse("16");
    const auto document = document_of(session, some_tokens(70, 1), options);
    archive.put({spec, {"tag"}}, document.head, document.sequence());
    archive.export_to(spec, folder / spec);
  }
}
