#pragma once

#include "cli/settings.h"

#include <chrono>
#include <cstdint>

namespace kernelpath::cli {

// The progress of a batch as one line of a terminal that is drawn again and again. Standard error
// is all that it writes to.
class Progress {
 public:
  // Nothing is ever drawn unless `shown`.
  Progress(bool shown, std::int64_t requests) : shown_(shown), requests_(requests) {}
  ~Progress() { hide(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void count_token() { ++tokens_; }
  void count_done() {
    ++done_;
    stale_ = true;
  }
  // Draws the line: when a request was done, and else ten times a second at most.
  void draw();
  // Takes the line away, so that something else can be written.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  std::int64_t requests_;
  std::int64_t done_ = 0;
  std::int64_t tokens_ = 0;
  bool stale_ = true;
  bool visible_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point drawn_ = {};
};

// Whether there is a progress line: several requests, standard error a terminal that can take a
// line back, and nobody said --no-progress, --quiet or --log-json.
bool shows_progress(const Settings& settings, const ProcessEnvironment& environment,
                    std::int64_t requests);

}  // namespace kernelpath::cli
