#pragma once

#include "base/result.h"
#include "engines/engine.h"
#include "engines/trtllm/profile.h"

#include <string_view>

namespace kernelpath::engines::trtllm {

// What refuses `name` for a request, and the smallest sets of changes after which it is chosen.
// `name` is an outer backend ("FLASHINFER", any case) or an FMHA library inside TRTLLM
// ("cute_dsl_mla"). Changes are tried one by one, then in pairs, flags before devices; every set in
// the answer was resolved again. Error kUsageUnknown for a name of neither kind.
Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const Profile& profile);

}  // namespace kernelpath::engines::trtllm
