// SPDX-License-Identifier: Apache-2.0
// Conversations that use each command.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(folder / "method", "/kv h2o 24\nhello there\n/stats\nand more\n/kv\n/kv full\n");
  write_seed(folder / "file", "hello\n/save talk\n/reset\n/load talk\nand why?\n/exit\n");
  write_seed(folder / "help", "/help\n/halp\n/kv snapky\n/kv snapkv:window=4 10%\nwords\n");
}
