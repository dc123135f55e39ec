#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

struct ProcessLimits {
  std::chrono::milliseconds time{10'000};
  std::size_t output_bytes = std::size_t{64} << 20;  // of standard output
};

struct ProcessResult {
  enum class End { kExited, kKilled, kTimedOut, kTooMuchOutput };

  End end = End::kExited;
  int code = 0;        // exit status, or the signal that killed it
  std::string output;  // of standard output
  std::string errors;  // the first 4 KiB of standard error
};

// Runs a program found on PATH with `input` on its standard input, and waits for it; kills it when
// it passes a limit. Error: kUnavailable (no such program, or the system cannot start one).
Result<ProcessResult> run_process(std::span<const std::string> arguments, std::string_view input,
                                  const ProcessLimits& limits);

}  // namespace kernelpath::tokenizer
