#include "engines/vllm/block_size.h"

#include "engines/vllm/block_alignment.h"
#include "engines/vllm/kernel_blocks.h"
#include "engines/vllm/layer_spec.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kDefaultBlockSize = 16;
constexpr std::string_view kStage = "block size";

// The distinct backends of layers that are no states, in the order of the layers. Wrapped classes
// count on their own, as they do in the engine.
std::vector<const BackendClass*> cache_backends(const SelectorContext& context,
                                                std::span<const BuiltLayer> layers) {
  std::vector<const BackendClass*> backends;
  std::set<std::string_view> seen;
  for (const BuiltLayer& layer : layers) {
    const BackendClass* backend = backend_of(context, layer);
    if (layer.role == LayerRole::kState || backend == nullptr) continue;
    if (seen.insert(layer.class_name).second) backends.push_back(backend);
  }
  return backends;
}

bool all_take(const SelectorContext& context, std::span<const BackendClass* const> backends,
              std::int64_t block_size) {
  return std::ranges::all_of(backends, [&](const BackendClass* backend) {
    return takes_block_size(context, *backend, block_size);
  });
}

// Least common multiples of one size of each backend, in order.
std::set<std::int64_t> candidates_of(const SelectorContext& context,
                                     std::span<const BackendClass* const> backends) {
  std::set<std::int64_t> candidates = {1};
  for (const BackendClass* backend : backends) {
    const std::vector<BlockSize> sizes = kernel_block_sizes(context, *backend);
    if (sizes.empty()) continue;  // any size will do
    std::set<std::int64_t> next;
    for (const std::int64_t candidate : candidates) {
      for (const BlockSize& size : sizes) next.insert(std::lcm(candidate, size.size));
    }
    candidates = std::move(next);
  }
  return candidates;
}

std::string names_of(std::span<const BackendClass* const> backends, std::string_view separator) {
  std::string names;
  for (const BackendClass* backend : backends) {
    names += fmt::format("{}{}", names.empty() ? "" : separator, backend->reported_name);
  }
  return names;
}

// Since 0.33 every backend is asked; before, the first one decides.
std::optional<std::int64_t> preferred_size(const SelectorContext& context,
                                           std::span<const BackendClass* const> backends) {
  if (!context.profile.at_least(0, 33) || backends.size() == 1) {
    return preferred_block_size(context, *backends.front(), kDefaultBlockSize);
  }
  if (all_take(context, backends, kDefaultBlockSize)) return kDefaultBlockSize;
  for (const std::int64_t candidate : candidates_of(context, backends)) {
    if (all_take(context, backends, candidate)) return candidate;
  }
  return std::nullopt;
}

void prefer(const SelectorContext& context, std::span<const BackendClass* const> backends,
            RunConfig& run, BlockSizeChoice& choice) {
  if (run.user_block_size) return;
  const std::optional<std::int64_t> preferred = preferred_size(context, backends);
  if (!preferred) {
    choice.error = RunError{
        .stage = std::string(kStage),
        .type = "ValueError",
        .text = fmt::format("The attention backends share no supported KV cache block size ({}).",
                            names_of(backends, "; ")),
        .rule = "VLLM-KV-BLOCK-NONE"};
    return;
  }
  if (*preferred != run.block_size) {
    choice.events.push_back(
        {.rule = "VLLM-KV-BLOCK-PREFERRED",
         .candidate = backends.front()->reported_name,
         .reason = fmt::format("block_size becomes {}: no kernel of the backend reads {} tokens.",
                               *preferred, run.block_size)});
  }
  run.block_size = *preferred;
}

// An aligned size follows the first backend only; since 0.33 the others are asked at once.
void check_aligned(const SelectorContext& context, std::span<const BackendClass* const> backends,
                   std::int64_t before, const RunConfig& run, BlockSizeChoice& choice) {
  if (!context.profile.at_least(0, 33) || run.block_size == before || choice.error) return;
  std::vector<const BackendClass*> rejecting;
  for (const BackendClass* backend : backends) {
    if (!takes_block_size(context, *backend, run.block_size)) rejecting.push_back(backend);
  }
  if (rejecting.empty()) return;
  choice.error =
      RunError{.stage = std::string(kStage),
               .type = "ValueError",
               .text = fmt::format(
                   "Aligned KV cache block size {} is not supported by attention backend(s): {}.",
                   run.block_size, names_of(rejecting, ", ")),
               .rule = "VLLM-KV-BLOCK-ALIGNED-REFUSED"};
}

}  // namespace

BlockSizeChoice choose_block_size(const SelectorContext& context, const CacheModel& model,
                                  std::span<const BuiltLayer> layers, RunConfig& run) {
  BlockSizeChoice choice;
  const std::vector<const BackendClass*> backends = cache_backends(context, layers);
  if (backends.empty()) return choice;
  prefer(context, backends, run, choice);
  if (choice.error) return choice;
  const std::int64_t preferred = run.block_size;
  const AlignmentInput input = {
      .context = context, .model = model, .layers = layers, .backends = backends};
  if (model.hybrid) align_states(input, run, choice);
  if (!run.skip_layers.empty()) align_mixed_types(input, run, choice);
  check_aligned(context, backends, preferred, run, choice);
  return choice;
}

std::optional<RunError> validate_block_size(const SelectorContext& context, const RunConfig& run) {
  const auto refused = [](std::string text, std::string_view rule) {
    return RunError{.stage = std::string(kStage),
                    .type = "AssertionError",
                    .text = std::move(text),
                    .rule = std::string(rule)};
  };
  if (run.dcp > 1 && (run.cp_interleave > run.block_size ||
                      run.block_size % std::max<std::int64_t>(run.cp_interleave, 1) != 0)) {
    return refused(fmt::format("Block_size({}) should be greater than or equal to and divisible by "
                               "cp_kv_cache_interleave_size ({}).",
                               run.block_size, run.cp_interleave),
                   "VLLM-KV-BLOCK-INTERLEAVE");
  }
  const bool bounded = !context.profile.at_least(0, 33) && run.mamba_cache_mode == "align";
  if (bounded && run.max_num_batched_tokens > 0 && run.block_size > run.max_num_batched_tokens) {
    return refused(fmt::format("In Mamba cache align mode, block_size ({}) must be <= "
                               "max_num_batched_tokens ({}).",
                               run.block_size, run.max_num_batched_tokens),
                   "VLLM-KV-BLOCK-BATCHED-TOKENS");
  }
  return std::nullopt;
}

}  // namespace kernelpath::engines::vllm
