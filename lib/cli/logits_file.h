#pragma once

#include "base/result.h"
#include "cli/output.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kernelpath::cli {

// --dump-logits: the logits of each token, float32 in the order of this machine (little-endian on
// every one that there are kernels for), one row behind the other.
class LogitsFile {
 public:
  // An empty path: nothing is written. Errors: kUsageConflict where several requests would mix,
  // kUsage for "-".
  static Result<LogitsFile> open(const std::string& path, std::int64_t requests);

  // Errors: kRuntime.
  Result<void> append(std::span<const float> logits);
  Result<void> commit();

 private:
  std::optional<Output> output_;
};

}  // namespace kernelpath::cli
