// Norms, rotary embedding, gates, routing, experts and states against their definitions.
#include "kernels/cpu/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace kernelpath::kernels {
namespace {

void run(const std::function<void(Ops&)>& body, int threads = 2) {
  cpu::CpuExecutor executor(threads, cpu::Isa::kReference);
  executor.run(body);
}

TEST(Norm, RmsWithOffset_MultipliesByWeightPlusOne) {
  const std::vector<float> x = {3.0F, 4.0F};
  const std::vector<float> weight = {0.0F, 1.0F};
  std::vector<float> y(2);
  run([&](Ops& ops) {
    ops.norm({.n = 1,
              .dim = 2,
              .x = x.data(),
              .x_stride = 2,
              .y = y.data(),
              .y_stride = 2,
              .weight = weight.data(),
              .weight_offset = 1.0F});
  });
  const float root = std::sqrt(12.5F);
  EXPECT_FLOAT_EQ(y[0], 3.0F / root);
  EXPECT_FLOAT_EQ(y[1], 8.0F / root);
}

TEST(Norm, Layer_RemovesTheMeanAndAddsTheBias) {
  const std::vector<float> x = {1.0F, 3.0F};
  const std::vector<float> bias = {0.5F, 0.5F};
  std::vector<float> y(2);
  run([&](Ops& ops) {
    ops.norm({.kind = NormKind::kLayer,
              .n = 1,
              .dim = 2,
              .x = x.data(),
              .x_stride = 2,
              .y = y.data(),
              .y_stride = 2,
              .bias = bias.data()});
  });
  EXPECT_FLOAT_EQ(y[0], -0.5F);
  EXPECT_FLOAT_EQ(y[1], 1.5F);
}

TEST(Rope, HalfSplitAndInterleaved_PairDifferentElements) {
  const std::vector<float> x = {1.0F, 2.0F, 3.0F, 4.0F, 9.0F};
  const std::vector<float> cos = {0.0F, 0.0F};
  const std::vector<float> sin = {1.0F, 1.0F};  // a quarter turn: (x, y) -> (-y, x)
  RopeParams params{.n = 1,
                    .heads = 1,
                    .width = 5,
                    .rotary = 4,
                    .src = x.data(),
                    .src_stride = 5,
                    .dst = nullptr,
                    .dst_stride = 5,
                    .cos = cos.data(),
                    .sin = sin.data()};
  std::vector<float> half(5);
  params.dst = half.data();
  run([&](Ops& ops) { ops.rope(params); });
  EXPECT_EQ(half, (std::vector<float>{-3.0F, -4.0F, 1.0F, 2.0F, 9.0F}));
  std::vector<float> pairs(5);
  params.dst = pairs.data();
  params.interleaved = true;
  run([&](Ops& ops) { ops.rope(params); });
  EXPECT_EQ(pairs, (std::vector<float>{-2.0F, 1.0F, -4.0F, 3.0F, 9.0F}));
}

TEST(Gate, Clamped_LimitsBothSidesOfUpAndOneOfGate) {
  const std::vector<float> rows = {100.0F, 100.0F, -100.0F, -100.0F};  // (gate, up) pairs
  std::vector<float> y(2);
  run([&](Ops& ops) {
    ops.gate({.activation = Activation::kClamped,
              .n = 1,
              .dim = 2,
              .gate = rows.data(),
              .up = rows.data() + 1,
              .stride = 4,
              .element = 2,
              .y = y.data(),
              .y_stride = 2,
              .limit = 7.0F,
              .alpha = 1.702F});
  });
  EXPECT_NEAR(y[0], 8.0F * 7.0F / (1.0F + std::exp(-1.702F * 7.0F)), 1e-4F);
  EXPECT_NEAR(y[1], -6.0F * -100.0F / (1.0F + std::exp(170.2F)), 1e-6F);
}

struct Routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

Routed route(RouteParams params, const std::vector<float>& logits) {
  Routed out{std::vector<std::int32_t>(static_cast<std::size_t>(params.top_k)),
             std::vector<float>(static_cast<std::size_t>(params.top_k))};
  params.n = 1;
  params.experts = static_cast<std::int64_t>(logits.size());
  params.logits = logits.data();
  params.logits_stride = params.experts;
  params.ids = out.ids.data();
  params.weights = out.weights.data();
  run([&](Ops& ops) { ops.route(params); });
  return out;
}

TEST(Route, TopKSoftmax_SumsToOneOverTheChosen) {
  const Routed out =
      route({.kind = RouterKind::kTopKSoftmax, .top_k = 2}, {0.0F, 2.0F, 1.0F, -5.0F});
  EXPECT_EQ(out.ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_NEAR(out.weights[0], 1.0F / (1.0F + std::exp(-1.0F)), 1e-6F);
}

TEST(Route, Correction_DecidesTheChoiceButNotTheWeight) {
  const std::vector<float> correction = {0.0F, 0.0F, 1.0F};
  const Routed out = route(
      {.kind = RouterKind::kSigmoid, .top_k = 1, .scaling = 2.0F, .correction = correction.data()},
      {1.0F, 0.5F, 0.0F});
  EXPECT_EQ(out.ids[0], 2);
  EXPECT_FLOAT_EQ(out.weights[0], 1.0F);  // 2 * sigmoid(0)
}

TEST(Route, Groups_ByTheSumOfTheirTwoBest_LeaveOutABetterSingleExpert) {
  // Group 0 has the best expert, group 1 the better pair.
  const std::vector<float> logits = {1.2F, -9.0F, -9.0F, 1.0F, 0.9F, -9.0F};
  const RouteParams params{.kind = RouterKind::kSigmoid,
                           .group_score = GroupScore::kSumOfTop2,
                           .top_k = 2,
                           .groups = 2,
                           .top_groups = 1};
  EXPECT_EQ(route(params, logits).ids, (std::vector<std::int32_t>{3, 4}));
  RouteParams by_best = params;
  by_best.group_score = GroupScore::kMax;
  EXPECT_EQ(route(by_best, logits).ids[0], 0);
}

TEST(Route, EqualScores_GoToTheLowerIndex) {
  EXPECT_EQ(route({.top_k = 2}, {1.0F, 1.0F, 1.0F}).ids, (std::vector<std::int32_t>{0, 1}));
}

// Two experts on one number: expert e computes silu(g_e x) * (u_e x) * d_e.
TEST(Experts, WeightedSum_OfTheChosenOnesOnly) {
  const std::vector<float> numbers = {1.0F, 2.0F, 3.0F, 0.5F, 4.0F, -1.0F, 0.0F, 0.0F, 0.0F};
  const auto matrix = [&](std::size_t at) {
    return WeightMatrix{.rows = 1,
                        .cols = 1,
                        .data = reinterpret_cast<const std::byte*>(&numbers[at]),
                        .row_bytes = 4};
  };
  std::vector<Expert> experts;
  for (std::size_t e = 0; e < 3; ++e) {
    experts.push_back({.gate = matrix(3 * e), .up = matrix(3 * e + 1), .down = matrix(3 * e + 2)});
  }
  const std::vector<float> x = {1.0F, 2.0F};
  const std::vector<std::int32_t> ids = {1, 0, 0, 1};
  const std::vector<float> weights = {0.25F, 0.75F, 1.0F, 0.5F};
  std::vector<float> y(2);
  std::vector<float> scratch(static_cast<std::size_t>(experts_scratch_floats(2, 2, 1, 1)));
  std::vector<std::int32_t> rows(static_cast<std::size_t>(experts_scratch_rows(2, 2, 3)));
  run([&](Ops& ops) {
    ops.experts({.experts = experts,
                 .n = 2,
                 .top_k = 2,
                 .hidden = 1,
                 .inter = 1,
                 .ids = ids.data(),
                 .weights = weights.data(),
                 .x = x.data(),
                 .x_stride = 1,
                 .y = y.data(),
                 .y_stride = 1,
                 .scratch = scratch.data(),
                 .rows = rows.data()});
  });
  const auto expert = [&](std::size_t e, float in) {
    const float g = numbers[3 * e] * in;
    return g / (1.0F + std::exp(-g)) * numbers[3 * e + 1] * in * numbers[3 * e + 2];
  };
  EXPECT_NEAR(y[0], 0.25F * expert(1, 1.0F) + 0.75F * expert(0, 1.0F), 1e-5F);
  EXPECT_NEAR(y[1], expert(0, 2.0F) + 0.5F * expert(1, 2.0F), 1e-5F);
}

// What a step of one request over a state reads.
struct OneRequest {
  std::vector<std::int32_t> query_start;
  std::vector<std::int32_t> seq_lens;
  [[nodiscard]] attention::BatchView view() const {
    return {.num_requests = 1, .query_start = query_start.data(), .seq_lens = seq_lens.data()};
  }
};

TEST(ShortConv, InOneStepOrTwo_GivesTheSame) {
  const std::vector<float> weight = {0.5F, -1.0F, 2.0F};
  const std::vector<float> x = {1.0F, 2.0F, 3.0F, 4.0F};
  const std::vector<std::int32_t> slots = {0};
  const auto convolve = [&](const std::vector<std::int32_t>& cuts) {
    std::vector<float> state(2, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> y(4);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const OneRequest request{{0, cuts[i + 1] - cuts[i]}, {cuts[i + 1]}};
      run([&](Ops& ops) {
        ops.short_conv({.batch = request.view(),
                        .state = {.data = state.data(), .slot_stride = 2, .slots = slots.data()},
                        .channels = 1,
                        .kernel = 3,
                        .weight = weight.data(),
                        .x = x.data() + cuts[i],
                        .x_stride = 1,
                        .y = y.data() + cuts[i],
                        .y_stride = 1});
      });
    }
    return y;
  };
  const std::vector<float> whole = convolve({0, 4});
  EXPECT_EQ(whole, convolve({0, 1, 4}));
  const float last = 0.5F * 2.0F - 3.0F + 2.0F * 4.0F;
  EXPECT_FLOAT_EQ(whole[3], last / (1.0F + std::exp(-last)));
}

TEST(DeltaRule, OneChannel_IsTheRecurrenceByHand) {
  const std::vector<float> q = {1.0F, 1.0F};
  const std::vector<float> k = {1.0F, 0.5F};
  const std::vector<float> v = {2.0F, 3.0F};
  const std::vector<float> g = {0.3F, -0.2F};
  const std::vector<float> beta = {0.0F, 1.0F};
  const std::vector<float> a_log = {0.1F};
  const std::vector<float> dt_bias = {0.05F};
  const std::vector<std::int32_t> slots = {0};
  std::vector<float> state = {std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> o(2);
  const OneRequest request{{0, 2}, {2}};
  run([&](Ops& ops) {
    ops.delta_rule({.batch = request.view(),
                    .state = {.data = state.data(), .slot_stride = 1, .slots = slots.data()},
                    .heads = 1,
                    .key_dim = 1,
                    .value_dim = 1,
                    .q = q.data(),
                    .k = k.data(),
                    .v = v.data(),
                    .g = g.data(),
                    .beta = beta.data(),
                    .a_log = a_log.data(),
                    .dt_bias = dt_bias.data(),
                    .o = o.data()});
  });
  double s = 0.0;
  for (std::size_t i = 0; i < 2; ++i) {
    const double decay = -std::exp(0.1) * std::log1p(std::exp(g[i] + 0.05));
    s *= std::exp(decay);
    const double b = 1.0 / (1.0 + std::exp(-beta[i]));
    s += k[i] * b * (v[i] - s * k[i]);
    EXPECT_NEAR(o[i], s * q[i], 1e-6);
  }
  EXPECT_NEAR(state[0], s, 1e-6);
}

TEST(IndexSelect, BestKeys_AscendingAndPaddedWithMinusOne) {
  // Keys of one element: 0.1, 0.9, 0.5, 0.7 in pages of two, the second page first in memory.
  std::vector<float> keys = {0.5F, 0.7F, 0.1F, 0.9F};
  const std::vector<std::int32_t> block_table = {1, 0};
  const std::vector<std::int32_t> query_start = {0, 3};
  const std::vector<std::int32_t> seq_lens = {4};
  const std::vector<float> q = {1.0F, 1.0F, 1.0F};
  const std::vector<float> weights = {1.0F, 1.0F, 1.0F};
  std::vector<std::int32_t> selected(6);
  std::vector<float> scratch(8);
  run([&](Ops& ops) {
    ops.index_select({.batch = {.num_requests = 1,
                                .query_start = query_start.data(),
                                .seq_lens = seq_lens.data(),
                                .block_table = block_table.data(),
                                .block_table_stride = 2,
                                .page_size = 2},
                      .num_tokens = 3,
                      .heads = 1,
                      .head_dim = 1,
                      .top_k = 2,
                      .q = q.data(),
                      .weights = weights.data(),
                      .k = {.data = reinterpret_cast<std::byte*>(keys.data()),
                            .page_stride = 2,
                            .token_stride = 1,
                            .head_stride = 1},
                      .selected = selected.data(),
                      .scratch = scratch.data(),
                      .scratch_stride = 4});
  });
  EXPECT_EQ(selected, (std::vector<std::int32_t>{0, 1, 1, 2, 1, 3}));
}

// Two shards of a cache: two heads of one token, one head of which only the second shard sees.
TEST(Merge, Shards_WeighByTheirKeysAndSinksJoinOnce) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> parts_o = {1.0F, 2.0F, nan, nan, 3.0F, 6.0F, 5.0F, 7.0F};
  const std::vector<float> parts_lse = {0.0F, kNone, std::log(3.0F), 1.0F};
  std::vector<float> o(4);
  MergeParams params{.parts = 2,
                     .n = 1,
                     .heads = 2,
                     .dim = 2,
                     .parts_o = parts_o.data(),
                     .parts_lse = parts_lse.data(),
                     .o = o.data()};
  run([&](Ops& ops) { ops.merge(params); });
  EXPECT_FLOAT_EQ(o[0], 2.5F);  // 1 to 3
  EXPECT_FLOAT_EQ(o[1], 5.0F);
  EXPECT_FLOAT_EQ(o[2], 5.0F);
  EXPECT_FLOAT_EQ(o[3], 7.0F);
  // A sink as heavy as both shards halves the first head; e to one of it takes half of the second.
  const std::vector<float> sinks = {std::log(4.0F), 1.0F};
  params.sinks = sinks.data();
  run([&](Ops& ops) { ops.merge(params); });
  EXPECT_FLOAT_EQ(o[0], 1.25F);
  EXPECT_FLOAT_EQ(o[1], 2.5F);
  EXPECT_FLOAT_EQ(o[2], 2.5F);
  EXPECT_FLOAT_EQ(o[3], 3.5F);
}

TEST(Merge, OnlyEmptyShards_AreZero) {
  const std::vector<float> parts_o(6, std::nanf(""));
  const std::vector<float> parts_lse(3, -std::numeric_limits<float>::infinity());
  std::vector<float> o = {8.0F, 8.0F};
  run([&](Ops& ops) {
    ops.merge({.parts = 3,
               .n = 1,
               .heads = 1,
               .dim = 2,
               .parts_o = parts_o.data(),
               .parts_lse = parts_lse.data(),
               .o = o.data()});
  });
  EXPECT_EQ(o[0], 0.0F);
  EXPECT_EQ(o[1], 0.0F);
}

// Of an embedding that is split by rows, a token of another rank's is one below 0.
TEST(Embed, TokenBelowZero_IsARowOfZeros) {
  const std::vector<float> table = {1.0F, 2.0F, 3.0F, 4.0F};
  WeightMatrix matrix{.format = WeightFormat::kF32, .rows = 2, .cols = 2};
  matrix.data = reinterpret_cast<const std::byte*>(table.data());
  matrix.row_bytes = 8;
  const std::vector<std::int32_t> tokens = {1, -1, 0};
  std::vector<float> y(6, 9.0F);
  run([&](Ops& ops) { ops.embed(matrix, tokens, 2.0F, y.data()); });
  EXPECT_EQ(y, (std::vector<float>{6.0F, 8.0F, 0.0F, 0.0F, 2.0F, 4.0F}));
}

TEST(Once, RunsOnTheCallersThread_BeforeAnyGoesOn) {
  const std::thread::id caller = std::this_thread::get_id();
  int count = 0;
  run(
      [&](Ops& ops) {
        for (int round = 1; round <= 20; ++round) {
          ops.once([&] {
            EXPECT_EQ(std::this_thread::get_id(), caller);
            ++count;
          });
          EXPECT_EQ(count, round);
          ops.once([] {});  // nobody counts on while others look
        }
      },
      4);
  EXPECT_EQ(count, 20);
}

}  // namespace
}  // namespace kernelpath::kernels
