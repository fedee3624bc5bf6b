// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "eval/runner.h"

namespace winnow::eval {

/// Processes that share a run write at the same time, each to its own folder of records. These process folders lie in
/// the run's folder, are named part-0, part-1, … and are marked by a file winnow-part. When all processes are done,
/// their records move to the run's file. The folders of a killed run stay until then, and their records are not
/// measured again. A folder or link with such a name but without the mark is never read, written or removed.

/// The folder of a process.
std::string process_folder(const std::string& folder, int process);

/// Makes and marks the folders of `processes` processes, or uses marked ones that exist. Throws InputError for missing
/// permission, or if something else, which is left unchanged, has such a name.
void begin_process_folders(const std::string& folder, int processes);

/// Paths in `folder` that have a process folder's name but no mark.
std::vector<std::string> unmarked_process_folders(const std::string& folder);

/// Records of all process folders, after repairing the files of killed processes. Throws InputError as RecordFile does.
std::vector<Record> repaired_process_records(const std::string& folder, const std::string& model_hash);

/// Moves the records that `to` lacks from the process folders, in the evaluation's order, and removes the folders: the
/// files that winnow wrote, and the folder if nothing else is in it. If this is interrupted, the next call completes
/// it. Throws InputError.
void collect_process_folders(const std::string& folder, const std::string& model_hash, const Evaluation& evaluation,
                             RecordFile& to);

/// Records by group, in the order of their first records.
std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records);

/// Records of a run and of its processes, complete or not. Another process may be writing. Throws InputError.
std::vector<Record> records_in(const std::string& folder);

/// Keys of the records of a run and its processes. REQUIRES: all files are complete, and no process writes.
std::set<Key> known_in(const std::string& folder);

}  // namespace winnow::eval
