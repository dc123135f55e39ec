#pragma once

#include "base/result.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/variables.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

enum class EngineType : std::uint8_t { kNormal, kPrompt, kCompletion };
std::string_view engine_type_name(EngineType type);

// The keyword arguments that decide something here. Source: arg_utils.py, EngineArgs.
struct Arguments {
  std::string load_format = "auto";
  std::optional<std::int64_t> max_model_len = {};
  std::optional<std::int64_t> max_num_batched_tokens = {};
  std::int64_t max_num_seqs = 256;
  double gpu_memory_utilization = 0.9;
  std::string gpu_memory_utilization_text = "0.9";  // as Python prints it
  std::int64_t tokens_per_block = -1;               // -1: the engine's, 128
  bool chunked_prefill = false;
  bool stop_preempted_request = true;
  EngineType engine_type = EngineType::kNormal;
  std::int64_t data_parallel_size = 0;  // 0: from the others
  std::int64_t context_parallel_size = 1;
  std::int64_t expert_parallel_size = 1;
  std::int64_t engram_parallel_size = 0;  // 0: context times data
  std::int64_t engine_rank = 0;
  // The first argument that the engine does not have; empty: none.
  std::string unknown = {};
  // The first argument beyond any deployment; empty: none. Sizes made of it could not be told.
  std::string too_large = {};
};

struct ArgumentInfo {
  std::string_view name;
  std::string_view type;      // "int", "float", "bool", "str"
  std::string_view fallback;  // in Python's spelling
  std::string_view option;    // kernelpath's option for it; empty: --set only
  std::string_view about;
};
std::span<const ArgumentInfo> argument_table();

// Reads `flags` (an object of arguments as JSON values). Error kBatchRequest for a value of another
// type; an unknown name is the engine's own refusal and is kept.
Result<Arguments> read_arguments(const json::Value& flags, const std::string& pointer);

// Sizes that every later step uses. Source: config.py.
struct Limits {
  std::int64_t draft_length = 0;
  std::int64_t max_model_len = 0;
  std::int64_t runtime_model_len = 0;  // with what drafting and overlap scheduling add
  std::int64_t max_num_batched_tokens = 0;
  std::int64_t max_num_decoding_tokens = 0;
};

// What the arguments object writes to the environment where nothing is set.
bool overlap_scheduling(const Arguments& arguments, const Variables& variables);
bool multimodal_pool(const Arguments& arguments, const Variables& variables);

Checked<Limits> resolve_limits(const Arguments& arguments, const Variables& variables);

struct ParallelSizes {
  std::int64_t data = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t engram = 1;
  std::int64_t world = 1;
  std::int64_t data_rank = 0;
};
Checked<ParallelSizes> resolve_parallel_sizes(const Arguments& arguments);

// Redundant experts so that all experts divide by `expert_parallel`; `wanted` is the least number.
std::int64_t redundant_experts(std::int64_t routed, std::int64_t wanted,
                               std::int64_t expert_parallel);

}  // namespace kernelpath::engines::deepinfer
