// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "eval/plan.h"

namespace winnow::eval {

/// Processes that share a run write beside each other: each to a part, which is a folder of records of its own in the
/// run's folder, named part-0, part-1, … and marked by a file winnow-part. When all is done the parts' records come to
/// the run's; parts of a run that was killed stay until then, and nothing in them is measured again. A folder or link
/// with such a name but without the mark is not winnow's: it is never read, written or removed.

/// The folder of a process's part.
std::string part_of(const std::string& folder, int process);

/// Makes and marks the parts of so many processes, or goes on with those that are there. Throws InputError: a part's
/// name is taken by something else (which stays as it is), no permission.
void begin_parts(const std::string& folder, int processes);

/// What has a part's name in `folder` and is none.
std::vector<std::string> unmarked_parts(const std::string& folder);

/// The records of all parts that are there, after what killed processes have left is repaired. Throws InputError as
/// RecordFile does.
std::vector<Record> repaired_parts(const std::string& folder, const std::string& model_hash);

/// Adds what the parts have and `to` has not, in the plan's order, and removes the parts: the files that winnow
/// wrote, and the folder when nothing else is in it. A process that is killed here leaves what the next one needs.
/// Throws InputError.
void collect_parts(const std::string& folder, const std::string& model_hash, const Plan& plan, RecordFile& to);

/// Records by their groups, in the order of the first ones.
std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records);

/// The records of a run, whole or not: its own and those of its parts. Somebody may be writing. Throws InputError.
std::vector<Record> records_in(const std::string& folder);

/// What the run and its parts have measured. REQUIRES: all are whole, and nobody writes.
std::set<Key> known_in(const std::string& folder);

}  // namespace winnow::eval
