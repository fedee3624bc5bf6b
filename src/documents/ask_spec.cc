// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <utility>

#include "documents/ask_method.h"
#include "policy/spec_reader.h"
#include "winnow/error.h"

namespace winnow {

namespace documents {

const std::vector<AskMethod>& ask_methods() {
  static const std::vector<AskMethod> all = {methods::samkv(), methods::recompute(),  methods::reuse(),
                                             methods::epic(),  methods::cacheblend(), methods::multi_infllm()};
  return all;
}

}  // namespace documents

struct AskSpec::Impl {
  const documents::AskMethod* method;
  policy::Options options;
  std::string canonical;
  std::string full;
};

AskSpec::AskSpec() : AskSpec(parse("samkv")) {}

AskSpec AskSpec::parse(std::string_view text) {
  policy::SpecReader reader(text);
  const auto& method = policy::find_named(documents::ask_methods(), reader.name(), "method");
  policy::Options options = reader.options(method.name, method.options).values;
  reader.end();
  auto canonical = method.name + print_changed(options, method.options);
  auto full = method.name + print_all(options, method.options);
  return AskSpec(
      std::make_shared<const Impl>(Impl{&method, std::move(options), std::move(canonical), std::move(full)}));
}

std::string AskSpec::print() const { return impl_->canonical; }
std::string AskSpec::print_full() const { return impl_->full; }
std::string AskSpec::name() const { return impl_->method->name; }
const documents::AskMethod& AskSpec::method() const { return *impl_->method; }
const policy::Options& AskSpec::options() const { return impl_->options; }
bool AskSpec::needs_budget() const { return Spec::parse(impl_->method->cache_spec).method().needs_budget(); }

void AskOptions::check() const {
  if (method.needs_budget() && !budget)
    throw UsageError(fmt::format("{} needs a budget: give entries per KV head (512), a share (10%) or bytes (64MiB)",
                                 method.name()));
  if (!method.needs_budget() && budget) {
    throw UsageError(
        fmt::format("{} takes no budget: the question and the documents decide how much it keeps", method.name()));
  }
}

std::vector<MethodInfo> list_ask_methods() {
  std::vector<MethodInfo> out;
  for (const auto& method : documents::ask_methods()) {
    std::vector<OptionInfo> options;
    for (const auto& o : method.options) options.push_back({o.name, o.default_text(), o.range_text(), o.effect});
    out.push_back({method.name, method.summary, method.paper, {}, std::move(options)});
  }
  return out;
}

}  // namespace winnow
