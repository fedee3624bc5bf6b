// SPDX-License-Identifier: Apache-2.0
// Specs of one method, with options, of several methods and of wrappers; budgets; types.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  int number = 0;
  for (const char* text :
       {"full", "streaming-llm:sinks=8,positions=cache", "snapkv:window=16,kernel=7,pool=max,gqa=mean",
        "full,snapkv:window=2,full", "pyramid(ada(h2o:heavy=2,recent=1):floor=0.2):beta=4",
        "chunk(tova):length=10,per=head", "10%", "64MiB", "q8_0/f16"})
    write_seed(folder / std::to_string(number++), text);
}
