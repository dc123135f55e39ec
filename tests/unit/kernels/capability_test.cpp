#include "attention/backend_table.h"
#include "attention/layer_request.h"
#include "attention/layers.h"
#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/team.h"
#include "one_thread.h"
#include "paged_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Every capability of the table on a real kernel: what a backend of this build claims is built, run
// and compared with the definition; what it does not claim is refused with its reason.
namespace kernelpath::testing {
namespace {

namespace cpu = kernels::cpu;
using attention::BackendId;
using attention::BackendRow;
using attention::DataType;
using attention::Feature;
using attention::LayerRequest;
using ::testing::HasSubstr;

LayerRequest plain() {
  return {.geometry = {.num_heads = 4,
                       .num_kv_heads = 2,
                       .head_dim = 64,
                       .v_head_dim = 64,
                       .softmax_scale = 0.125F}};
}

attention::MlaDims small_mla() {
  return {.q_lora_rank = 0,
          .kv_lora_rank = 48,
          .qk_nope_head_dim = 32,
          .qk_rope_head_dim = 16,
          .v_head_dim = 24};
}

attention::CommonMetadata metadata_of(const PagedCase& paged) {
  return {.query_start = paged.query_start,
          .seq_lens = paged.seq_lens,
          .block_table = paged.block_table,
          .block_table_stride = paged.block_table_stride,
          .page_size = paged.storage.page_size};
}

PagedCase case_of(const LayerRequest& request, const attention::Geometry& geometry) {
  PagedCase paged(
      geometry, {{3, 300}, {1, 20}},
      {.type = request.kv_type, .layout = request.layout, .page_size = request.page_size});
  // With shards, sinks join where those are merged.
  if (request.sinks && request.context_parallel == 1) {
    paged.sinks.assign(static_cast<std::size_t>(geometry.num_heads), 1.0F);
  }
  if (request.sparse) {
    paged.selected_stride = 8;
    for (int token = 0; token < 4; ++token) {
      for (const int position : {0, 3, 17, 5, 11, -1, -1, -1}) paged.selected.push_back(position);
    }
  }
  if (request.context_parallel > 1) {
    paged.shard = {.rank = 1, .count = request.context_parallel, .interleave = 4};
    paged.fill();
  }
  return paged;
}

Output without_lse(Output output, bool wanted) {
  if (!wanted) output.lse.clear();
  return output;
}

// One step through the layer, and by definition.
std::pair<Output, Output> run(const attention::Attention& layer, const LayerRequest& request,
                              cpu::Isa isa) {
  PagedCase paged = case_of(request, layer.geometry());
  attention::MetadataBuilder builder = layer.metadata_builder(paged.shard);
  const auto metadata = builder.build(0, metadata_of(paged));
  EXPECT_TRUE(metadata);
  Output got;
  const attention::AttentionParams params = paged.params(got);
  OneThread kernels(isa);
  layer.forward(kernels, *metadata,
                {.q = params.q,
                 .o = params.o,
                 .k = params.k,
                 .v = params.v,
                 .sinks = params.sinks,
                 .lse = request.lse_base ? params.lse : attention::NaturalLse{},
                 .selected = params.selected,
                 .selected_stride = params.selected_stride});
  const bool lse = request.lse_base.has_value();
  return {without_lse(got, lse), without_lse(paged.run(cpu::Isa::kReference), lse)};
}

std::pair<Output, Output> run_mqa(const attention::MlaAttention& layer, const LayerRequest& request,
                                  cpu::Isa isa) {
  PagedCase paged = case_of(request, mqa_geometry(request.geometry, *request.mla));
  attention::MetadataBuilder builder = layer.metadata_builder();
  const auto metadata = builder.build(0, metadata_of(paged));
  EXPECT_TRUE(metadata);
  Output got;
  attention::AttentionParams params = paged.params(got);
  OneThread kernels(isa);
  layer.forward_mqa(kernels, *metadata, {.q = params.q, .o = params.o, .rows = params.k});
  Output wanted;
  params = paged.params(wanted);
  params.v = params.k;
  OneThread(cpu::Isa::kReference).attention(params);
  return {without_lse(got, false), without_lse(wanted, false)};
}

std::pair<Output, Output> run_mha(const attention::MlaAttention& layer, const LayerRequest& request,
                                  cpu::Isa isa) {
  LayerRequest expanded = request;
  expanded.kv_type = DataType::kF32;
  PagedCase paged = case_of(expanded, mha_geometry(request.geometry, *request.mla));
  attention::MetadataBuilder builder = layer.metadata_builder();
  const auto metadata = builder.build(0, metadata_of(paged));
  EXPECT_TRUE(metadata);
  std::vector<float> k = paged.k[0];
  std::vector<float> v = paged.v[0];
  k.insert(k.end(), paged.k[1].begin(), paged.k[1].end());
  v.insert(v.end(), paged.v[1].begin(), paged.v[1].end());
  const std::vector<std::int32_t> first{0, paged.seq_lens[0]};
  Output got;
  const attention::AttentionParams params = paged.params(got);
  OneThread kernels(isa);
  layer.forward_mha(
      kernels, *metadata,
      {.q = params.q, .o = params.o, .k = k.data(), .v = v.data(), .first = first.data()});
  return {without_lse(got, false), without_lse(paged.run(cpu::Isa::kReference), false)};
}

void expect_runs(const BackendRow& row, const LayerRequest& request) {
  for (const cpu::Isa isa : isas()) {
    std::vector<std::pair<Output, Output>> outputs;
    if (request.mla) {
      const auto layer = attention::MlaAttention::make(row, request);
      ASSERT_TRUE(layer) << layer.error().message;
      outputs.push_back(run_mqa(*layer, request, isa));
      if (!request.sparse) outputs.push_back(run_mha(*layer, request, isa));
    } else {
      const auto layer = attention::Attention::make(row, request);
      ASSERT_TRUE(layer) << layer.error().message;
      outputs.push_back(run(*layer, request, isa));
    }
    for (const auto& [got, wanted] : outputs) {
      const Difference apart = difference(got, wanted);
      EXPECT_LT(apart.o, 3e-5) << cpu::isa_name(isa);
      EXPECT_LT(apart.lse, 3e-5) << cpu::isa_name(isa);
    }
  }
}

void expect_refused(const BackendRow& row, const LayerRequest& request, std::string_view rule) {
  const std::vector<attention::Refusal> reasons = refusals(row, request);
  ASSERT_FALSE(reasons.empty());
  EXPECT_TRUE(std::ranges::any_of(
      reasons, [&](const attention::Refusal& refusal) { return refusal.rule == rule; }));
  for (const attention::Refusal& refusal : reasons) EXPECT_FALSE(refusal.reason.empty());
  EXPECT_FALSE(request.mla ? attention::MlaAttention::make(row, request).has_value()
                           : attention::Attention::make(row, request).has_value());
}

// One capability: what asks for it, and whether a row claims it.
struct Capability {
  std::string name;
  std::string_view rule;
  std::function<void(LayerRequest&)> ask;
  std::function<bool(const BackendRow&)> claimed;
};

std::function<void(LayerRequest&)> asking_for(Feature feature) {
  switch (feature) {
    case Feature::kMla:
      return [](LayerRequest& r) { r.mla = small_mla(); };
    case Feature::kSparse:
      return [](LayerRequest& r) { r.sparse = true; };
    case Feature::kSinks:
      return [](LayerRequest& r) { r.sinks = true; };
    case Feature::kWindow:
      return [](LayerRequest& r) { r.geometry.window = 40; };
    case Feature::kChunk:
      return [](LayerRequest& r) { r.geometry.chunk = 64; };
    case Feature::kSoftcap:
      return [](LayerRequest& r) { r.geometry.softcap = 3.0F; };
    case Feature::kNonCausal:
      return [](LayerRequest& r) { r.geometry.causal = false; };
    case Feature::kOtherVHeadDim:
      return [](LayerRequest& r) { r.geometry.v_head_dim = 40; };
    case Feature::kLse:
      return [](LayerRequest& r) { r.lse_base = attention::LogBase::kE; };
    case Feature::kContextParallel:
      return [](LayerRequest& r) { r.context_parallel = 2; };
    case Feature::kFusedRope:
      return [](LayerRequest& r) { r.fused_rope = true; };
    case Feature::kFusedQkv:
      return [](LayerRequest& r) { r.fused_qkv = true; };
  }
  return {};
}

void add_features(std::vector<Capability>& out) {
  for (const Feature feature : attention::kFeatures) {
    out.push_back(
        {.name = std::string(attention::feature_name(feature)),
         .rule = feature == Feature::kChunk ? "KP-CHUNK" : "KP-FEATURE",
         .ask = asking_for(feature),
         .claimed = [feature](const BackendRow& row) { return row.features.has(feature); }});
  }
}

void add_caches(std::vector<Capability>& out) {
  for (const DataType type : attention::kDataTypes) {
    out.push_back({.name = std::string(attention::data_type_name(type)),
                   .rule = "KP-KV-DTYPE",
                   .ask = [type](LayerRequest& r) { r.kv_type = type; },
                   .claimed = [type](const BackendRow& row) { return row.kv_types.has(type); }});
  }
  for (const auto layout : {attention::KvLayout::kNhd, attention::KvLayout::kHnd}) {
    out.push_back({.name = std::string(attention::kv_layout_name(layout)),
                   .rule = "KP-LAYOUT",
                   .ask = [layout](LayerRequest& r) { r.layout = layout; },
                   .claimed = [layout](const BackendRow& row) { return row.layouts.has(layout); }});
  }
  for (const std::int64_t size : {1, 5, 16, 64, 128, 1000}) {
    out.push_back(
        {.name = "page size " + std::to_string(size),
         .rule = "KP-PAGE-SIZE",
         .ask = [size](LayerRequest& r) { r.page_size = size; },
         .claimed = [size](const BackendRow& row) { return size % row.page_multiple == 0; }});
  }
}

void add_sizes_and_levels(std::vector<Capability>& out) {
  for (const std::int64_t dim :
       {1, 8, 20, 64, 80, 96, 128, 192, 256, 512, 1024, 1025, 4096, 4097}) {
    out.push_back({.name = "head size " + std::to_string(dim),
                   .rule = "KP-HEAD-DIM",
                   .ask =
                       [dim](LayerRequest& r) {
                         r.geometry.head_dim = dim;
                         r.geometry.v_head_dim = dim;
                         r.geometry.num_heads = 2;
                         r.geometry.num_kv_heads = 1;
                         r.geometry.softmax_scale = 1.0F / static_cast<float>(dim);
                       },
                   .claimed =
                       [dim](const BackendRow& row) {
                         return dim >= row.min_head_dim && dim <= row.max_head_dim &&
                                dim % row.head_dim_multiple == 0;
                       }});
  }
  for (const auto level : {attention::GraphLevel::kNever, attention::GraphLevel::kSingleTokenDecode,
                           attention::GraphLevel::kUniformBatch, attention::GraphLevel::kAlways}) {
    out.push_back({.name = "graphs: " + std::string(attention::graph_level_name(level)),
                   .rule = "KP-GRAPH",
                   .ask = [level](LayerRequest& r) { r.graph_level = level; },
                   .claimed = [level](const BackendRow& row) { return level <= row.graph_level; }});
  }
  for (const auto base : {attention::LogBase::kE, attention::LogBase::k2}) {
    out.push_back({.name = "lse of base " + std::string(attention::log_base_name(base)),
                   .rule = "KP-LSE-BASE",
                   .ask = [base](LayerRequest& r) { r.lse_base = base; },
                   .claimed = [base](const BackendRow& row) { return row.lse_base == base; }});
  }
  for (const auto platform : {hardware::Platform::kCpu, hardware::Platform::kCuda,
                              hardware::Platform::kRocm, hardware::Platform::kAscend}) {
    out.push_back(
        {.name = std::string(hardware::platform_name(platform)),
         .rule = "KP-PLATFORM",
         .ask = [platform](LayerRequest& r) { r.platform = platform; },
         .claimed = [platform](const BackendRow& row) { return row.platform == platform; }});
  }
}

std::vector<Capability> capabilities() {
  std::vector<Capability> out;
  add_features(out);
  add_caches(out);
  add_sizes_and_levels(out);
  return out;
}

TEST(Capabilities, EveryClaim_RunsAndEveryOtherIsRefused) {
  int ran = 0;
  int refused = 0;
  for (const BackendRow& row : attention::backend_table()) {
    if (!row.missing.empty()) continue;
    for (const Capability& capability : capabilities()) {
      SCOPED_TRACE(std::string(row.name) + ": " + capability.name);
      LayerRequest request = plain();
      capability.ask(request);
      if (capability.claimed(row)) {
        expect_runs(row, request);
        ++ran;
      } else {
        expect_refused(row, request, capability.rule);
        ++refused;
      }
    }
  }
  EXPECT_GT(ran, 60);
  EXPECT_GT(refused, 15);
}

TEST(Capabilities, BackendsThatThisBuildLacks_RefuseEverything) {
  for (const BackendRow& row : attention::backend_table()) {
    if (row.missing.empty()) continue;
    LayerRequest request = plain();
    request.platform = row.platform;
    expect_refused(row, request, "KP-BUILD");
    const auto layer = attention::Attention::make(row, request);
    ASSERT_FALSE(layer);
    EXPECT_THAT(layer.error().message, HasSubstr(std::string(row.missing)));
  }
}

// Features together: what each of them does alone says little of their sum.
TEST(Capabilities, FeaturesTogether_AgreeWithTheDefinition) {
  LayerRequest request = plain();
  request.geometry.window = 50;
  request.geometry.softcap = 4.0F;
  request.geometry.v_head_dim = 20;
  request.sinks = true;
  request.lse_base = attention::LogBase::kE;
  request.kv_type = DataType::kFp8E4m3;
  request.layout = attention::KvLayout::kHnd;
  request.page_size = 7;
  expect_runs(attention::backend_row(BackendId::kFused), request);
  request.context_parallel = 3;
  expect_runs(attention::backend_row(BackendId::kFused), request);
}

// The plan that metadata brings along is cut as the kernels cut.
TEST(Capabilities, PlanShape_IsThatOfTheKernels) {
  constexpr attention::PlanShape kShape;
  static_assert(kShape.tile_tokens == cpu::kTileTokens);
  static_assert(kShape.block_rows == cpu::kBlockRows);
}

}  // namespace
}  // namespace kernelpath::testing
