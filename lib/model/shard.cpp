#include "model/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::model {
namespace {

// Values that share a scale.
constexpr std::int64_t kNvfp4Block = 16;
constexpr std::int64_t kMxfp4Block = 32;
// Faults that an error spells out; the rest is of the same kind.
constexpr std::size_t kNamedFaults = 4;
// Sizes that an error proposes.
constexpr std::int64_t kMostRanks = 64;

std::int64_t row_block(const Scheme& scheme) {
  return scheme.kind == SchemeKind::kFp8Block ? scheme.block_rows : 1;
}

std::int64_t column_block(const Scheme& scheme) {
  switch (scheme.kind) {
    case SchemeKind::kFp8Block:
      return scheme.block_cols;
    case SchemeKind::kNvfp4:
    case SchemeKind::kNvfp4Scale2:
      return kNvfp4Block;
    case SchemeKind::kMxfp4:
      return kMxfp4Block;
    case SchemeKind::kPlain:
    case SchemeKind::kFp8Channel:
    case SchemeKind::kFp8Tensor:
      return 1;
  }
  return 1;
}

// Every reason why the sizes of a model cannot be divided.
class SizeCheck {
 public:
  SizeCheck(const DecoderSpec& whole, std::int64_t tp) : tp_(tp) {
    divides("num_attention_heads", whole.num_heads);
    if (!whole.mla && whole.num_kv_heads % tp != 0 && tp % whole.num_kv_heads != 0) {
      add(fmt::format("{} KV heads and {} ranks: neither divides the other", whole.num_kv_heads,
                      tp));
    }
    if (whole.delta) divides("heads of the delta rule", whole.delta->heads);
    for (const LayerSpec& layer : whole.layers) {
      if (!layer.moe) divides("intermediate_size", layer.intermediate_size);
    }
    if (whole.moe) {
      divides("the experts' intermediate size", whole.moe->intermediate_size);
      divides("the shared expert's intermediate size", whole.moe->shared_intermediate_size);
    }
    if (whole.vocab_size < tp) add(fmt::format("a vocabulary of {}", whole.vocab_size));
  }

  [[nodiscard]] std::vector<std::string> take() { return std::move(faults_); }

 private:
  void divides(std::string_view what, std::int64_t size) {
    if (size % tp_ != 0) add(fmt::format("{} {} cannot be divided by {}", what, size, tp_));
  }
  void add(std::string fault) {
    if (std::ranges::find(faults_, fault) == faults_.end()) faults_.push_back(std::move(fault));
  }

  std::int64_t tp_;
  std::vector<std::string> faults_;
};

// Marks what one rank keeps.
class Sharder {
 public:
  Sharder(const DecoderSpec& whole, std::int64_t tp, std::int64_t rank)
      : whole_(whole), tp_(tp), rank_(rank), heads_(share(whole.num_heads)) {
    const std::int64_t kv = whole.num_kv_heads;
    kv_heads_ = kv >= tp ? share(kv) : Run{.first = rank * kv / tp, .count = 1};
  }

  void run(Parameters& parameters) {
    const Run tokens = vocabulary_of_rank(whole_.vocab_size, tp_, rank_);
    rows(parameters.embedding, {tokens});
    rows(parameters.lm_head, {tokens});
    for (std::size_t l = 0; l < parameters.layers.size(); ++l) {
      Layer& layer = parameters.layers[l];
      heads(layer.heads);
      latent(layer.latent);
      delta(layer.delta);
      mlp(layer.mlp, whole_.layers[l].intermediate_size);
      moe(layer.moe);
    }
  }

  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

 private:
  [[nodiscard]] Run share(std::int64_t size) const {
    return {.first = size / tp_ * rank_, .count = size / tp_};
  }
  static Run times(const Run& run, std::int64_t width) {
    return {.first = run.first * width, .count = run.count * width};
  }
  static Run behind(const Run& run, std::int64_t place) {
    return {.first = place + run.first, .count = run.count};
  }

  template <class Projection>
  void rows(Projection& projection, const std::vector<Run>& runs) {
    if (!projection.exists()) return;
    projection.split = {.dim = 0, .whole = projection.out, .runs = runs};
    projection.out = projection.split.kept();
    check(projection, row_block(projection.scheme), "rows");
  }

  template <class Projection>
  void columns(Projection& projection, const Run& run) {
    if (!projection.exists()) return;
    projection.split = {.dim = 1, .whole = projection.in, .runs = {run}};
    projection.in = run.count;
    check(projection, column_block(projection.scheme), "columns");
  }

  template <class Projection>
  void check(const Projection& projection, std::int64_t block, std::string_view what) {
    if (projection.split.keeps_blocks(block)) return;
    faults_.push_back(fmt::format("{}: {} of {} {} a rank cut its blocks of {} {}",
                                  projection.module, projection.split.kept(),
                                  projection.split.whole, what, block, what));
  }

  static void elements(Vector& vector, std::size_t dim, const Run& run) {
    if (!vector.exists()) return;
    vector.split = {.dim = dim, .whole = vector.shape[dim], .runs = {run}};
    vector.shape[dim] = run.count;
  }

