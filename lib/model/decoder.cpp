#include "model/decoder.h"

#include "comm/agree.h"
#include "kv/layout.h"
#include "model/absorb.h"
#include "model/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace kernelpath::model {
namespace {

std::vector<CacheRows> make_cache_rows(const DecoderSpec& spec) {
  std::vector<CacheRows> out;
  out.reserve(spec.layers.size());
  for (const LayerSpec& layer : spec.layers) {
    CacheRows rows;
    rows.window = layer.window;
    rows.chunk = layer.chunk;
    switch (layer.mixer) {
      case Mixer::kHeads:
        rows.num_kv_heads = spec.num_kv_heads;
        rows.head_dim = spec.head_dim;
        rows.v_head_dim = spec.head_dim;
        break;
      case Mixer::kLatent:
        rows.num_kv_heads = 1;
        rows.head_dim = spec.mla->row();
        if (layer.index) rows.index_head_dim = spec.index->head_dim;
        break;
      case Mixer::kDelta:
        rows.state_floats = spec.delta->state_floats();
        break;
    }
    out.push_back(rows);
  }
  return out;
}

void norm_stream(const Pass& pass, const Vector& weight, const float* x, float* y) {
  pass.ops.norm({.kind = pass.spec.family->norm,
                 .n = pass.n,
                 .dim = pass.spec.hidden_size,
                 .x = x,
                 .x_stride = pass.spec.hidden_size,
                 .y = y,
                 .y_stride = pass.spec.hidden_size,
                 .weight = weight.data,
                 .weight_offset = pass.spec.family->norm_offset,
                 .eps = pass.spec.eps});
}

void mix(const LayerPass& at, const float* x, float* y) {
  switch (at.spec.mixer) {
    case Mixer::kHeads:
      return mix_heads(at, x, y);
    case Mixer::kLatent:
      return mix_latent(at, x, y);
    case Mixer::kDelta:
      return mix_delta(at, x, y);
  }
}

// x += out_norm(y), scaled.
void add_to_stream(const Pass& pass, const Vector& out_norm) {
  const Buffers& b = pass.buffers;
  if (out_norm.exists()) norm_stream(pass, out_norm, b.y, b.y);
  pass.ops.add(pass.n * pass.spec.hidden_size, b.y, pass.spec.residual_scale, b.x);
}

void run_layer(const LayerPass& at) {
  const Pass& pass = at.pass;
  const Buffers& b = pass.buffers;
  const Layer& layer = at.layer;
  const float* input = b.x;
  if (layer.attn_in.exists()) {
    norm_stream(pass, layer.attn_in, b.x, b.h);
    input = b.h;
  }
  mix(at, input, b.y);
  sum_over_ranks(pass, b.y);
  add_to_stream(pass, layer.attn_out);
  if (!pass.spec.family->parallel) {  // else both read the one norm before attention
    input = b.x;
    if (layer.mlp_in.exists()) {
      norm_stream(pass, layer.mlp_in, b.x, b.h);
      input = b.h;
    }
  }
  feed_forward(at, input, b.y);
  sum_over_ranks(pass, b.y);
  add_to_stream(pass, layer.mlp_out);
}

Unexpected bad_step(std::string message) {
  return fail(Error{.code = ErrorCode::kUsage, .message = std::move(message)});
}

}  // namespace

kernels::MatmulPart project(const Linear& linear, std::int64_t n, const float* x, float* y,
                            std::int64_t y_stride) {
  return {.w = linear.w,
          .bias = linear.bias,
          .n = n,
          .x = x,
          .x_stride = linear.in,
          .y = y,
          .y_stride = y_stride == 0 ? linear.out : y_stride};
}

void rotate(const LayerPass& at, const RopeRows& rows) {
  const std::int64_t dims = at.pass.spec.ropes[at.spec.rope_table].dims;
  at.pass.ops.rope({.n = at.pass.n,
                    .heads = rows.heads,
                    .width = dims,
                    .rotary = dims,
                    .interleaved = rows.interleaved,
                    .src = rows.data,
                    .src_stride = rows.stride,
                    .src_head_stride = rows.head_stride,
                    .dst = rows.data,
                    .dst_stride = rows.stride,
                    .dst_head_stride = rows.head_stride,
                    .cos = at.pass.buffers.cos[at.spec.rope_table],
                    .sin = at.pass.buffers.sin[at.spec.rope_table]});
}

Decoder::Decoder(Parts parts, kernels::Executor& executor)
    : spec_(std::move(parts.spec)),
      attention_(std::move(parts.attention)),
      parameters_(std::move(parts.parameters)),
      cache_rows_(make_cache_rows(spec_)),
      executor_(executor),
      ranks_(parts.ranks) {
  needs_ = list_needs(parameters_);
  tensors_.reserve(needs_.size());
  for (const Need& need : needs_) tensors_.push_back({need.names.front(), need.shape});
  for (const RopeSpec& rope : spec_.ropes) ropes_.emplace_back(rope);
}

