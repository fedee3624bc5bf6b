// SPDX-License-Identifier: Apache-2.0
// `winnow docs ask`: assembles documents for a question.
#include "winnow/ask.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/format.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/docs/docs.h"
#include "cli/docs/json.h"
#include "cli/docs/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run/answering.h"
#include "cli/run/report.h"
#include "cli/wording.h"
#include "documents/document_json.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;
using Documents = std::vector<std::shared_ptr<const documents::Document>>;

struct AskArguments : StoreOptions {
  CommonArguments common;
  RunOptions options;
  std::string method = "samkv";
  std::string budget;
  std::string unreadable = "error";
  DocumentChoice documents;
};

AskOptions ask_options(const AskArguments& a) {
  AskOptions out;
  out.method = AskSpec::parse(a.method);
  if (!a.budget.empty()) out.budget = Budget::parse(a.budget);
  out.kv_type = a.options.cache.kv_type;
  out.unreadable = a.unreadable == "recompute" ? UnreadableDocument::is_recomputed : UnreadableDocument::is_an_error;
  out.check();
  return out;
}

/// Asks questions about some documents.
class Asking {
 public:
  Asking(const AskArguments& arguments, const AskOptions& how, DocumentStore& store, Session& session, double load_ms)
      : arguments_(arguments),
        how_(how),
        session_(session),
        names_(arguments.documents.names_in(store)),
        load_ms_(load_ms) {
    for (const auto& name : names_) documents_.push_back(store.open(name, session));
  }

  void run() {
    for (const auto& question : arguments_.options.questions) answer(question);
    if (arguments_.options.json) write_json(whole_record());
    for (const auto& answer : answers_) {
      if (answer.generation.finish == FinishReason::interrupted) throw Interrupted("interrupted");
    }
  }

 private:
  /// An empty conversation with the prompt's options.
  Conversation before_documents() const {
    const auto& prompt = arguments_.options.prompt;
    return {"", {}, prompt.format, prompt.control};
  }

  void answer(const std::string& question) {
    const auto& options = arguments_.options;
    const auto tokens = session_.model().turn(before_documents(), question).tokens;
    session_.reset_peak();
    const auto begin = Clock::now();
    Asked asked = ask(session_, documents_, tokens, how_);
    note_recomputed(asked);
    Answer a;
    a.question = question;
    a.prefill_ms = ms_since(begin);
    a.after_prefill = asked.cache.stats();
    a.memory_after_prefill = session_.memory();
    a.prompt_tokens = asked.document_tokens + static_cast<int>(tokens.size());
    a.read_tokens = static_cast<int>(tokens.size());
    warn_about_length(a.prompt_tokens);
    answer_and_show(session_, asked.cache, asked.logits, options,
                    {session_.model(), before_documents().with_question(question)}, a);
    if (!options.quiet && !options.json) std::fputs(summary(asked, a).c_str(), stderr);
    kept_.push_back(documents::asked_json(asked));
    answers_.push_back(std::move(a));
  }

  /// Reports recomputed documents, and uses them for the next questions.
  void note_recomputed(const Asked& asked) {
    for (const auto& r : asked.recomputed_documents) {
      const auto i = as_size(r.index);
      log().error("{} could not be read and was recomputed from its tokens: {}", names_[i], r.why);
      recomputed_.push_back({{"name", names_[i]}, {"why", r.why}});
      documents_[i] = r.document;
    }
  }

  void warn_about_length(int tokens) const {
    const int context = session_.model().info().context;
    if (tokens > context && answers_.empty())
      log().warn("documents and question have {} tokens, more than the model's context of {}: answers may be worse",
                 tokens, context);
  }

  std::string summary(const Asked& asked, const Answer& a) const {
    std::string phases;
    for (const auto& phase : asked.phases)
      phases += fmt::format("{}{} {:.0f}", phases.empty() ? "" : ", ", phase.name, phase.seconds * 1e3);
    return fmt::format(
        "{} over {} of {}: {:.1f} % of the entries kept, {:.1f} % recomputed, {} held of {} full\n"
        "first token {:.0f} ms ({}) · {} at {:.1f} t/s\n",
        how_.method.print(), counted(documents_.size(), "document"), counted(asked.document_tokens, "token"),
        100 * asked.sequence_ratio, 100 * asked.recompute_ratio, format_bytes(a.after_prefill.bytes_held),
        format_bytes(a.after_prefill.bytes_full), a.first_token_ms, phases,
        counted(a.generation.tokens.size(), "token"), a.decode_ms > 0 ? a.decoded() * 1e3 / a.decode_ms : 0);
  }

  Json whole_record() const {
    Json out = record(arguments_.options, session_, answers_, load_ms_);
    out.erase("protocol");
    out["spec"] = how_.method.print();
    out["spec_full"] = how_.method.print_full();
    out["budget"] = how_.budget ? Json(how_.budget->print()) : Json(nullptr);
    out["documents"] = names_;
    out["recomputed_documents"] = recomputed_;
    for (std::size_t i = 0; i < answers_.size(); ++i) (answers_.size() == 1 ? out : out["answers"][i]).update(kept_[i]);
    return out;
  }

  const AskArguments& arguments_;
  const AskOptions& how_;
  Session& session_;
  std::vector<std::string> names_;
  double load_ms_;
  Documents documents_;
  std::vector<Answer> answers_;
  std::vector<Json> kept_;           ///< asked_json() of each answer
  Json recomputed_ = Json::array();  ///< documents that could not be read
};

void ask_command(AskArguments& a) {
  check_common(a.common, a.options);
  const AskOptions how = ask_options(a);
  a.documents.check();
  DocumentStore store = open_store(a, MissingStore::is_an_error);
  const auto begin = Clock::now();
  const auto model = Model::load(path_of(a.options.model), a.options.loading);
  Session session(model, a.options.session);
  session.on_stop(interrupted);
  if (!a.options.quiet) show_progress(session);
  Asking(a, how, store, session, ms_since(begin)).run();
}

}  // namespace

void add_docs_ask(CLI::App& docs) {
  auto* const command = docs.add_subcommand("ask", "answer questions about several documents");
  const auto a = std::make_shared<AskArguments>();
  command->add_option("-p,--prompt", a->options.questions, "question; several are asked about the same documents")
      ->required();
  add_choice_options(*command, a->documents);
  command->add_option("--method", a->method,
                      "samkv, recompute, reuse, multi-infllm, epic or cacheblend, with options: epic:initial=64");
  command->add_option("--budget", a->budget,
                      "entries per KV head that a query reads with multi-infllm, which needs a budget");
  command
      ->add_option("--unreadable", a->unreadable,
                   "if a document's stored values are damaged or gone: error, or recompute, which reads its tokens "
                   "again and says so")
      ->check(CLI::IsMember({"error", "recompute"}))
      ->capture_default_str();
  add_store_option(*command, *a);
  add_asking_options(*command, a->common, a->options);
  command
      ->add_option("--logprobs", a->options.generate.logprobs,
                   "with --json: log probabilities of each token and of the K best (default: none)")
      ->check(counts_from(0));
  command->add_flag("--json", a->options.json, "one JSON object on stdout");
  command->footer(
      "Examples:\n  winnow docs ask -m model.gguf --doc manual.txt faq.txt -p \"How is it reset?\"\n"
      "  winnow docs ask -m model.gguf --tag support --method samkv:update=overwrite -p \"How is it reset?\"");
  command->callback([a] { ask_command(*a); });
}

}  // namespace winnow::cli
