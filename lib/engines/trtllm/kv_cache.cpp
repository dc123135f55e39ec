#include "engines/trtllm/kv_cache.h"

#include "base/checked.h"
#include "base/text.h"
#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kernelpath::engines::trtllm {
namespace {

// NVFP4 keeps one FP8 scale for so many elements.
constexpr std::int64_t kScaleGroup = 16;
constexpr std::int64_t kFactorKAndV = 2;
constexpr std::int64_t kFactorLatent = 1;

EngineError engine_error(std::string type, std::string code, std::string message) {
  return EngineError{.type = std::move(type),
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

Error overflow() {
  return Error{.code = ErrorCode::kConfigOverflow,
               .message = "the KV cache of one token does not fit 64 bits"};
}

Result<void> check_positive(std::string_view name, std::int64_t value) {
  if (value > 0) return {};
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} is {}, it must be > 0", name, value)});
}

Result<std::int64_t> multiply(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    const auto next = checked_mul(product, factor);
    if (!next) return fail(overflow());
    product = *next;
  }
  return product;
}

Result<std::int64_t> latent_width(const KvGeometry& geometry) {
  const auto width = checked_add(geometry.kv_lora_rank.value_or(0), geometry.qk_rope_head_dim);
  if (!width) return fail(overflow());
  return *width;
}

// Elements of one layer in the engine's estimate. With a list of KV heads it takes their mean, in
// floating point, before it divides by tp and rounds down.
Result<std::int64_t> estimated_width(const KvGeometry& geometry, std::int64_t tp) {
  if (geometry.mla) return latent_width(geometry);
  if (geometry.kv_heads_per_layer.empty()) {
    KERNELPATH_TRY(all_ranks, multiply({geometry.head_dim, geometry.num_kv_heads}));
    return all_ranks / tp;
  }
  const double sum =
      std::accumulate(geometry.kv_heads_per_layer.begin(), geometry.kv_heads_per_layer.end(), 0.0,
                      [](double a, std::int64_t b) { return a + static_cast<double>(b); });
  const double mean = sum / static_cast<double>(geometry.kv_heads_per_layer.size());
  const double width = static_cast<double>(geometry.head_dim) * mean;
  const auto divisor = static_cast<double>(tp);
  const double floored = (width - std::fmod(width, divisor)) / divisor;
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (!(floored <= kLargestExact)) return fail(overflow());
  return static_cast<std::int64_t>(floored);
}

Result<std::int64_t> estimate(const KvGeometry& geometry, std::int64_t tp) {
  const std::int64_t layers = std::max<std::int64_t>(
      pipeline_layers(geometry.num_layers, geometry.pp, geometry.pp_rank).size(), 1);
  KERNELPATH_TRY(width, estimated_width(geometry, tp));
  KERNELPATH_TRY(elements, multiply({geometry.mla ? kFactorLatent : kFactorKAndV, layers, width}));
  if (geometry.dtype == DataType::kFp8) return elements;
  if (geometry.dtype == DataType::kNvfp4) {
    return ceil_div(elements, 2) + ceil_div(elements, kScaleGroup);
  }
  // FP32 is budgeted as if it had 16 bits.
  return multiply({elements, 2});
}

// KV heads of the rank's layers; a rank without layers still gets layer 0.
Result<std::int64_t> runtime_heads(const KvGeometry& geometry, std::int64_t tp) {
  LayerRange range = pipeline_layers(geometry.num_layers, geometry.pp, geometry.pp_rank);
  if (range.size() == 0) range = {0, 1};
  if (geometry.mla) return range.size();
  if (geometry.kv_heads_per_layer.empty()) {
    return multiply({ceil_div(geometry.num_kv_heads, tp), range.size()});
  }
  std::int64_t heads = 0;
  for (std::int64_t layer = range.first; layer < range.last; ++layer) {
    const std::int64_t of_layer = geometry.kv_heads_per_layer[static_cast<std::size_t>(layer)];
    const auto next = checked_add(heads, ceil_div(of_layer, tp));
    if (!next) return fail(overflow());
    heads = *next;
  }
  return heads;
}

Result<void> add_runtime(const KvGeometry& geometry, std::int64_t tp, KvBytes& bytes) {
  KERNELPATH_TRY(heads, runtime_heads(geometry, tp));
  std::int64_t width = geometry.head_dim;
  if (geometry.mla) {
    KERNELPATH_TRY(latent, latent_width(geometry));
    width = latent;
  }
  KERNELPATH_TRY(elements, multiply({geometry.mla ? kFactorLatent : kFactorKAndV, heads, width}));
  if (geometry.dtype == DataType::kNvfp4) {
    if (elements % kScaleGroup != 0) {
      bytes.error = engine_error(
          "AssertionError", "NVFP4-INDIVISIBLE",
          fmt::format("{} cache elements a token do not divide by {}, the NVFP4 scale group",
                      elements, kScaleGroup));
      return {};
    }
    bytes.runtime_data_bytes = elements / 2;
    bytes.runtime_scale_bytes = elements / kScaleGroup;
    return {};
  }
  const std::int64_t element_bytes = geometry.dtype == DataType::kFp8    ? 1
                                     : geometry.dtype == DataType::kFp32 ? 4
                                                                         : 2;
  KERNELPATH_TRY(data, multiply({elements, element_bytes}));
  bytes.runtime_data_bytes = data;
  return {};
}

std::int64_t fewest_kv_heads(const KvGeometry& geometry) {
  if (geometry.kv_heads_per_layer.empty()) return geometry.num_kv_heads;
  return *std::min_element(geometry.kv_heads_per_layer.begin(), geometry.kv_heads_per_layer.end());
}

Result<void> check_geometry(const KvGeometry& geometry) {
  KERNELPATH_CHECK_OK(check_positive("num_layers", geometry.num_layers));
  KERNELPATH_CHECK_OK(check_positive("tp", geometry.tp));
  KERNELPATH_CHECK_OK(check_positive("pp", geometry.pp));
  if (geometry.pp_rank < 0 || geometry.pp_rank >= geometry.pp) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("pp_rank is {}, it must be in [0, {})",
                                             geometry.pp_rank, geometry.pp)});
  }
  if (geometry.mla) return {};
  KERNELPATH_CHECK_OK(check_positive("head_dim", geometry.head_dim));
  if (!geometry.kv_heads_per_layer.empty()) {
    // Layers without attention stand in the list as 0.
    for (const std::int64_t heads : geometry.kv_heads_per_layer) {
      if (heads >= 0) continue;
      return fail(Error{.code = ErrorCode::kConfigValue,
                        .message = fmt::format("num_key_value_heads holds {}", heads)});
    }
    return {};
  }
  return check_positive("num_key_value_heads", geometry.num_kv_heads);
}

