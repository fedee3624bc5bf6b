// SPDX-License-Identifier: Apache-2.0
#include "eval/record_file.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text_lines.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct Lines {
  std::vector<Record> records;
  bool cut = false;  ///< the last line has no end
};

Record parse_record(const std::string& line, const TextLines& at) {
  std::string why;
  try {
    return record_of(parse_json<OrderedJson>(line));
  } catch (const JsonError& error) {
    why = error.what();
  } catch (const nlohmann::json::exception& error) {
    why = reason_of(error);
  }
  throw InputError(fmt::format("{} line {} is not a record: {}", at.input().name(), at.number(), why));
}

/// True if a line without a newline may be the beginning of a record.
bool may_be_cut(std::string_view line) {
  constexpr std::string_view kBegin = R"({"task":)";
  return line.substr(0, kBegin.size()) == kBegin.substr(0, line.size());
}

/// The first `most` lines; empty if there is no file. An unreadable file is an error: it must not look like a shorter
/// one.
Lines read_lines(const std::string& path, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  Lines out;
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return out;
  if (type == std::filesystem::file_type::fifo)  // opening it would wait for a writer
    throw InputError(fmt::format("cannot read {}: it is not a regular file", path));
  TextLines lines{TextInput(path)};
  while (out.records.size() < most && lines.next()) {
    const std::string line = lines.rest();  // only now is it known whether the line has a newline
    out.cut = !lines.is_ended();
    if (!out.cut) {
      out.records.push_back(parse_record(line, lines));
    } else if (!may_be_cut(line)) {
      throw InputError(fmt::format("{} line {} is not a record", path, lines.number()));
    }
  }
  return out;
}

std::string lines_of(std::span<const Record> records) {
  std::string out;
  for (const auto& record : records) out += line_of(record) + "\n";
  return out;
}

/// Removes the records of incomplete groups. Returns the number of these groups.
int drop_partial_groups(std::vector<Record>& records) {
  std::map<std::string, int> there;
  for (const auto& record : records) ++there[record.group];
  const auto is_partial = [&](const Record& record) { return there[record.group] < record.group_size; };
  std::map<std::string, int> partial;
  for (const auto& record : records) {
    if (is_partial(record)) ++partial[record.group];
  }
  std::erase_if(records, is_partial);
  return static_cast<int>(partial.size());
}

}  // namespace

RecordFile::RecordFile(const std::string& folder, const std::string& model_hash)
    : path_((std::filesystem::path(folder) / "records.jsonl").string()) {
  read_lines(path_, 1);  // writes nothing beside a file that is not winnow's
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  lock_.emplace((std::filesystem::path(folder) / "lock").string()).lock(path_);
  load(model_hash);
  file_.emplace(path_);
}

void RecordFile::load(const std::string& model_hash) {
  auto lines = read_lines(path_);
  for (std::size_t i = 0; i < lines.records.size(); ++i) {
    if (lines.records[i].model_hash != model_hash) {
      throw InputError(
          fmt::format("{} line {} is a record of the model with hash {}, not {}: give another folder with -o", path_,
                      i + 1, lines.records[i].model_hash, model_hash));
    }
  }
  records_ = std::move(lines.records);
  repairs_ = {lines.cut ? 1 : 0, drop_partial_groups(records_)};
  if (repairs_.cut_lines + repairs_.partial_groups > 0) rewrite();
}

void RecordFile::rewrite() const {
  const std::string text = lines_of(records_);
  ReplacingFile file(path_);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void RecordFile::add(std::span<const Record> group) {
  file_->append(lines_of(group));
  records_.insert(records_.end(), group.begin(), group.end());
}

std::vector<Record> read_records(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw InputError(fmt::format("{}: no such file", path));
  return read_lines(path).records;
}

}  // namespace winnow::eval
