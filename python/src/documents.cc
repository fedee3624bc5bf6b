// SPDX-License-Identifier: Apache-2.0
#include "winnow/documents.h"

#include <nanobind/stl/chrono.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "bind.h"
#include "documents/document_json.h"
#include "options.h"
#include "session_cache.h"
#include "winnow/ask.h"
#include "winnow/error.h"

namespace winnow::python {

namespace {

/// A store that can be closed. Open documents keep it alive.
class Store {
 public:
  explicit Store(const std::string& where) : store_(std::make_shared<DocumentStore>(where)) {}

  /// Runs f(DocumentStore&) without the GIL. Throws UsageError if the store is closed.
  template <class F>
  auto call(const F& f) const {
    const auto store = open();
    const nb::gil_scoped_release nogil;
    return f(*store);
  }
  std::shared_ptr<DocumentStore> open() const {
    if (!store_) throw UsageError("the store of documents is closed");
    return store_;
  }
  void close() { store_.reset(); }

 private:
  std::shared_ptr<DocumentStore> store_;
};

/// An open document, with the objects that must outlive it.
struct OpenDocument {
  std::string name;
  std::shared_ptr<DocumentStore> store;
  std::shared_ptr<SessionState> session;
  std::shared_ptr<const documents::Document> document;
};

AddedDocument add(const Store& self, const std::shared_ptr<SessionState>& session, const std::string& name,
                  const std::string& text, const std::vector<std::string>& tags, const nb::object& cache) {
  const auto options = cache_options_of(cache, Protocol::agnostic);
  const auto store = self.open();
  return session->call([&](Session& inner) { return store->add(inner, {name, tags, {text}}, options); });
}

OpenDocument open(const Store& self, const std::string& name, const std::shared_ptr<SessionState>& session) {
  const auto store = self.open();
  auto document = session->call([&](Session& inner) { return store->open(name, inner); });
  return {name, store, session, std::move(document)};
}

/// Result of asking: a dictionary as in `winnow docs ask --json`.
nb::object facts_of(const Asked& asked) {
  auto facts = documents::asked_json(asked);
  facts["document_tokens"] = asked.document_tokens;
  return nb::module_::import_("json").attr("loads")(facts.dump());
}

std::pair<CachePointer, nb::object> ask_documents(const std::shared_ptr<SessionState>& session,
                                                  const std::vector<OpenDocument*>& documents,
                                                  const std::string& question, const std::string& method,
                                                  const nb::object& budget, const std::string& kv_type,
                                                  const std::string& format) {
  AskOptions options;
  options.method = AskSpec::parse(method);
  options.budget = budget_of(budget);
  options.kv_type = KvType::parse(kv_type);
  options.check();
  const Conversation before{"", {}, format_of(format)};
  std::vector<std::shared_ptr<const documents::Document>> inner;
  for (const auto* const document : documents) {
    if (document->session != session)
      throw UsageError("the document '" + document->name + "' was opened for another session");
    inner.push_back(document->document);
  }
  Transcript transcript{before.with_question(question), {}};
  auto asked = session->call([&](Session& s) {
    transcript.tokens = s.model().turn(before, question).tokens;
    return ask(s, inner, transcript.tokens, options);
  });
  const auto facts = facts_of(asked);
  transcript.tokens.assign(static_cast<std::size_t>(asked.cache.stats().tokens_seen), kUnknown);
  return {
      std::make_shared<SessionCache>(session, std::move(asked.cache),
                                     std::make_shared<const std::vector<float>>(std::move(asked.logits)), transcript),
      facts};
}

void bind_infos(nb::module_& m) {
  nb::class_<DocumentInfo>(m, "DocumentInfo", "Facts about a stored document.")
      .def_ro("name", &DocumentInfo::name)
      .def_ro("tags", &DocumentInfo::tags)
      .def_ro("id", &DocumentInfo::id, "Identifies the content: equal for equal tokens and cache options.")
      .def_ro("cache", &DocumentInfo::cache)
      .def_ro("model_name", &DocumentInfo::model_name)
      .def_ro("tokens", &DocumentInfo::tokens)
      .def_ro("bytes", &DocumentInfo::bytes)
      .def_ro("added", &DocumentInfo::added)
      .def_ro("used", &DocumentInfo::used);
  nb::class_<AddedDocument>(m, "AddedDocument", "Result of adding a document.")
      .def_prop_ro(
          "outcome", [](const AddedDocument& self) { return documents::name_of(self.outcome); },
          "'added', 'replaced' or 'unchanged'.")
      .def_ro("was_read", &AddedDocument::was_read)
      .def_ro("info", &AddedDocument::info);
  nb::class_<DocumentDamage>(m, "DocumentDamage", "Damage found by verify().")
      .def_ro("name", &DocumentDamage::name)
      .def_ro("what", &DocumentDamage::what);
  nb::class_<OpenDocument>(m, "Document", "A document to ask() about.").def_ro("name", &OpenDocument::name);
}

void bind_store(nb::module_& m) {
  nb::class_<Store>(
      m, "DocumentStore",
      "Documents that were read once, with their keys and values, in a folder or on a Redis server. Any number\n"
      "of threads and processes may use one store. Calls raise StoreError, InputError, UnknownDocument.")
      .def(nb::init<const std::string&>(), nb::arg("where") = "",
           "where: a folder, redis[s]://HOST[:PORT], or '' for the user's data directory.")
      .def("add", add, nb::arg("session"), nb::arg("name"), nb::arg("text"), nb::kw_only(),
           nb::arg("tags") = std::vector<std::string>(), nb::arg("cache") = "full",
           nb::sig("def add(self, session: Session, name: str, text: str, *, tags: typing.Sequence[str] = [], "
                   "cache: CacheOptions | str | tuple = 'full') -> AddedDocument"),
           "Reads a document and stores it, with its full cache or compressed.")
      .def("open", open, nb::arg("name"), nb::arg("session"))
      .def("list", [](const Store& self) { return self.call([](DocumentStore& s) { return s.list(); }); })
      .def(
          "info",
          [](const Store& self, const std::string& name) {
            return self.call([&](DocumentStore& s) { return s.info(name); });
          },
          nb::arg("name"))
      .def(
          "remove",
          [](const Store& self, const std::vector<std::string>& names) {
            self.call([&](DocumentStore& s) { s.remove(names); });
          },
          nb::arg("names"), "Removes all of these documents, or none if one does not exist.")
      .def(
          "verify", [](const Store& self) { return self.call([](DocumentStore& s) { return s.verify(); }); },
          "Computes all checksums.")
      .def(
          "export_to",
          [](const Store& self, const std::string& name, const std::string& path) {
            self.call([&](DocumentStore& s) { s.export_to(name, path); });
          },
          nb::arg("name"), nb::arg("path"))
      .def(
          "import_from",
          [](const Store& self, const std::string& path, const std::string& name) {
            return self.call([&](DocumentStore& s) { return s.import_from(path, name); });
          },
          nb::arg("path"), nb::arg("name") = "")
      .def(
          "gc",
          [](const Store& self, std::size_t max_bytes) {
            return self.call([&](DocumentStore& s) { return s.gc(max_bytes); });
          },
          nb::arg("max_bytes"),
          "Removes the least recently used documents until the others have at most this many bytes.")
      .def("close", &Store::close)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](Store& self, const nb::args&) { self.close(); }, nb::arg("args"))
      .def_prop_ro(
          "where", [](const Store& self) { return self.open()->where(); }, "Address of the store, without a password.");
}

}  // namespace

void bind_documents(nb::module_& m) {
  bind_infos(m);
  bind_store(m);
  m.def("ask", ask_documents, nb::arg("session"), nb::arg("documents"), nb::arg("question"), nb::kw_only(),
        nb::arg("method") = "samkv", nb::arg("budget").none() = nb::none(), nb::arg("kv_type") = "f16",
        nb::arg("format") = "chat",
        nb::sig(
            "def ask(session: Session, documents: typing.Sequence[Document], question: str, *, method: str = 'samkv', "
            "budget: int | str | None = None, kv_type: str = 'f16', format: str = 'chat') -> tuple[Cache, dict]"),
        "Combines documents, in their order, and reads a question over them. Returns a cache to answer from, and\n"
        "statistics as in `winnow docs ask --json`. Raises Error.");
}

}  // namespace winnow::python
