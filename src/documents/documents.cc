// SPDX-License-Identifier: Apache-2.0
#include "winnow/documents.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/clock.h"
#include "documents/adding.h"
#include "documents/archive.h"
#include "documents/calibrate.h"
#include "engine/model_impl.h"
#include "engine/session_impl.h"
#include "winnow/error.h"

namespace winnow {

namespace {

store::Missing missing(MissingStore what) {
  return what == MissingStore::is_created ? store::Missing::is_created : store::Missing::is_an_error;
}

}  // namespace

void check_exported(const std::string& path, const std::string& name) { documents::check_exported(path, name); }

DocumentStore::DocumentStore(const std::string& where, MissingStore what)
    : archive_(std::make_unique<documents::Archive>(
          store::open({where.empty() ? store::default_folder() : where}, missing(what)))) {}
DocumentStore::DocumentStore(DocumentStore&&) noexcept = default;
DocumentStore& DocumentStore::operator=(DocumentStore&&) noexcept = default;
DocumentStore::~DocumentStore() = default;

const std::string& DocumentStore::where() const { return archive_->where(); }

AddedDocument DocumentStore::add(Session& session, const NewDocument& document, const CacheOptions& cache) {
  documents::Adding adding(session.model(), document, cache);
  if (adding.add_known(*archive_)) return adding.added();
  adding.begin(engine::parts_of(session));
  while (adding.advance()) continue;
  adding.keep(*archive_);
  return adding.added();
}

std::shared_ptr<const documents::Document> DocumentStore::open(const std::string& name, Session& session) {
  return open(name, session.model());
}

std::shared_ptr<const documents::Document> DocumentStore::open(const std::string& name, const Model& model) {
  return archive_->open(name, engine::identity_of(model));
}

Calibration DocumentStore::calibrate(std::span<const std::string> names) const {
  std::vector<std::shared_ptr<const documents::Document>> documents;
  Calibration out;
  for (const auto& name : names) {
    const auto& document = *documents.emplace_back(archive_->open(name));
    const auto& saved = document.head().saved;
    if (document.is_compressed())
      throw InputError(fmt::format(
          "the document {} cannot be used to find deciding layers: it was compressed by {} when it was added", name,
          saved.options.spec.print()));
    if (!(saved.model == documents.front()->head().saved.model))
      throw InputError(fmt::format("the documents {} and {} were read by different models", names.front(), name));
    out.exponents.push_back(documents::exponents_of(document.head()));
    out.long_enough += documents::is_long_enough(document.head().layout()) ? 1 : 0;
  }
  out.scores = documents::layer_scores(documents);
  out.deciding = documents::deciding_layers(out.scores);
  return out;
}

std::vector<DocumentInfo> DocumentStore::list() const { return archive_->list(); }
DocumentInfo DocumentStore::info(const std::string& name) const { return archive_->info(name); }
void DocumentStore::remove(std::span<const std::string> names) { archive_->remove(names); }
std::vector<DocumentDamage> DocumentStore::verify(const std::function<void(double)>& progress) const {
  return archive_->verify(progress);
}
std::vector<DocumentInfo> DocumentStore::gc(std::size_t max_bytes) { return archive_->gc(max_bytes); }

void DocumentStore::export_to(const std::string& name, const std::string& path) const {
  archive_->export_to(name, path);
}

AddedDocument DocumentStore::import_from(const std::string& path, const std::string& name) {
  const auto begin = Clock::now();
  documents::Label label{name, {}};
  AddedDocument out;
  out.outcome = archive_->import_from(path, label);
  out.store_ms = ms_since(begin);
  out.info = info(label.name);
  return out;
}

}  // namespace winnow
