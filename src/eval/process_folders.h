// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "eval/runner.h"

namespace winnow::eval {

/// Processes that share a run write at the same time, each to a folder of records of its own. These process folders
/// lie in the run's folder, are named part-0, part-1, … and are marked by a file winnow-part. When all processes are
/// done, their records move to the run's file. The folders of a killed run stay until then, and nothing in them is
/// measured again. A folder or link that has such a name but no mark is not winnow's: it is never read, written or
/// removed.

/// The folder of a process.
std::string process_folder(const std::string& folder, int process);

/// Makes and marks the folders of `processes` processes; marked ones that are there are used. Throws InputError: a name
/// is taken by something else (which stays as it is), no permission.
void begin_process_folders(const std::string& folder, int processes);

/// What has a process folder's name in `folder` but no mark.
std::vector<std::string> unmarked_process_folders(const std::string& folder);

/// The records of all process folders, after repairing what killed processes left. Throws InputError as RecordFile
/// does.
std::vector<Record> repaired_process_records(const std::string& folder, const std::string& model_hash);

/// Adds those records of the process folders that `to` lacks, in the evaluation's order, and removes the folders: the
/// files that winnow wrote, and the folder when nothing else is in it. A process that is killed here leaves what the
/// next one needs. Throws InputError.
void collect_process_folders(const std::string& folder, const std::string& model_hash, const Evaluation& evaluation,
                             RecordFile& to);

/// Records by their groups, in the order of the first ones.
std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records);

/// The records of a run, whole or not: its own and those of its processes. Somebody may be writing. Throws InputError.
std::vector<Record> records_in(const std::string& folder);

/// What the run and its processes have measured. REQUIRES: all files are whole, and nobody writes.
std::set<Key> known_in(const std::string& folder);

}  // namespace winnow::eval
