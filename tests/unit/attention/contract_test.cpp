#include "attention/layers.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <type_traits>

// What the types say; the files of compile_failure/ show that the compiler says so too.
namespace kernelpath::attention {
namespace {

template <class Layer>
concept HasForward = requires {
  &Layer::forward;
};
template <class Layer>
concept HasMlaForms = requires {
  &Layer::forward_mqa;
  &Layer::forward_mha;
};

static_assert(HasForward<Attention> && !HasMlaForms<Attention>);
static_assert(HasMlaForms<MlaAttention> && !HasForward<MlaAttention>);

// What a layer fixes has no place in the arguments of a step, and the other way round.
template <class Args>
concept SaysWhatTheLayerFixes = requires(Args args) {
  args.window;
}
|| requires(Args args) { args.softcap; }
|| requires(Args args) { args.softmax_scale; }
|| requires(Args args) { args.chunk; };
static_assert(!SaysWhatTheLayerFixes<ForwardArgs>);
static_assert(!SaysWhatTheLayerFixes<MqaArgs>);
static_assert(!SaysWhatTheLayerFixes<MhaArgs>);
static_assert(SaysWhatTheLayerFixes<Geometry>);

// A layer is built from geometry alone.
static_assert(
    std::is_invocable_v<decltype(Attention::make), const BackendRow&, const LayerRequest&>);

static_assert(!std::is_convertible_v<Lse<LogBase::k2>, ConstLse<LogBase::kE>>);
static_assert(std::is_convertible_v<Lse<LogBase::k2>, ConstLse<LogBase::k2>>);

LayerRequest plain() {
  return {.geometry = {.num_heads = 8, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64}};
}

TEST(AttentionLayer, RefusedRequest_IsNotBuilt) {
  LayerRequest request = plain();
  request.fused_rope = true;
  request.fused_qkv = true;
  const auto layer = Attention::make(backend_row(BackendId::kFused), request);
  ASSERT_FALSE(layer);
  EXPECT_EQ(layer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(layer.error().message,
            "backend FUSED cannot serve this layer: FUSED has no fused RoPE; FUSED has no fused "
            "QKV input");
}

TEST(AttentionLayer, MlaRequest_IsForTheOtherClass) {
  LayerRequest request = plain();
  EXPECT_FALSE(MlaAttention::make(backend_row(BackendId::kFused), request));
  request.mla = MlaDims{.q_lora_rank = 0,
                        .kv_lora_rank = 32,
                        .qk_nope_head_dim = 16,
                        .qk_rope_head_dim = 8,
                        .v_head_dim = 16};
  EXPECT_FALSE(Attention::make(backend_row(BackendId::kFused), request));
  EXPECT_TRUE(MlaAttention::make(backend_row(BackendId::kFused), request));
}

TEST(BackendTable, Rows_AreConsistent) {
  for (const BackendRow& row : backend_table()) {
    EXPECT_EQ(&backend_row(row.id), &row) << "one row a name";
    EXPECT_EQ(row.features.has(Feature::kLse), row.lse_base.has_value());
    EXPECT_GE(row.page_multiple, 1);
    EXPECT_LE(row.min_head_dim, row.max_head_dim);
    for (const BackendAlias& alias : kBackendAliases) EXPECT_NE(alias.name, row.name);
  }
}

TEST(KvStrides, Order_IsThatOfTheLayout) {
  EXPECT_EQ(stride_order(KvLayout::kNhd), (std::array{0, 1, 2, 3}));
  EXPECT_EQ(stride_order(KvLayout::kHnd), (std::array{0, 2, 1, 3}));
}

TEST(DataTypes, Names_AreFound) {
  for (const DataType type : kDataTypes) EXPECT_EQ(find_data_type(data_type_name(type)), type);
  EXPECT_EQ(find_data_type("BF16"), DataType::kBf16);
  EXPECT_EQ(find_data_type("fp8"), DataType::kFp8E4m3);
  EXPECT_EQ(find_data_type("int8"), std::nullopt);
}

TEST(DataTypes, Bytes_CountScalesApart) {
  EXPECT_EQ(data_bytes(DataType::kNvfp4, 128), 64);
  EXPECT_EQ(block_scale_bytes(DataType::kNvfp4, 128), 8);
  EXPECT_EQ(data_bytes(DataType::kBf16, 128), 256);
  EXPECT_EQ(block_scale_bytes(DataType::kBf16, 128), 0);
  EXPECT_FALSE(fits_rows_of(DataType::kNvfp4, 72));
}

}  // namespace
}  // namespace kernelpath::attention
