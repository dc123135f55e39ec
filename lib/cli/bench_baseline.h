#pragma once

#include "base/result.h"
#include "bench/runner.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// The times of an earlier run, by shape and state of the cache.
class BenchBaseline {
 public:
  // Reads a document of --format json. Errors: those of reading JSON, kInputSchema where it is none
  // of llm-bench's.
  static Result<BenchBaseline> read(std::string_view text, const std::string& file);

  // How the row's time compares; nothing where the baseline lacks the shape or its time was not
  // valid. It has regressed where it is slower by more than `most` (0.03: 3 %).
  [[nodiscard]] std::optional<bench::BaselineChange> compare(const bench::Row& row,
                                                             double most) const;
  // What it was measured on: "NVIDIA H200"; empty where the file does not say.
  [[nodiscard]] const std::string& device() const { return device_; }

 private:
  std::string device_;
  std::map<std::string, double> medians_;
};

// Times that scripts/bench-peers.py has measured: for each shape its peers.
Result<std::map<std::string, std::vector<bench::PeerRow>>> read_peers(std::string_view text,
                                                                      const std::string& file);

// Puts them into their row. A peer that the run itself has timed, by turns with our kernel, keeps
// that time; one that it has no time of gives way.
void add_peers(const std::vector<bench::PeerRow>& peers, bench::Row& row);

}  // namespace kernelpath::cli
