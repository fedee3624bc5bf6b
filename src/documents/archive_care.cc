// SPDX-License-Identifier: Apache-2.0
// Maintenance of a store: verification and garbage collection.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/as_size.h"
#include "documents/archive.h"
#include "documents/stored_document.h"
#include "winnow/error.h"

namespace winnow::documents {

std::vector<DocumentInfo> Archive::gc(std::size_t max_bytes) {
  std::vector<DocumentInfo> gone;
  bytes_->change([&](store::Change& change) {
    gone.clear();
    std::map<std::string, ContentRecord> contents;
    std::size_t bytes = 0;
    for (const auto& [key, record] : change.records(kContentPrefix)) {
      const std::string id = key.substr(kContentPrefix.size());
      bytes += as_size(contents.emplace(id, ContentRecord::read(record, what(id))).first->second.value_bytes);
    }
    std::vector<DocumentInfo> all;
    std::map<std::string, int> names;  ///< number of each content's names
    for (const auto& [key, record] : change.records(kNamePrefix)) {
      const std::string name = key.substr(kNamePrefix.size());
      const Found found{NameRecord::read(name, record, what(name)), {}};
      ++names[found.name.id];
      if (contents.contains(found.name.id)) all.push_back(info_of(name, {found.name, contents.at(found.name.id)}));
    }
    const auto oldest = [](const DocumentInfo& a, const DocumentInfo& b) {
      return std::tie(a.used, a.added, a.name) < std::tie(b.used, b.added, b.name);
    };
    std::sort(all.begin(), all.end(), oldest);
    for (const auto& document : all) {
      if (bytes <= max_bytes) break;
      change.erase_record(kNamePrefix + document.name);
      if (--names[document.id] == 0) {
        drop_content(change, document.id, contents.at(document.id));
        bytes -= document.bytes;
      }
      gone.push_back(document);
    }
  });
  return gone;
}

void Archive::verify_content(const ContentRecord& content, const std::string& what) const {
  const StoredHead stored = read_head(*bytes_, content, what);
  const auto& saved = stored.head.saved;
  for (int layer = 0; layer < content.layers; ++layer) {
    const std::string name = fmt::format("layer {} of {}", layer, what);
    const auto found = bytes_->value(content.layer_key(layer), std::span(&store::kWhole, 1));
    if (!found) throw InputError(fmt::format("{} is missing", name));
    check_layer(saved, layer, found->parts.front(), stored.sums[layer], name);
  }
}

std::vector<DocumentDamage> Archive::verify(const std::function<void(double)>& progress) const {
  std::vector<DocumentDamage> out;
  const auto checked = [&](const std::string& name, const auto& check) {
    try {
      check();
    } catch (const InputError& error) {
      out.push_back({name, error.what()});
    }
  };
  const auto all = bytes_->records("");
  std::map<std::string, std::string> named;  ///< one name of each content
  for (const auto& [key, record] : all) {
    checked("", [&, &key = key, &bytes = record] {
      if (!key.starts_with(kContentPrefix)) check_kind(key, bytes);
    });
    if (!key.starts_with(kNamePrefix)) continue;
    const std::string name = key.substr(kNamePrefix.size());
    checked(name, [&, &bytes = record] {
      const auto id = NameRecord::read(name, bytes, what(name)).id;
      named.emplace(id, name);
      if (!all.contains(kContentPrefix + id))
        throw InputError(fmt::format("{} is damaged: its content is missing", what(name)));
    });
  }
  std::size_t done = 0;
  for (const auto& [key, record] : all) {
    if (progress) progress(static_cast<double>(done++) / static_cast<double>(all.size()));
    if (!key.starts_with(kContentPrefix)) continue;
    const std::string id = key.substr(kContentPrefix.size());
    const auto it = named.find(id);
    const std::string name = it == named.end() ? "" : it->second;
    checked(name, [&, &bytes = record] {
      if (name.empty()) throw InputError(fmt::format("{} has no name", what(id)));
      const auto content = ContentRecord::read(bytes, what(name));
      verify_content(content, what(name));
    });
  }
  if (progress) progress(1);
  // Documents that were removed or replaced meanwhile are not damaged.
  std::erase_if(out, [&](const DocumentDamage& damage) {
    const auto now = damage.name.empty() ? std::nullopt : bytes_->record(kNamePrefix + damage.name);
    const auto before = damage.name.empty() ? all.end() : all.find(kNamePrefix + damage.name);
    return before != all.end() && now != before->second;
  });
  return out;
}

}  // namespace winnow::documents
