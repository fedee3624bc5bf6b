#pragma once

#include <set>
#include <string>
#include <vector>

#include "eval/plan.h"

namespace winnow::eval {

/// Processes that share a run write beside each other: each to a part, which is a folder of records of its own in the
/// run's folder. When all is done the parts' records come to the run's; parts of a run that was killed stay until then,
/// and nothing in them is measured again.

/// The folder of a process's part.
std::string part_of(const std::string& folder, int process);

/// The records of all parts that are there, after what killed processes have left is repaired. Throws InputError as
/// RecordFile does.
std::vector<Record> repaired_parts(const std::string& folder, const std::string& model_hash);

/// Adds what the parts have and `to` has not, in the plan's order, and removes them. A process that is killed here
/// leaves what the next one needs. Throws InputError.
void collect_parts(const std::string& folder, const std::string& model_hash, const Plan& plan, RecordFile& to);

/// Records by their groups, in the order of the first ones.
std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records);

/// The records of a run, whole or not: its own and those of its parts. Somebody may be writing. Throws InputError.
std::vector<Record> records_in(const std::string& folder);

/// What the run and its parts have measured. REQUIRES: all are whole, and nobody writes.
std::set<Key> known_in(const std::string& folder);

}  // namespace winnow::eval
