#include "checkpoint/ggml_type.h"

#include "base/checked.h"

#include <algorithm>
#include <array>

namespace kernelpath::checkpoint {
namespace {

constexpr auto kTypes = std::to_array<GgmlType>({
    // id, name, elements and bytes of a block, quantised
    {0, "f32", 1, 4, false},        {1, "f16", 1, 2, false},        {2, "q4_0", 32, 18, true},
    {3, "q4_1", 32, 20, true},      {6, "q5_0", 32, 22, true},      {7, "q5_1", 32, 24, true},
    {8, "q8_0", 32, 34, true},      {9, "q8_1", 32, 36, true},      {10, "q2_K", 256, 84, true},
    {11, "q3_K", 256, 110, true},   {12, "q4_K", 256, 144, true},   {13, "q5_K", 256, 176, true},
    {14, "q6_K", 256, 210, true},   {15, "q8_K", 256, 292, true},   {16, "iq2_xxs", 256, 66, true},
    {17, "iq2_xs", 256, 74, true},  {18, "iq3_xxs", 256, 98, true}, {19, "iq1_s", 256, 50, true},
    {20, "iq4_nl", 32, 18, true},   {21, "iq3_s", 256, 110, true},  {22, "iq2_s", 256, 82, true},
    {23, "iq4_xs", 256, 136, true}, {24, "i8", 1, 1, false},        {25, "i16", 1, 2, false},
    {26, "i32", 1, 4, false},       {27, "i64", 1, 8, false},       {28, "f64", 1, 8, false},
    {29, "iq1_m", 256, 56, true},   {30, "bf16", 1, 2, false},      {34, "tq1_0", 256, 54, true},
    {35, "tq2_0", 256, 66, true},   {39, "mxfp4", 32, 17, true},    {40, "nvfp4", 64, 36, true},
    {41, "q1_0", 128, 18, true},    {42, "q2_0", 64, 18, true},
});

}  // namespace

std::span<const GgmlType> ggml_types() { return kTypes; }

const GgmlType* find_ggml_type(std::int32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &GgmlType::id);
  return found == kTypes.end() ? nullptr : found;
}

const GgmlType* find_ggml_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &GgmlType::name);
  return found == kTypes.end() ? nullptr : found;
}

std::optional<std::int64_t> ggml_row_bytes(const GgmlType& type, std::int64_t elements) {
  if (elements % type.block != 0) return std::nullopt;
  return checked_mul(elements / type.block, type.bytes);
}

}  // namespace kernelpath::checkpoint
