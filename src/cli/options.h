// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/model_source.h"
#include "cli/texts.h"
#include "winnow/generate.h"
#include "winnow/model.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::cli {

/// The options of every command that answers.
struct CommonOptions {
  ModelSource model;
  std::string file;     ///< path, `-` for stdin, or empty
  std::string piped;    ///< text of stdin if no file is named
  std::string load_kv;  ///< saved cache to load, or empty; cache options and prompt are then the file's
  CacheOptions cache;
  ModelOptions loading;
  SessionOptions session;
  PromptText prompt;  ///< format, system message and control tokens; text and question are set later
  GenerateOptions generate;
  bool quiet = false;
};

/// The conversation before its first question: the prompt's format, and the text of -f. Throws InputError.
Conversation conversation_of(const CommonOptions& options);

/// Options of `winnow run`, after all checks that need no model.
struct RunOptions : CommonOptions {
  std::vector<std::string> questions;  ///< none: only the text
  Protocol protocol = Protocol::aware;
  std::string dump_kept;
  std::string save_kv;  ///< where to save the compressed prompt, or empty
  std::string jsonl;
  std::string output;
  TextChoice texts;
  int parallel = 16;  ///< prompts of `jsonl` that are answered at the same time
  bool json = false;
  bool dry_run = false;
};

}  // namespace winnow::cli
