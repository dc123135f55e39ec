#pragma once

#include "run_checkpoint.h"

#include <cstdint>
#include <string>
#include <vector>

// Starting llm-run as several ranks.
namespace kernelpath::testing {

// Whether this build and this machine can.
bool has_ranks();

#define KERNELPATH_NEEDS_RANKS() \
  if (!has_ranks()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun"

// Arguments of the launcher that start `count` ranks of llm-run, or of another program, with
// `arguments`.
Call ranks_call(int count, const std::vector<std::string>& arguments);
Call ranks_call(int count, const std::string& program, const std::vector<std::string>& arguments);
// Starts more ranks in the same call, with arguments of their own.
void add_ranks(Call& call, int count, const std::vector<std::string>& arguments);

Outcome launch(const Call& call);
inline Outcome run_ranks(int count, const std::vector<std::string>& arguments) {
  return launch(ranks_call(count, arguments));
}

// How often `part` stands in `text`.
std::int64_t count_of(const std::string& text, const std::string& part);

}  // namespace kernelpath::testing
