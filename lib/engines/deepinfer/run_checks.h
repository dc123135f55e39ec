#pragma once

#include "engines/deepinfer/arguments.h"
#include "engines/deepinfer/attention.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/variables.h"
#include "json/value.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::deepinfer {

// Checks beside the start-up of start_up.h: of files, devices, requests and the C++ scheduler.

// Interval in steps between two rebalancings, 0: never. Faults of the three intervals.
Checked<std::int64_t> check_rebalancing(const Variables& variables);

struct SamplingParameters {
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = -1;
  std::int64_t max_tokens = 16;
  std::int64_t top_logprobs = 0;
  bool seed_is_integer = true;
};
// As the engine uses them. `stated` spells the values in its texts. Source: sampling_params.py.
Checked<SamplingParameters> check_sampling(SamplingParameters parameters,
                                           const json::Value& stated);

// `files` are those of the folder. Source: tokenizer.py.
Checked<bool> check_tokenizer(const json::Value* config, std::string_view folder,
                              std::span<const std::string> files);

struct WeightIndex {
  bool found = false;
  std::vector<std::pair<std::string, std::string>> shard_of;  // tensor → file
  std::vector<std::string> shards_present;
};
// Source: loading.py, prepare_hf_coverage. Shards that are there count as unreadable: a check of
// their contents needs the files.
Checked<bool> check_weight_index(const WeightIndex& index, std::string_view folder);

// CUDA_VISIBLE_DEVICES after the platform object has been made; empty: not set.
Checked<std::string> visible_devices(const Variables& variables, const Machine& machine);

// Tokens whose keys a prefill step may sum up. Source: the C++ scheduler.
Checked<std::int64_t> check_scheduler_limits(const Arguments& arguments,
                                             const Variables& variables);

// Steps 6 and 14 of start-up. `unset`: CUDA_VISIBLE_DEVICES is known not to be set; where nothing
// is said of it, it counts as set.
Checked<bool> check_engine_init(const Arguments& arguments, const Variables& variables, bool unset);

}  // namespace kernelpath::engines::deepinfer