bool has_kv_cache(config::LayerKind kind) {
  return kind == config::LayerKind::kFull || kind == config::LayerKind::kSliding ||
         kind == config::LayerKind::kChunked || kind == config::LayerKind::kSparse;
}

Result<std::int64_t> required(const config::IntField& field, std::string_view name) {
  if (field) return *field;
  return fail(Error{.code = ErrorCode::kConfigMissing,
                    .message = fmt::format("the KV cache needs {}, which the config lacks", name)});
}

}  // namespace

LayerRange pipeline_layers(std::int64_t num_layers, std::int64_t pp, std::int64_t pp_rank) {
  const std::int64_t share = num_layers / pp;
  const std::int64_t longer = num_layers % pp;
  const std::int64_t first = pp_rank * share + std::min(pp_rank, longer);
  return {first, first + share + (pp_rank < longer ? 1 : 0)};
}

Result<KvGeometry> kv_geometry(const config::ModelConfig& model, const KvDeployment& deployment) {
  KvGeometry geometry;
  geometry.dtype = deployment.dtype;
  geometry.tp = deployment.tp;
  geometry.pp = deployment.pp;
  geometry.pp_rank = deployment.pp_rank;
  geometry.attention_dp = deployment.attention_dp;
  geometry.mla = model.has_kv_lora_rank;
  if (model.mla) {
    geometry.kv_lora_rank = model.mla->kv_lora_rank.value;
    geometry.qk_rope_head_dim = model.mla->qk_rope_head_dim.value_or(0);
  }
  geometry.num_layers =
      std::count_if(model.layers.begin(), model.layers.end(),
                    [](const config::Layer& layer) { return has_kv_cache(layer.kind); });
  if (model.layers.empty()) {
    KERNELPATH_TRY(layers, required(model.num_hidden_layers, "num_hidden_layers"));
    geometry.num_layers = layers;
  }
  if (geometry.mla) return geometry;
  KERNELPATH_TRY(head_dim, required(model.head_dim, "head_dim"));
  geometry.head_dim = head_dim;
  geometry.kv_heads_per_layer = model.num_key_value_heads_list;
  if (!geometry.kv_heads_per_layer.empty()) {
    geometry.num_layers = static_cast<std::int64_t>(geometry.kv_heads_per_layer.size());
    return geometry;
  }
  const config::IntField& heads =
      model.num_key_value_heads ? model.num_key_value_heads : model.num_attention_heads;
  KERNELPATH_TRY(kv_heads, required(heads, "num_key_value_heads or num_attention_heads"));
  geometry.num_kv_heads = kv_heads;
  return geometry;
}

Result<KvBytes> kv_bytes_per_token(const KvGeometry& geometry) {
  KERNELPATH_CHECK_OK(check_geometry(geometry));
  KvBytes bytes;
  if (geometry.mla && !geometry.kv_lora_rank) {
    bytes.error = engine_error("TypeError", "KV-MLA-RANK-NULL",
                               "kv_lora_rank is there and null: the engine takes the model for MLA "
                               "and adds to null");
    return bytes;
  }
  const bool list_fits =
      geometry.kv_heads_per_layer.size() == static_cast<std::size_t>(geometry.num_layers);
  if (!geometry.kv_heads_per_layer.empty() && !list_fits) {
    bytes.error =
        engine_error("AssertionError", "KV-HEADS-LIST-LENGTH",
                     fmt::format("num_key_value_heads lists {} layers, the model has {}",
                                 geometry.kv_heads_per_layer.size(), geometry.num_layers));
    return bytes;
  }
  const std::int64_t tp = geometry.attention_dp ? 1 : geometry.tp;
  KERNELPATH_TRY(estimated, estimate(geometry, tp));
  bytes.estimate_bytes = estimated;
  bytes.kv_heads_replicated = !geometry.mla && tp > fewest_kv_heads(geometry);
  KERNELPATH_CHECK_OK(add_runtime(geometry, tp, bytes));
  return bytes;
}

