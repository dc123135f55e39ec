#pragma once

#include "engines/engine.h"

#include <span>
#include <string_view>

namespace kernelpath::engines::sglang {

inline constexpr std::string_view kRulesVersion = "v0.5.23";

// Every rule of the engine.
std::span<const RuleInfo> all_rules();

// Null pointer for an id that is none.
const RuleInfo* find_rule(std::string_view id);

// The parts of all_rules(), a file each.
std::span<const RuleInfo> arguments_rules();
std::span<const RuleInfo> attention_rules();
std::span<const RuleInfo> model_rules();
std::span<const RuleInfo> families_rules();
std::span<const RuleInfo> cache_rules();
std::span<const RuleInfo> moe_rules();

}  // namespace kernelpath::engines::sglang
