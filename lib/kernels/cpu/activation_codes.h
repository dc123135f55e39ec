#pragma once

// How the units of all instruction sets round the activations that meet weights of whole numbers
// (q8_0, q4_0). A block of kCodeBlock columns gets one scale, its largest magnitude / kLargestCode,
// and each activation becomes the nearest whole number of 16 bits of that scale: an error is at
// most 1.6e-5 of the largest magnitude. A block with an infinity or a NaN has the scale NaN; one
// whose magnitudes are all below kLeastMagnitude is taken for zeros.
//
// Constants only: code here could be linked from a unit that is compiled for another processor.

#include <cstdint>

namespace kernelpath::kernels::cpu {

constexpr std::int64_t kCodeBlock = 32;
constexpr float kLargestCode = 32767.0F;
constexpr float kLeastMagnitude = 0x1p-100F;

}  // namespace kernelpath::kernels::cpu