void append_steps(const KvBytes& bytes, std::vector<Step>& steps) {
  if (bytes.error) {
    append_error_step(*bytes.error, Stage::kMemory, "", steps);
    return;
  }
  append_step({.rule = "TRT-KV-BYTES",
               .stage = Stage::kMemory,
               .verdict = Verdict::kNoted,
               .candidate = "kv_bytes_per_token",
               .reason = fmt::format("{} bytes a token and rank, budgeted as {}",
                                     bytes.runtime_total_bytes(), bytes.estimate_bytes)},
              steps);
  if (bytes.estimate_equals_runtime()) return;
  append_step({.rule = "TRT-KV-ESTIMATE-DIFFERS",
               .stage = Stage::kMemory,
               .verdict = Verdict::kNoted,
               .severity = Severity::kWarn,
               .candidate = "kv_bytes_per_token",
               .reason = bytes.kv_heads_replicated
                             ? "KV heads are replicated over tensor-parallel ranks, which the "
                               "budget does not count"
                             : "KV heads vary by layer, and the budget takes their mean"},
              steps);
}

Result<KvPool> kv_pool(const KvPoolRequest& request) {
  KERNELPATH_CHECK_OK(check_positive("total memory", request.total_bytes));
  KERNELPATH_CHECK_OK(check_positive("tokens_per_block", request.tokens_per_block));
  KERNELPATH_CHECK_OK(
      check_positive("estimated bytes per token", request.estimate_bytes_per_token));
  KERNELPATH_CHECK_OK(check_positive("bytes per token", request.runtime_bytes_per_token));
  KvPool pool;
  const double fraction = request.free_gpu_memory_fraction;
  if (!(fraction >= 0.0 && fraction < 1.0)) {
    pool.error = engine_error("AssertionError", "KV-FRACTION",
                              fmt::format("free_gpu_memory_fraction is {}, it must be < 1 here, "
                                          "although argument validation allows 1",
                                          fraction));
    return pool;
  }
  const double free_bytes = static_cast<double>(request.total_bytes) -
                            static_cast<double>(request.peak_bytes) +
                            static_cast<double>(request.probe_bytes);
  pool.budget_bytes = static_cast<std::int64_t>(std::max(free_bytes, 0.0) * fraction);
  pool.tokens = pool.budget_bytes / request.estimate_bytes_per_token;
  pool.several_windows = request.distinct_windows > 1;
  if (request.max_tokens && !pool.several_windows && *request.max_tokens < pool.tokens) {
    pool.tokens = std::max<std::int64_t>(*request.max_tokens, 0);
    pool.limited_by_max_tokens = true;
  }
  pool.blocks = pool.tokens / request.tokens_per_block;
  KERNELPATH_TRY(pool_bytes, multiply({pool.blocks, request.tokens_per_block,
                                       request.runtime_bytes_per_token}));
  pool.pool_bytes = pool_bytes;
  return pool;
}

void append_steps(const KvPool& pool, std::vector<Step>& steps) {
  if (pool.error) {
    append_error_step(*pool.error, Stage::kMemory, "", steps);
    return;
  }
  append_step({.rule = "TRT-KV-POOL",
               .stage = Stage::kMemory,
               .verdict = Verdict::kNoted,
               .candidate = "kv_pool_tokens",
               .reason = fmt::format("{} bytes are budgeted: {} tokens in {} blocks",
                                     pool.budget_bytes, pool.tokens, pool.blocks)},
              steps);
  if (pool.limited_by_max_tokens) {
    append_step({.rule = "TRT-KV-MAX-TOKENS",
                 .stage = Stage::kMemory,
                 .verdict = Verdict::kApplied,
                 .candidate = "kv_cache_config.max_tokens",
                 .reason = "max_tokens is smaller than what fits"},
                steps);
  }
  if (pool.several_windows) {
    append_step({.rule = "TRT-KV-WINDOWS",
                 .stage = Stage::kMemory,
                 .verdict = Verdict::kNoted,
                 .candidate = "kv_cache_config.max_attention_window",
                 .reason = "several window sizes share the budget equally by default, and "
                           "max_tokens is ignored"},
                steps);
  }
}

bool skips_profiling_run(std::string_view backend, bool skip_switch, std::int64_t cp) {
  return equal_ignoring_case(backend, "VANILLA") || skip_switch || cp > 1;
}

}  // namespace kernelpath::engines::trtllm
