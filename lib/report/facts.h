#pragma once

#include "report/inspect.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Small readings of an answer that several printers share.

namespace kernelpath::report {

// "mla", "mha", "gqa", "mqa"; "none" for a model without attention layers.
std::string_view attention_word(const config::ModelConfig& model);

// The quantisation's algorithm, else its method: "FP8_BLOCK_SCALES", "awq"; empty if there is none.
std::string quantization_word(const config::ModelConfig& model);

// What every engine of the answer agrees on; nothing where they differ or none knows.
std::optional<std::int64_t> common_kv_bytes_per_token(const InputAnswer& answer);

// "model-class", "final-value", … for JSON.
std::string_view stage_id(engines::Stage stage);
// "Final value, and who set it": the heading in --why.
std::string_view stage_title(engines::Stage stage);

// "0-3,8,10-12" of ascending layer indices.
std::string layer_ranges(const std::vector<std::int64_t>& layers);

// "bf16 HND page 32"; empty for a group without a cache.
std::string kv_text(const engines::KvLayout& kv);

}  // namespace kernelpath::report
