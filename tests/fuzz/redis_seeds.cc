// SPDX-License-Identifier: Apache-2.0
// Answers of a server with two documents, and of an empty server.
#include <cstdint>
#include <string>

#include "documents/some_document.h"
#include "fuzz/redis_session.h"
#include "fuzz/seed_model.h"
#include "fuzz/seeds.h"
#include "store/fake_redis.h"

namespace {

using namespace winnow;

std::string answers_of(test::FakeRedis& server) {
  std::string all;
  server.tamper([&](const test::Words&, const std::string& answer) {
    const auto length = static_cast<std::uint32_t>(answer.size());
    all.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(answer);
    return answer;
  });
  test::use_archive_at(server.url());
  server.tamper({});
  return all;
}

void add_document(documents::Archive& archive, Session& session, const std::string& name, const std::string& spec) {
  CacheOptions options;
  options.spec = Spec::parse(spec);
  if (spec != "full") options.budget = Budget::parse("16");
  const auto document = test::document_of(session, test::some_tokens(70, 1), options);
  archive.put({name, {"tag"}}, document.head, document.sequence());
}

}  // namespace

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  FakeRedis server;
  write_seed(folder / "empty", answers_of(server));
  FakeRedis full;
  Session session(seed_model(), {1, Precision::automatic, 512});
  documents::Archive archive(store::open({full.url()}, store::Missing::is_created));
  add_document(archive, session, "plain", "full");
  add_document(archive, session, "small", "snapkv:window=4");
  write_seed(folder / "two", answers_of(full));
}
