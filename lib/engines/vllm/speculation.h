#pragma once

#include "engines/vllm/run_state.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace kernelpath::engines::vllm {

inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Methods that look for tokens without a model of their own.
inline bool has_no_model(std::string_view method) {
  return is_one_of(method,
                   {"ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"});
}

// proposer.cpp: the model runner that drafts, and what it refuses. The method, its tokens and the
// draft are known.
bool settle_proposer(RunState& state);

}  // namespace kernelpath::engines::vllm
