#include "engines/memory_account.h"
#include "engines/sglang/attention_ranks.h"
#include "engines/sglang/rule_ids.h"
#include "engines/sglang/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// Source: mem_cache/kv_cache_configurator.py, mem_cache/memory_pool.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::int64_t kIndexBlock = 128;  // values of an index key, or of a latent, to a scale
constexpr std::int64_t kScaleBytes = 4;    // of such a block
constexpr std::int64_t kRopeBytes = 2;     // of a value that stays in bfloat16
constexpr std::int64_t kFp4Block = 16;     // values to a scale byte
constexpr std::int64_t kMxfp8Block = 32;   // the same
constexpr std::string_view kFp4 = "float4_e2m1fn_x2";

bool is_state(config::LayerKind kind) {
  return kind == config::LayerKind::kLinear || kind == config::LayerKind::kMamba;
}

// Models of blocks get a cache for every layer, whether its block has attention or not.
bool caches_every_layer(const Run& run) { return run.launch.model().model_type == "nemotron-nas"; }

bool has_cache(const Run& run, const config::Layer& layer) {
  using enum config::LayerKind;
  if (layer.kind == kNone) return caches_every_layer(run);
  return !is_state(layer.kind) && layer.kind != kEncoder && !layer.shares_kv;
}

// `values` numbers of one token, as the cache stores them.
KvParts stored(const Run& run, std::int64_t values) {
  const std::string& dtype = run.storage.torch_dtype;
  KvParts out{.values = values};
  if (dtype == kFp4) {
    out.data_bytes = values / 2;
    out.scale_bytes = values / kFp4Block;
  } else if (run.launch.text("kv_cache_dtype") == "mxfp8") {
    out.data_bytes = values;
    out.scale_bytes = values / kMxfp8Block;
  } else if (dtype.starts_with("float8")) {
    out.data_bytes = values;
  } else {
    out.data_bytes = values * (dtype == "float32" ? 4 : 2);
  }
  return out;
}

bool is_fp8(const Run& run) { return run.storage.torch_dtype.starts_with("float8"); }

// Source: calculate_mla_kv_cache_dim.
bool has_scaled_latents(const Run& run) {
  if (!run.launch.model().is_dsa || !is_fp8(run) || !run.launch.platform().cuda()) return false;
  const std::string prefill = run.launch.text("dsa_prefill_backend");
  const std::string decode = run.launch.text("dsa_decode_backend");
  const bool raw =
      prefill == "trtllm" || decode == "trtllm" || (prefill == "tilelang" && decode == "tilelang");
  return !raw;
}

KvParts latent_parts(const Run& run) {
  const ModelFacts& model = run.launch.model();
  const std::int64_t rank = model.kv_lora_rank.value_or(0);
  const std::int64_t rope = model.qk_rope_head_dim.value_or(0);
  if (!has_scaled_latents(run)) return stored(run, rank + rope);
  return {.values = rank + rope,
          .data_bytes = rank + rope * kRopeBytes,
          .scale_bytes = rank / kIndexBlock * kScaleBytes};
}

std::int64_t index_bytes(const Run& run) {
  const ModelFacts& model = run.launch.model();
  if (!model.is_dsa) return 0;
  const std::int64_t width = model.index_head_dim.value_or(kIndexBlock);
  return (width + width / kIndexBlock * kScaleBytes) / std::max<std::int64_t>(model.index_kpool, 1);
}

struct Shape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
};

Shape shape_of(const Run& run, bool sliding) {
  const ModelFacts& model = run.launch.model();
  const std::int64_t ranks = attention_ranks(run.launch);
  if (!sliding || model.num_swa_kv_heads == 0) {
    return {.heads = model.kv_heads_per_rank(ranks),
            .head_dim = model.head_dim,
            .v_head_dim = model.v_head_dim};
  }
  return {.heads = std::max<std::int64_t>(model.num_swa_kv_heads / ranks, 1),
          .head_dim = model.swa_head_dim,
          .v_head_dim = model.swa_v_head_dim};
}

// DeepSeek-V4 compresses its cache: what a token takes differs by layer and is not counted here.
bool counts_tokens(const Run& run) {
  return !run.launch.model().is_deepseek_v4 && !run.launch.flag("prefill_only_disable_kv_cache");
}

// What one of the layer's caches keeps of a token.
KvParts cache_parts(const Run& run, const config::Layer& layer) {
  if (!has_cache(run, layer) || !counts_tokens(run)) return {};
  if (run.launch.mla()) {
    KvParts out = latent_parts(run);
    out.index_bytes = index_bytes(run);
    return out;
  }
  const Shape shape = shape_of(run, layer.kind == config::LayerKind::kSliding);
  const KvParts head = stored(run, shape.head_dim + shape.v_head_dim);
  return {.values = shape.heads * head.values,
          .data_bytes = shape.heads * head.data_bytes,
          .scale_bytes = shape.heads * head.scale_bytes};
}

