// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>

#include "cli/commands.h"

namespace winnow::cli {

namespace {

std::atomic<bool> stop_asked{false};

void stop_once(int signal) {
  stop_asked.store(true);
  std::signal(signal, SIG_DFL);  // the second Ctrl-C ends the process
}

void stop(int /*signal*/) { stop_asked.store(true); }

}  // namespace

void on_interrupt(OnInterrupt action) {
  stop_asked.store(false);
  std::signal(SIGINT, action == OnInterrupt::ends ? SIG_DFL : action == OnInterrupt::stops ? stop : stop_once);
}

void interrupt_on_sigterm() { std::signal(SIGTERM, stop_once); }

bool interrupted() { return stop_asked.load(); }

}  // namespace winnow::cli
