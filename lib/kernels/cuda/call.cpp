#include "kernels/cuda/call.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::kernels::cuda {

using attention::DataType;
using attention::Feature;
using attention::FeatureSet;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::string names_of(attention::DataTypeSet types) {
  std::vector<std::string> names;
  for (const DataType type : attention::kDataTypes) {
    if (types.has(type)) names.emplace_back(attention::data_type_name(type));
  }
  return join_words(names);
}

std::string names_of(FeatureSet features) {
  std::vector<std::string> names;
  for (const Feature feature : attention::kFeatures) {
    if (features.has(feature)) names.emplace_back(attention::feature_name(feature));
  }
  return join_words(names);
}

void require_device(Findings& findings, const KernelCapabilities& kernel, std::int32_t sm) {
  findings.require(kernel.has_device(sm), "the device is sm_{}; sm_{}{} supported", sm,
                   kernel.min_sm, kernel.max_sm == kernel.min_sm ? " is" : " and newer are");
}

void require_types(Findings& findings, const KernelCapabilities& kernel,
                   const DecodeParams& params) {
  findings.require(kernel.query_types.has(params.query_type), "queries are {}; {} are supported",
                   attention::data_type_name(params.query_type), names_of(kernel.query_types));
  findings.require(kernel.row.kv_types.has(params.k.type), "the KV cache is {}; {} are supported",
                   attention::data_type_name(params.k.type), names_of(kernel.row.kv_types));
  findings.require(params.k.type == params.v.type, "K is {} and V is {}; they must be of one type",
                   attention::data_type_name(params.k.type),
                   attention::data_type_name(params.v.type));
}

void require_features(Findings& findings, const KernelCapabilities& kernel,
                      const DecodeParams& params) {
  const FeatureSet asked = features_of(params);
  for (const Feature feature : attention::kFeatures) {
    findings.require(!asked.has(feature) || kernel.row.features.has(feature),
                     "{} is not supported; {} are", attention::feature_name(feature),
                     names_of(kernel.row.features));
  }
}

// Of one side, K or V.
void require_side(Findings& findings, const KernelCapabilities& kernel, std::string_view name,
                  const attention::PagedRows& rows, std::int64_t dim) {
  const DataType type = rows.type;
  const bool block_scaled = type == DataType::kNvfp4;
  // Copies are of 16 bytes, and block scales come four at a time.
  const std::int64_t unit =
      block_scaled ? 4 * attention::kNvfp4Block : std::int64_t{16} * 8 / attention::bits_of(type);
  for (const std::int64_t stride : {rows.page_stride, rows.token_stride, rows.head_stride}) {
    findings.require(stride % unit == 0,
                     "a stride of {} is {} elements; multiples of {} are supported for {}", name,
                     stride, unit, attention::data_type_name(type));
    findings.require(stride >= 0 && attention::data_bytes(type, stride) <= kernel.max_stride_bytes,
                     "a stride of {} is {} elements; up to 2 GiB are supported", name, stride);
  }
  findings.require(kernel.has_head_dim(type, dim),
                   "the head size of {} is {}; multiples of {} from {} to {} are supported for {}",
                   name, dim, kernel.head_dim_multiple(type),
                   std::max(kernel.row.min_head_dim, kernel.head_dim_multiple(type)),
                   kernel.row.max_head_dim, attention::data_type_name(type));
  findings.require(!block_scaled || rows.block_scales != nullptr, "{} has no block scales", name);
}

void require_sizes(Findings& findings, const KernelCapabilities& kernel,
                   const DecodeParams& params) {
  const attention::Geometry& geometry = params.geometry;
  findings.require(geometry.num_kv_heads > 0 && geometry.num_heads > 0 &&
                       geometry.num_heads % std::max<std::int64_t>(geometry.num_kv_heads, 1) == 0,
                   "{} query heads do not divide among {} KV heads", geometry.num_heads,
                   geometry.num_kv_heads);
  findings.require(params.max_queries >= 1, "{} queries a request; 1 and more are supported",
                   params.max_queries);
  const std::int64_t page_multiple = kernel.row.page_multiple;
  findings.require(params.batch.page_size > 0 && params.batch.page_size <= kMost &&
                       params.batch.page_size % page_multiple == 0,
                   "the page size is {}; {}{} or more is supported", params.batch.page_size,
                   page_multiple > 1 ? "a multiple of " : "", page_multiple);
  findings.require(geometry.window >= 0 && geometry.window <= kMost && geometry.chunk >= 0 &&
                       geometry.chunk <= kMost,
                   "window {} and chunk {}; 0 to {} are supported", geometry.window, geometry.chunk,
                   kMost);
}

}  // namespace

FeatureSet features_of(const DecodeParams& params) {
  const attention::Geometry& geometry = params.geometry;
  FeatureSet out;
  out.set(Feature::kSinks, params.sinks != nullptr);
  out.set(Feature::kWindow, geometry.window > 0);
  out.set(Feature::kChunk, geometry.chunk > 0);
  out.set(Feature::kSoftcap, geometry.softcap > 0.0F);
  out.set(Feature::kNonCausal, !geometry.causal);
  out.set(Feature::kOtherVHeadDim, geometry.head_dim != geometry.v_head_dim);
  out.set(Feature::kLse, params.lse.data != nullptr);
  return out;
}

void require_claimed(Findings& findings, const KernelCapabilities& kernel,
                     const DecodeParams& params, const DeviceInfo& device) {
  require_device(findings, kernel, device.sm);
  require_types(findings, kernel, params);
  require_features(findings, kernel, params);
  require_side(findings, kernel, "K", params.k, params.geometry.head_dim);
  require_side(findings, kernel, "V", params.v, params.geometry.v_head_dim);
  require_sizes(findings, kernel, params);
}

sm80::SideParams side_of(const attention::PagedRows& rows, std::int64_t dim,
                         const float* head_scales) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::uint32_t>(attention::data_bytes(rows.type, elements));
  };
  return {.data = rows.data,
          .block_scales = rows.block_scales,
          .page_bytes = bytes(rows.page_stride),
          .token_bytes = bytes(rows.token_stride),
          .head_bytes = bytes(rows.head_stride),
          .chunks = static_cast<std::int32_t>(bytes(dim) / 16),
          .scale = rows.scale,
          .head_scales = head_scales};
}

}  // namespace kernelpath::kernels::cuda
