#include "runtime/session.h"

#include "base/checked.h"
#include "base/host_memory.h"
#include "base/units.h"
#include "comm/agree.h"
#include "engines/kernelpath/launch.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::runtime {
namespace {

using engines::kernelpath::Launch;

// Index keys are read whole by every query of index-sparse layers and lie apart from K and V. Each
// rank keeps those of all tokens of a block, of whose K and V it keeps its share.
kv::LayerLayout layout_of(const model::CacheRows& rows, const Launch& launch) {
  const kv::PageLayout side{.order = launch.kv_layout,
                            .type = launch.kv_type,
                            .page_size = launch.page_size,
                            .num_heads = rows.num_kv_heads,
                            .head_dim = rows.head_dim};
  kv::LayerLayout out{.k = side};
  if (rows.v_head_dim > 0) {
    out.v = side;
    out.v->head_dim = rows.v_head_dim;
  }
  if (rows.index_head_dim > 0) {
    out.index = side;
    out.index->page_size = launch.page_size * launch.dcp;
    out.index->num_heads = 1;
    out.index->head_dim = rows.index_head_dim;
  }
  return out;
}

std::vector<kv::LayerLayout> layouts_of(const model::Model& model, const Launch& launch) {
  std::vector<kv::LayerLayout> out;
  out.reserve(model.cache_rows().size());
  for (const model::CacheRows& rows : model.cache_rows()) out.push_back(layout_of(rows, launch));
  return out;
}

// The attention layers are built for what the Resolution says.
model::BuildOptions build_options(const Launch& launch, const SessionOptions& options,
                                  bool shape_only) {
  return {.shape_only = shape_only,
          .load_threads = options.threads,
          .class_name = options.model_class,
          .attention = {.backend = launch.backend,
                        .kv_type = launch.kv_type,
                        .layout = launch.kv_layout,
                        .page_size = launch.page_size,
                        .max_seq_len = options.max_model_len.value_or(0),
                        .shard = {.rank = options.ranks.dcp_rank, .count = options.ranks.dcp}},
          .ranks = options.ranks};
}

Unexpected too_small(const SessionOptions& options, std::int64_t block_bytes) {
  return fail({.code = ErrorCode::kResource,
               .message = fmt::format("the KV cache holds no block: one takes {}, there are {}",
                                      format_bytes(block_bytes),
                                      format_bytes(options.kv_bytes.value_or(0))),
               .where = "--kv-memory",
               .hint = "give it more, or say a smaller --page-size"});
}

Result<SessionPlan> plan_for(const model::Model& model, const Launch& launch,
                             const SessionOptions& options) {
  SessionPlan plan;
  const std::vector<kv::LayerLayout> layouts = layouts_of(model, launch);
  plan.weight_bytes = model.weight_bytes().resident;
  plan.construction_bytes = model.weight_bytes().construction_peak;
  plan.kv_block_bytes = kv::block_bytes(layouts);
  plan.block_tokens = launch.page_size * launch.dcp;
  const std::int64_t wanted = ceil_div(options.kv_tokens, plan.block_tokens);
  plan.kv_blocks = options.kv_bytes && plan.kv_block_bytes > 0
                       ? *options.kv_bytes / plan.kv_block_bytes
                       : wanted;
  if (plan.kv_blocks < 1) return too_small(options, plan.kv_block_bytes);
  const std::optional<std::int64_t> kv_bytes = kv::storage_bytes(layouts, plan.kv_blocks);
  if (!kv_bytes) {
    return fail({.code = ErrorCode::kConfigOverflow,
                 .message = fmt::format("a KV cache of {} blocks of {} does not fit 64 bits",
                                        plan.kv_blocks, format_bytes(plan.kv_block_bytes)),
                 .hint = "lower --batch-size, --max-tokens or --max-model-len"});
  }
  plan.kv_bytes = *kv_bytes;
  for (const model::CacheRows& rows : model.cache_rows()) {
    plan.state_bytes +=
        rows.state_floats * static_cast<std::int64_t>(sizeof(float)) * options.limits.max_sequences;
  }
  const std::int64_t logit_rows =
      options.limits.max_sequences * (options.ngrams ? 1 + options.draft_tokens : 1);
  plan.workspace_bytes = model.workspace_bytes({.tokens = options.limits.max_batched_tokens,
                                                .logit_rows = logit_rows,
                                                .longest = plan.kv_blocks * plan.block_tokens,
                                                .threads = options.threads}) +
                         logit_rows * model.vocab_size() * static_cast<std::int64_t>(sizeof(float));
  plan.kernel_bytes = kernels::cpu::CpuExecutor::scratch_bytes(options.threads);
  return plan;
}

// The ranks of one machine take alike.
Result<void> check_memory(const SessionPlan& plan, int ranks_on_host) {
  const std::optional<std::int64_t> available = available_host_bytes();
  const std::int64_t needed = std::max(plan.total(), plan.construction_bytes);
  if (!available || needed <= *available / ranks_on_host) return {};
  const std::string ranks =
      ranks_on_host > 1 ? fmt::format(" for each of {} ranks", ranks_on_host) : "";
  return fail({.code = ErrorCode::kResource,
               .message = fmt::format(
                   "needs {} of memory{}, and {} are free: weights {} ({} while they are "
                   "read), KV cache {}, states {}, activations {}, kernels {}",
                   format_bytes(needed), ranks, format_bytes(*available),
                   format_bytes(plan.weight_bytes), format_bytes(plan.construction_bytes),
                   format_bytes(plan.kv_bytes), format_bytes(plan.state_bytes),
                   format_bytes(plan.workspace_bytes), format_bytes(plan.kernel_bytes)),
               .hint = "lower --kv-memory, --batch-size or --max-tokens, or say a smaller --kv"});
}

Result<SessionPlan> plan_without_weights(const engines::Request& request, const Launch& launch,
                                         const SessionOptions& options,
                                         kernels::Executor& executor) {
  KERNELPATH_TRY(model, model::build(request.model, options.weights, executor,
                                     build_options(launch, options, /*shape_only=*/true)));
  KERNELPATH_TRY(plan, plan_for(*model, launch, options));
  KERNELPATH_CHECK_OK(check_memory(plan, options.ranks_on_host));
  return plan;
}

template <class T>
Result<T> agreed(const comm::Placement& ranks, Result<T> own) {
  if (ranks.world == nullptr) return own;
  return comm::agree_on(*ranks.world, std::move(own));
}

}  // namespace

