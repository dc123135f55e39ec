#pragma once

#include "kernels/ops.h"

#include <cstdint>

namespace kernelpath::kernels::cpu {

// The channels [begin, end) of every request.
void short_conv_channels(const ShortConvParams& params, std::int64_t begin, std::int64_t end);
// The items [begin, end) of requests * heads.
void delta_rule_items(const DeltaRuleParams& params, std::int64_t begin, std::int64_t end);

}  // namespace kernelpath::kernels::cpu