Result<void> Decoder::measure(const checkpoint::TensorFiles& files, int threads) {
  KERNELPATH_TRY(sizes, measure_weights(files, needs_, request(threads)));
  const std::int64_t resident = sizes.kept + absorbed_bytes(parameters_);
  weight_bytes_ = {.stored = sizes.stored,
                   .resident = resident,
                   .construction_peak = resident + sizes.temporary + sizes.conversion,
                   .tensors = sizes.tensors};
  return {};
}

Result<void> Decoder::load(const checkpoint::TensorFiles& files, int threads) {
  KERNELPATH_CHECK_OK(measure(files, threads));
  KERNELPATH_TRY(store, load_weights(files, needs_, request(threads)));
  KERNELPATH_TRY(absorbed, absorb_latent_weights(spec_, parameters_));
  weights_ = std::move(store.kept);
  absorbed_ = std::move(absorbed);
  warnings_ = std::move(store.warnings);
  keep_biases_once();
  make_expert_views();
  loaded_ = true;
  return {};
}

LoadRequest Decoder::request(int threads) const {
  return {.num_layers = static_cast<std::int64_t>(spec_.layers.size()),
          .tied = spec_.tied,
          .threads = threads};
}

// A bias of what is summed over ranks is added by the first.
void Decoder::keep_biases_once() {
  if (ranks_.place().tp_rank == 0) return;
  for_each_linear(parameters_, [](Linear& linear) {
    if (linear.splits(1)) linear.bias = nullptr;
  });
}

void Decoder::make_expert_views() {
  for (Layer& layer : parameters_.layers) {
    MoeWeights& moe = layer.moe;
    for (const MlpWeights& expert : moe.experts) {
      moe.views.push_back({.gate = expert.gate.w, .up = expert.up.w, .down = expert.down.w});
    }
    for (std::size_t e = 0; e < moe.gate_up.w.size(); ++e) {
      kernels::Expert view{.gate = moe.gate_up.w[e], .up = {}, .down = moe.down.w[e]};
      const auto number = static_cast<std::int64_t>(e);
      if (moe.gate_up.has_bias) {
        const bool first_rank = ranks_.place().tp_rank == 0;
        view.gate_bias = moe.gate_up.bias + number * moe.gate_up.out;
        view.down_bias = first_rank ? moe.down.bias + number * moe.down.out : nullptr;
      }
      moe.views.push_back(view);
    }
  }
}

bool Decoder::rope_depends_on_length() const {
  return std::ranges::any_of(ropes_, &RopeTable::depends_on_length);
}

std::int64_t Decoder::workspace_bytes(const StepSize& size) const {
  return Workspace::bytes(spec_, ranks_.place(), size);
}

Result<void> Decoder::check(const Step& step) const {
  if (!loaded_) {
    return fail(Error{.code = ErrorCode::kUnavailable,
                      .message = fmt::format("embed of {}.weight: the model was built shape-only "
                                             "and its tensors have no data",
                                             parameters_.embedding.module),
                      .hint = "build it without shape_only"});
  }
  const auto n = static_cast<std::int64_t>(step.tokens.size());
  const auto requests = step.metadata.seq_lens.size();
  if (step.metadata.num_tokens() != n || step.positions.size() != step.tokens.size()) {
    return bad_step(fmt::format("a step of {} tokens with {} positions, and requests of {} tokens",
                                n, step.positions.size(), step.metadata.num_tokens()));
  }
  if (step.caches.size() != spec_.layers.size()) {
    return bad_step(fmt::format("caches of {} layers; the model has {}", step.caches.size(),
                                spec_.layers.size()));
  }
  if (spec_.delta && step.state_slots.size() != requests) {
    return bad_step(
        fmt::format("{} state slots for {} requests", step.state_slots.size(), requests));
  }
  for (const std::int32_t token : step.tokens) {
    if (token >= 0 && token < spec_.vocab_size) continue;
    return bad_step(
        fmt::format("token {} is outside the vocabulary of {}", token, spec_.vocab_size));
  }
  for (const std::int32_t row : step.logit_rows) {
    if (row < 0 || row >= n) return bad_step(fmt::format("row {} of {} tokens", row, n));
  }
  return {};
}

// Which rows of this rank's embedding the tokens are, and where index keys lie.
void Decoder::fill_rank_tables(const Step& step) {
  const Buffers& b = workspace_.buffers();
  const comm::Placement& place = ranks_.place();
  if (place.tp > 1) {
    const Run own = vocabulary_of_rank(spec_.vocab_size, place.tp, place.tp_rank);
    for (std::size_t i = 0; i < step.tokens.size(); ++i) {
      const std::int64_t row = step.tokens[i] - own.first;
      b.rank_tokens[i] = row >= 0 && row < own.count ? static_cast<std::int32_t>(row) : -1;
    }
  }
  if (place.dcp == 1 || !spec_.index) return;
  const std::int64_t block = step.metadata.page_size * place.dcp;
  const auto& starts = step.metadata.query_start;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    const std::int32_t* const blocks =
        step.metadata.block_table.data() +
        static_cast<std::int64_t>(r) * step.metadata.block_table_stride;
    for (std::int32_t i = starts[r]; i < starts[r + 1]; ++i) {
      b.index_slots[i] = kv::slot_of(blocks, step.positions[static_cast<std::size_t>(i)], block);
    }
  }
}

