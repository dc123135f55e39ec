#pragma once

#include "cli/run_ranks.h"
#include "cli/settings.h"
#include "engines/request.h"
#include "engines/resolution.h"
#include "runtime/session.h"

#include <string>
#include <vector>

namespace kernelpath::cli {

// What a run is asked for, as far as its session depends on it.
struct RunQuestion {
  const Settings& settings;
  const engines::Request& request;
  const engines::Resolution& resolution;
  const RunRanks& ranks;
  const std::string& weights;  // folder or GGUF file
};

// What the session is opened with: threads and kernels, room for the prompts that run at one time.
// Errors: kUsageConflict and kUnavailable, of --kernel.
Result<runtime::SessionOptions> session_options(const RunQuestion& question,
                                                const std::vector<runtime::Prompt>& prompts);

}  // namespace kernelpath::cli