std::string shape_text(const Run& run, const config::Layer& layer) {
  if (run.launch.mla()) {
    const ModelFacts& model = run.launch.model();
    const std::int64_t width = model.kv_lora_rank.value_or(0) + model.qk_rope_head_dim.value_or(0);
    return fmt::format("[num_tokens, 1, {}]",
                       has_scaled_latents(run) ? bytes_of(latent_parts(run)) : width);
  }
  const Shape shape = shape_of(run, layer.kind == config::LayerKind::kSliding);
  if (shape.head_dim == shape.v_head_dim) {
    return fmt::format("2 x [num_tokens, {}, {}]", shape.heads, shape.head_dim);
  }
  return fmt::format("[num_tokens, {}, {}] and [num_tokens, {}, {}]", shape.heads, shape.head_dim,
                     shape.heads, shape.v_head_dim);
}

std::string kernel_of(const Run& run, const std::string& backend, bool prefill) {
  if (backend == "dsa") {
    return "dsa: " + run.launch.text(prefill ? "dsa_prefill_backend" : "dsa_decode_backend");
  }
  if (backend == "dsv4") return "dsv4: " + run.launch.text("dsv4_attn_backend");
  return backend;
}

std::string linear_kernel(const Run& run, bool prefill) {
  const std::string own =
      run.launch.text(prefill ? "linear_attn_prefill_backend" : "linear_attn_decode_backend");
  return own.empty() ? run.launch.text("linear_attn_backend") : own;
}

std::string attention_class(const Run& run) {
  const BuiltAttention& built = run.built;
  if (built.prefill_class.empty() || built.prefill_class == built.decode_class) {
    return built.decode_class;
  }
  return fmt::format("{} / {}", built.prefill_class, built.decode_class);
}

KvLayout kv_layout(const Run& run, const config::Layer& layer) {
  return {.dtype = run.storage.torch_dtype,
          .layout = "NHD",
          .page_size = run.launch.integer("page_size"),
          .shape = counts_tokens(run) ? shape_text(run, layer) : std::string()};
}

LayerGroup group_of(const Run& run, const config::Layer& layer) {
  LayerGroup out;
  out.kind = layer.kind;
  if (layer.kind == config::LayerKind::kNone) {
    if (has_cache(run, layer)) out.kv = kv_layout(run, layer);
    return out;
  }
  const std::string graph =
      fmt::format("decode {}, prefill {}", run.launch.graph().decode, run.launch.graph().prefill);
  out.cuda_graph = graph;
  if (is_state(layer.kind)) {
    out.backend = run.built.linear_class;
    out.prefill.kernel = linear_kernel(run, true);
    out.decode.kernel = linear_kernel(run, false);
    return out;
  }
  out.window = layer.window;
  out.backend = attention_class(run);
  out.prefill.kernel = kernel_of(run, run.launch.prefill_backend(), true);
  out.decode.kernel = kernel_of(run, run.launch.decode_backend(), false);
  if (!has_cache(run, layer)) return out;
  out.kv = kv_layout(run, layer);
  return out;
}

bool alike(const LayerGroup& a, const LayerGroup& b) {
  return a.kind == b.kind && a.window == b.window && a.backend == b.backend &&
         a.kv.dtype == b.kv.dtype && a.kv.shape == b.kv.shape;
}

}  // namespace

std::int64_t attention_ranks(const Launch& launch) {
  const std::int64_t groups = launch.size("attn_dp_size") * launch.size("attn_cp_size");
  return std::max<std::int64_t>(launch.size("tp_size") / std::max<std::int64_t>(groups, 1), 1);
}

std::vector<LayerGroup> layer_groups(const Run& run) {
  std::vector<LayerGroup> out;
  const std::vector<config::Layer>& layers = run.request.model.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerGroup group = group_of(run, layers[i]);
    auto place = std::find_if(out.begin(), out.end(),
                              [&](const LayerGroup& other) { return alike(other, group); });
    if (place == out.end()) {
      out.push_back(std::move(group));
      place = std::prev(out.end());
    }
    place->layers.push_back(static_cast<std::int64_t>(i));
    const std::int64_t caches = std::max<std::int64_t>(run.request.model.attentions_per_layer, 1);
    const KvParts parts = cache_parts(run, layers[i]);
    place->kv_bytes_per_token += caches * bytes_of(parts);
    for (std::int64_t cache = 0; cache < caches; ++cache) add_parts(place->kv_parts, parts);
  }
  return out;
}

}  // namespace kernelpath::engines::sglang