  void heads(HeadsWeights& weights) {
    const Run q = times(heads_, whole_.head_dim);
    const Run kv = times(kv_heads_, whole_.head_dim);
    const std::int64_t k_at = whole_.q_width();
    rows(weights.qkv, {q, behind(kv, k_at), behind(kv, k_at + whole_.kv_width())});
    rows(weights.q, {q});
    rows(weights.k, {kv});
    rows(weights.v, {kv});
    columns(weights.o, q);
    elements(weights.sinks, 0, heads_);
    // Norms over all heads at once read the heads of all ranks.
  }

  // The latent is every rank's, and so is the choice of keys.
  void latent(LatentWeights& weights) {
    if (!whole_.mla) return;
    const MlaSpec& mla = *whole_.mla;
    const Run q = times(heads_, mla.nope + mla.rope);
    rows(weights.q, {q});
    rows(weights.q_b, {q});
    rows(weights.kv_b, {times(heads_, mla.nope + mla.v_head_dim)});
    columns(weights.o, times(heads_, mla.v_head_dim));
  }

  void delta(DeltaWeights& weights) {
    if (!whole_.delta) return;
    const Run heads = share(whole_.delta->heads);
    const Run width = times(heads, whole_.delta->head_dim);
    for (Linear* linear : {&weights.q, &weights.k, &weights.v, &weights.f_b, &weights.g_b}) {
      rows(*linear, {width});
    }
    rows(weights.beta, {heads});
    columns(weights.o, width);
    for (Vector* conv : {&weights.q_conv, &weights.k_conv, &weights.v_conv}) {
      elements(*conv, 0, width);
    }
    elements(weights.a_log, 2, heads);
    elements(weights.dt_bias, 0, width);
  }

  void mlp(MlpWeights& weights, std::int64_t inner) {
    const Run part = share(inner);
    rows(weights.gate_up, {part, behind(part, inner)});
    rows(weights.gate, {part});
    rows(weights.up, {part});
    columns(weights.down, part);
  }

  void moe(MoeWeights& weights) {
    if (!weights.router.exists()) return;
    const MoeSpec& moe = *whole_.moe;
    for (MlpWeights& expert : weights.experts) mlp(expert, moe.intermediate_size);
    mlp(weights.shared, moe.shared_intermediate_size);
    const Run part = share(moe.intermediate_size);
    if (moe.layout == kernels::GateUpLayout::kInterleaved) {
      rows(weights.gate_up, {times(part, 2)});
    } else {
      rows(weights.gate_up, {part, behind(part, moe.intermediate_size)});
    }
    columns(weights.down, part);
  }

  const DecoderSpec& whole_;
  std::int64_t tp_;
  std::int64_t rank_;
  Run heads_;
  Run kv_heads_;
  std::vector<std::string> faults_;
};

// Everything against `tp` ranks; the splits of all ranks cut alike.
std::vector<std::string> faults_of(Parameters parameters, const DecoderSpec& whole,
                                   std::int64_t tp) {
  std::vector<std::string> faults = SizeCheck(whole, tp).take();
  if (!faults.empty()) return faults;
  Sharder sharder(whole, tp, 0);
  sharder.run(parameters);
  return sharder.faults();
}

std::string valid_sizes(const Parameters& parameters, const DecoderSpec& whole) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t tp = 1; tp <= std::min(whole.num_heads, kMostRanks); ++tp) {
    if (tp == 1 || faults_of(parameters, whole, tp).empty()) sizes.push_back(tp);
  }
  return fmt::format("{}", fmt::join(sizes, ", "));
}

}  // namespace

DecoderSpec spec_of_rank(const DecoderSpec& whole, std::int64_t tp) {
  DecoderSpec out = whole;
  out.num_heads /= tp;
  out.num_kv_heads = std::max<std::int64_t>(out.num_kv_heads / tp, 1);
  if (out.delta) out.delta->heads /= tp;
  for (LayerSpec& layer : out.layers) layer.intermediate_size /= tp;
  if (out.moe) {
    out.moe->intermediate_size /= tp;
    out.moe->shared_intermediate_size /= tp;
  }
  return out;
}

Run vocabulary_of_rank(std::int64_t vocab_size, std::int64_t tp, std::int64_t rank) {
  const std::int64_t first = vocab_size * rank / tp;
  return {.first = first, .count = vocab_size * (rank + 1) / tp - first};
}

std::int64_t widest_vocabulary(std::int64_t vocab_size, std::int64_t tp) {
  return (vocab_size + tp - 1) / tp;
}

Result<void> shard_parameters(Parameters& parameters, const DecoderSpec& whole,
                              const comm::Placement& place) {
  if (place.tp == 1) return {};
  std::vector<std::string> faults = SizeCheck(whole, place.tp).take();
  if (faults.empty()) {
    Parameters parts = parameters;
    Sharder sharder(whole, place.tp, place.tp_rank);
    sharder.run(parts);
    faults = sharder.faults();
    if (faults.empty()) {
      parameters = std::move(parts);
      return {};
    }
  }
  const std::size_t named = std::min(faults.size(), kNamedFaults);
  std::string text = fmt::format(
      "{}", fmt::join(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(named), "; "));
  if (named < faults.size()) text += fmt::format("; and {} more", faults.size() - named);
  return fail(Error{.code = ErrorCode::kUnavailable,
                    .message = std::move(text),
                    .where = "--tp",
                    .value = std::to_string(place.tp),
                    .hint = fmt::format("valid sizes: {}", valid_sizes(parameters, whole))});
}

}  // namespace kernelpath::model
