#pragma once

#include <string>
#include <vector>

#include "winnow/generate.h"
#include "winnow/model.h"
#include "winnow/session.h"

namespace winnow::cli {

enum class Protocol : std::uint8_t {
  aware,     ///< the cache is compressed after the question is seen
  agnostic,  ///< before
};

/// What `winnow run` was asked for; everything that can be judged without a model has been.
struct RunOptions {
  std::string model;
  std::string file;                    ///< path, `-` for stdin, or empty
  std::vector<std::string> questions;  ///< none: the text alone
  CacheOptions cache;
  ModelOptions loading;
  SessionOptions session;
  PromptText prompt;  ///< format, system and control tokens; text and question are filled in later
  GenerateOptions generate;
  Protocol protocol = Protocol::aware;
  std::string dump_kept;
  std::string save_kv;  ///< where the compressed prompt goes, or empty
  std::string load_kv;  ///< where it comes from, or empty; its cache options, protocol and prompt form are then the ones above
  std::string jsonl;
  std::string output;
  bool json = false;
  bool dry_run = false;
  bool quiet = false;
};

}  // namespace winnow::cli