// Angles, and the factors of queries that grow with their position.
void Decoder::fill_tables(const Step& step) {
  const Buffers& b = workspace_.buffers();
  const auto& starts = step.metadata.query_start;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    const std::int64_t prompt = step.prompt_lens.empty() ? 0 : step.prompt_lens[r];
    for (auto i = static_cast<std::size_t>(starts[r]); i < static_cast<std::size_t>(starts[r + 1]);
         ++i) {
      b.rope_lengths[i] = std::max(prompt, step.positions[i] + 1);
    }
  }
  const std::span<const std::int64_t> lengths(b.rope_lengths, step.tokens.size());
  for (std::size_t t = 0; t < ropes_.size(); ++t) {
    ropes_[t].fill(step.positions, lengths, b.cos[t], b.sin[t]);
  }
  fill_rank_tables(step);
  if (spec_.floor_scale <= 0.0) return;
  for (std::size_t i = 0; i < step.positions.size(); ++i) {
    const double place = std::floor(static_cast<double>(step.positions[i] + 1) / spec_.floor_scale);
    b.temperature[i] = static_cast<float>(1.0 + spec_.attn_scale * std::log1p(place));
  }
}

void Decoder::embed(const Pass& pass) const {
  const Buffers& b = pass.buffers;
  const bool splits = pass.ranks.splits_tensors();
  const std::span<const std::int32_t> tokens =
      splits ? std::span<const std::int32_t>(b.rank_tokens, pass.step.tokens.size())
             : pass.step.tokens;
  pass.ops.embed(parameters_.embedding.w, tokens, spec_.embedding_scale, b.x);
  sum_over_ranks(pass, b.x);
}

void Decoder::project_logits(const Pass& pass, float* logits) const {
  const auto rows = static_cast<std::int64_t>(pass.step.logit_rows.size());
  const Buffers& b = pass.buffers;
  const Linear& head = spec_.tied ? parameters_.embedding : parameters_.lm_head;
  if (!pass.ranks.splits_tensors()) {
    const std::array parts{project(head, rows, b.last, logits)};
    return pass.ops.matmul(parts);
  }
  const std::int64_t width = widest_vocabulary(spec_.vocab_size, pass.ranks.place().tp);
  const std::array parts{project(head, rows, b.last, b.rank_logits, width)};
  pass.ops.matmul(parts);
  gather_logits(pass, rows, logits);
}

void Decoder::run(kernels::Ops& ops, const Step& step, float* logits) {
  const Buffers& b = workspace_.buffers();
  attention::BatchView block_batch = step.metadata.view();
  block_batch.page_size *= ranks_.place().dcp;
  const Pass pass{.spec = spec_,
                  .parameters = parameters_,
                  .step = step,
                  .buffers = b,
                  .ops = ops,
                  .attention = attention_,
                  .ranks = ranks_,
                  .n = static_cast<std::int64_t>(step.tokens.size()),
                  .batch = step.metadata.view(),
                  .block_batch = block_batch};
  embed(pass);
  for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
    run_layer({pass, spec_.layers[l], parameters_.layers[l], step.caches[l], attention_.layer(l)});
  }
  const auto rows = static_cast<std::int64_t>(step.logit_rows.size());
  if (rows == 0) return;
  ops.norm({.kind = spec_.family->norm,
            .n = rows,
            .dim = spec_.hidden_size,
            .x = b.x,
            .x_stride = spec_.hidden_size,
            .y = b.last,
            .y_stride = spec_.hidden_size,
            .weight = parameters_.norm.data,
            .weight_offset = spec_.family->norm_offset,
            .eps = spec_.eps,
            .x_rows = step.logit_rows.data()});
  project_logits(pass, logits);
  if (spec_.logit_scale == 1.0F && spec_.final_softcap == 0.0F) return;
  ops.scale_and_cap(rows * spec_.vocab_size, spec_.logit_scale, spec_.final_softcap, logits);
}

Result<void> Decoder::prepare(const Step& step) {
  KERNELPATH_CHECK_OK(check(step));
  StepSize size{.tokens = static_cast<std::int64_t>(step.tokens.size()),
                .logit_rows = static_cast<std::int64_t>(step.logit_rows.size()),
                .longest = *std::ranges::max_element(step.metadata.seq_lens),
                .threads = executor_.threads()};
  KERNELPATH_CHECK_OK(workspace_.prepare(spec_, ranks_.place(), size));
  return attention_.begin(step.metadata);
}

Result<void> Decoder::forward(const Step& step, float* logits) {
  if (step.tokens.empty()) return check(step);
  const Result<void> prepared = prepare(step);
  // A rank that cannot go on must not leave the others waiting inside the step.
  KERNELPATH_CHECK_OK(
      ranks_.place().world == nullptr ? prepared : comm::agree(*ranks_.place().world, prepared));
  fill_tables(step);
  executor_.run([&](kernels::Ops& ops) { run(ops, step, logits); });
  if (ranks_.failure()) return fail(*ranks_.failure());
  return {};
}

}  // namespace kernelpath::model