Result<SessionPlan> plan_session(const engines::Request& request, const SessionOptions& options) {
  KERNELPATH_TRY(launch, engines::kernelpath::read_launch(request.deployment));
  kernels::cpu::CpuExecutor executor(1, options.isa);
  KERNELPATH_CHECK_OK(executor.ready());
  return plan_without_weights(request, launch, options, executor);
}

Result<std::unique_ptr<Session>> Session::open(const engines::Request& request,
                                               const SessionOptions& options,
                                               const tokenizer::Tokenizer* tokenizer,
                                               std::vector<std::int32_t> eos) {
  KERNELPATH_TRY(launch, engines::kernelpath::read_launch(request.deployment));
  std::unique_ptr<Session> out(new Session());
  out->executor_ = std::make_unique<kernels::cpu::CpuExecutor>(options.threads, options.isa);
  KERNELPATH_CHECK_OK(agreed(options.ranks, out->executor_->ready()));
  // No rank begins to load before all have seen that their memory is free.
  KERNELPATH_TRY(
      plan, agreed(options.ranks, plan_without_weights(request, launch, options, *out->executor_)));
  out->plan_ = plan;
  out->has_text_ = tokenizer != nullptr;
  out->memory_.before = resident_bytes();
  KERNELPATH_TRY(model, agreed(options.ranks,
                               model::build(request.model, options.weights, *out->executor_,
                                            build_options(launch, options, /*shape_only=*/false))));
  out->model_ = std::move(model);
  out->memory_.construction_peak = peak_resident_bytes();
  out->blocks_ = std::make_unique<kv::BlockManager>(plan.kv_blocks, plan.block_tokens);
  KERNELPATH_TRY(storage,
                 agreed(options.ranks, kv::PagedStorage::allocate(layouts_of(*out->model_, launch),
                                                                  plan.kv_blocks)));
  out->storage_ = std::make_unique<kv::PagedStorage>(std::move(storage));
  for (std::size_t i = 0; i < out->model_->cache_rows().size(); ++i) {
    const model::CacheRows& rows = out->model_->cache_rows()[i];
    const kv::LayerRows& place = out->storage_->rows()[i];
    model::LayerCache cache{.k = place.k, .v = place.v, .index = place.index};
    if (rows.state_floats > 0) {
      out->states_.emplace_back(
          static_cast<std::size_t>(rows.state_floats * options.limits.max_sequences));
      cache.state = out->states_.back().data();
      cache.state_stride = rows.state_floats;
    }
    out->caches_.push_back(cache);
  }
  GeneratorOptions generation{.limits = options.limits,
                              .eos = std::move(eos),
                              .draft_tokens = options.draft_tokens,
                              .max_model_len = options.max_model_len};
  if (options.ngrams) generation.ngrams.emplace();
  out->generator_ = std::make_unique<Generator>(GeneratorParts{.model = *out->model_,
                                                               .blocks = *out->blocks_,
                                                               .storage = *out->storage_,
                                                               .caches = out->caches_,
                                                               .context_ranks = launch.dcp,
                                                               .tokenizer = tokenizer},
                                                generation);
  return out;
}

}  // namespace kernelpath::runtime
