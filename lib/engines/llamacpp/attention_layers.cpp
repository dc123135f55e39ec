// Source: llama.cpp 0c1e5709, src/llama-graph.cpp (build_attn, build_attn_mha),
// src/llama-context.cpp (resolve_fused_ops).
#include "engines/llamacpp/attention_layers.h"

#include <algorithm>
#include <charconv>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kDeepseek4 = "LLM_ARCH_DEEPSEEK4";

// "gfx942" → kAmdOffset + 0x942.
std::int64_t amd_number(std::string_view target) {
  constexpr std::string_view kPrefix = "gfx";
  if (target.starts_with(kPrefix)) target.remove_prefix(kPrefix.size());
  std::int64_t number = 0;
  std::from_chars(target.data(), target.data() + target.size(), number, 16);
  return kAmdOffset + number;
}

const Cache* find_cache(const MemoryPlan& memory, std::string_view role) {
  const auto found = std::ranges::find(memory.caches, role, &Cache::role);
  return found == memory.caches.end() ? nullptr : &*found;
}

bool owns(const Cache* cache, std::int64_t layer) {
  return cache != nullptr && std::ranges::find(cache->layers, layer) != cache->layers.end();
}

// The indexer bounds what a token sees; the kernel may then gather.
bool is_indexed(const MemoryPlan& memory, const Cache& cache) {
  const bool main = cache.role == "main" && memory.kind != MemoryKind::kSparseBlocks;
  return main || (cache.role == "attn" && memory.kind == MemoryKind::kHybridIndexed);
}

void set_cells(const AttentionQuestion& question, const Cache& cache, std::int64_t layer,
               AttentionCall& call) {
  const Hparams& hparams = question.model.hparams;
  call.n_kv = cache.cells;
  if (is_indexed(question.memory, cache)) {
    call.n_kv_max = std::min(hparams.indexer_top_k, cache.cells);
  }
  if (question.model.architecture->constant != kDeepseek4) return;
  // Raw and compressed cells stand behind each other.
  const Cache* csa = find_cache(question.memory, "csa");
  const Cache* hca = find_cache(question.memory, "hca");
  if (owns(csa, layer)) {
    call.n_kv += csa->cells;
    call.n_kv_max =
        std::min(cache.cells, hparams.n_swa) + std::min(csa->cells, hparams.indexer_top_k);
  } else if (owns(hca, layer)) {
    call.n_kv += hca->cells;
  }
}

}  // namespace

Machine machine_of(const hardware::Device& device, const Arguments& arguments) {
  if (!arguments.on_devices) return {.place = Place::kCpu};
  switch (device.platform) {
    case hardware::Platform::kCpu:
      return {.place = Place::kCpu};
    case hardware::Platform::kRocm:
      return {.place = Place::kHip, .cc = amd_number(device.gfx_target)};
    case hardware::Platform::kCuda:
      if (!device.capability) return {.place = Place::kOther};
      return {.place = Place::kCuda, .cc = std::int64_t{device.capability->sm()} * 10};
    case hardware::Platform::kAscend:
      break;
  }
  return {.place = Place::kOther};
}

std::optional<AttentionCall> attention_call(const AttentionQuestion& question, const Cache& cache,
                                            std::int64_t layer, Phase phase) {
  const Hparams& hparams = question.model.hparams;
  const std::int64_t heads = hparams.n_head(layer);
  const std::int64_t kv_heads = hparams.n_head_kv(layer);
  if (heads <= 0 || kv_heads <= 0 || heads % kv_heads != 0) return std::nullopt;
  AttentionCall call{.head_size_k = hparams.n_embd_head_k(layer),
                     .head_size_v = hparams.n_embd_head_v(layer),
                     .type_k = question.params.type_k,
                     .type_v = question.params.type_v,
                     .n_head = heads,
                     .n_head_kv = kv_heads,
                     .max_bias = hparams.f_max_alibi_bias};
  // Values are a view of the keys.
  if (hparams.is_mla()) call.type_v = call.type_k;
  set_cells(question, cache, layer, call);
  const std::int64_t sequences = std::max<std::int64_t>(1, question.params.n_seq_max);
  if (phase == Phase::kPrefill) {
    call.n_q = std::max<std::int64_t>(1, question.plan.sizes.n_ubatch);
  } else if (cache.streams > 1) {
    call.n_stream = cache.streams;
  } else {
    call.n_q = sequences;
  }
  return call;
}

std::optional<std::int64_t> unserved_layer(const AttentionQuestion& question,
                                           const Machine& machine, const CudaBuild& build) {
  if (machine.place != Place::kCuda && machine.place != Place::kHip) return std::nullopt;
  for (const Cache& cache : question.memory.caches) {
    if (cache.role == "indexer" || cache.role == "csa" || cache.role == "hca") continue;
    for (const std::int64_t layer : cache.layers) {
      auto call = attention_call(question, cache, layer, Phase::kDecode);
      if (!call) continue;
      call->cc = machine.cc;
      if (pick_cuda_kernel(build, *call).kernel == CudaKernel::kNone) return layer;
    }
  }
  return std::nullopt;
}

}  // namespace kernelpath::engines::llamacpp
