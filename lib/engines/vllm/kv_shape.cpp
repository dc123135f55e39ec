#include "engines/vllm/kv_shape.h"

#include "engines/vllm/profile.h"

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kTokenScaleElements = 4;  // a float32 among elements of one byte

std::int64_t elements(std::int64_t bytes, const KvSpec& spec) {
  const std::int64_t size = dtype_bytes(spec.storage_dtype);
  return size > 0 ? bytes / size : bytes;
}

// Elements of one token and head of one side, keys or values.
std::int64_t side_elements(const KvSpec& spec) {
  if (spec.quant_mode == "NVFP4") return nvfp4_head_bytes(spec.head_size);
  if (spec.quant_mode == "INT4_PER_TOKEN_HEAD") return spec.head_size / 2 + kTokenScaleElements;
  if (spec.quant_mode.ends_with("_PER_TOKEN_HEAD")) return spec.head_size + kTokenScaleElements;
  return spec.head_size;
}

// The axes that the class gives for any type of cache; only the last one depends on the type.
const std::vector<std::string>* axes_of(const BackendClass& backend) {
  const auto found = std::ranges::find_if(backend.kv_shapes,
                                          [](const KvShape& shape) { return !shape.axes.empty(); });
  return found == backend.kv_shapes.end() ? nullptr : &found->axes;
}

ShapeAxis axis_size(std::string_view name, const KvSpec& spec, std::int64_t block) {
  if (name == "num_blocks") return std::nullopt;
  if (name == "block_size") return block;
  if (name == "num_kv_heads") return spec.num_kv_heads;
  return 2;
}

void early_plain_shape(const BackendClass& backend, std::int64_t block, LayerCache& cache) {
  const KvSpec& spec = *cache.spec;
  const std::vector<std::string>* axes = axes_of(backend);
  if (axes == nullptr) return;
  const bool sides = std::ranges::find(*axes, "2") != axes->end();
  for (std::size_t i = 0; i + 1 < axes->size(); ++i) {
    cache.shape.push_back(axis_size((*axes)[i], spec, block));
  }
  cache.shape.emplace_back(sides ? side_elements(spec) : elements(spec.content_bytes, spec));
}

void early_shape(const BackendClass* backend, std::string_view layout, LayerCache& cache) {
  const KvSpec& spec = *cache.spec;
  // Compressed caches are never split into kernel blocks.
  const std::int64_t block =
      spec.tokens_per_state > 1 ? spec.states_of(spec.block_size) : cache.kernel_block_size;
  if (is_mla(spec.kind)) {
    cache.shape = {std::nullopt, block, elements(spec.content_bytes, spec)};
  } else if (backend != nullptr) {
    early_plain_shape(*backend, block, cache);
  }
  if (backend == nullptr) return;
  const auto order = std::ranges::find(backend->stride_orders, layout, &StrideOrder::layout);
  if (order != backend->stride_orders.end()) cache.stride_order = order->order;
}

}  // namespace

void fill_shape(const SelectorContext& context, const BackendClass* backend,
                std::string_view layout, LayerCache& cache) {
  if (!context.profile.at_least(0, 33)) return early_shape(backend, layout, cache);
  const KvSpec& spec = *cache.spec;
  cache.shape = {std::nullopt, spec.head_slots, spec.states_of(cache.kernel_block_size),
                 elements(spec.content_bytes, spec)};
  const auto& orders = context.profile.layout_orders;
  const auto known = std::ranges::find(orders, layout, &StrideOrder::layout);
  if (known == orders.end()) return;
  // The order without the axis of layers, which comes first.
  cache.stride_order.emplace();
  for (const std::int64_t axis : known->order) {
    if (axis != 0) cache.stride_order->push_back(axis - 1);
  }
}

}  // namespace kernelpath::engines::vllm
