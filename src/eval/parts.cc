#include "eval/parts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

namespace winnow::eval {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "part-";

std::vector<std::string> parts_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with(kPrefix))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

using Place = std::tuple<std::string, std::string, std::string>;  // task, id, protocol

/// Where a plan measures its groups; what it does not measure comes behind.
class Order {
 public:
  explicit Order(const Plan& plan) {
    for (const auto& task : plan.tasks) {
      for (const auto& sample : task.samples) {
        for (const Protocol protocol : plan.protocols)
          places_.emplace(Place(sample.task, sample.id, name_of(protocol)), places_.size());
      }
    }
  }

  std::size_t of(const Record& record) const {
    const auto found = places_.find(Place(record.key.task, record.key.id, record.key.protocol));
    return found == places_.end() ? places_.size() : found->second;
  }

 private:
  std::map<Place, std::size_t> places_;
};

std::set<Key> keys_of(const std::vector<Record>& records) {
  std::set<Key> out;
  for (const auto& record : records) out.insert(record.key);
  return out;
}

}  // namespace

std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records) {
  std::vector<std::vector<Record>> out;
  std::map<std::string, std::size_t> known;
  for (const auto& record : records) {
    const auto [place, is_new] = known.emplace(record.group, out.size());
    if (is_new) out.emplace_back();
    out[place->second].push_back(record);
  }
  return out;
}

std::string part_of(const std::string& folder, int process) {
  return (fs::path(folder) / (kPrefix + std::to_string(process))).string();
}

std::vector<Record> repaired_parts(const std::string& folder, const std::string& model_hash) {
  std::vector<Record> out;
  for (const auto& part : parts_in(folder)) {
    const RecordFile file(part, model_hash);
    out.insert(out.end(), file.records().begin(), file.records().end());
  }
  return out;
}

void collect_parts(const std::string& folder, const std::string& model_hash, const Plan& plan, RecordFile& to) {
  auto groups = groups_of(repaired_parts(folder, model_hash));
  const Order order(plan);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const auto& a, const auto& b) { return order.of(a.front()) < order.of(b.front()); });
  const auto known = keys_of(to.records());
  for (const auto& group : groups) {
    if (!known.contains(group.front().key)) to.add(group);
  }
  for (const auto& part : parts_in(folder)) fs::remove_all(part);
}

std::vector<Record> records_in(const std::string& folder) {
  auto out = read_records((fs::path(folder) / "records.jsonl").string());
  for (const auto& part : parts_in(folder)) {
    const auto path = fs::path(part) / "records.jsonl";
    if (!fs::exists(path)) continue;
    const auto more = read_records(path.string());
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::set<Key> known_in(const std::string& folder) { return keys_of(records_in(folder)); }

}  // namespace winnow::eval
