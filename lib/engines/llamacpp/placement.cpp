#include "engines/llamacpp/placement.h"

#include <algorithm>
#include <numeric>

namespace kernelpath::engines::llamacpp {
namespace {

// Cumulated shares of the GPUs, up to 1, in the engine's single precision.
std::vector<float> split_points(const SplitParams& split, std::int64_t devices,
                                std::int64_t free_bytes) {
  std::vector<float> out(static_cast<std::size_t>(devices), static_cast<float>(free_bytes));
  const bool given = std::ranges::any_of(split.shares, [](double share) { return share != 0; });
  for (std::size_t i = 0; given && i < out.size(); ++i) {
    out[i] = i < split.shares.size() ? static_cast<float>(split.shares[i]) : 0.0F;
  }
  std::partial_sum(out.begin(), out.end(), out.begin());
  const float sum = out.back();
  for (float& point : out) point /= sum;
  return out;
}

std::int64_t devices_in_use(const Arguments& arguments) {
  if (!arguments.on_devices) return 0;
  if (arguments.split.mode == SplitMode::kNone) return 1;
  return arguments.split.devices;
}

// Layers before this one of the same kind: rounding rotates from one to the next.
std::int64_t rotation_of(const Hparams& hparams, std::int64_t layer) {
  std::int64_t out = 0;
  for (std::int64_t before = 0; before < layer; ++before) {
    const bool alike = hparams.is_recr(before) == hparams.is_recr(layer) &&
                       hparams.is_swa(before) == hparams.is_swa(layer);
    if (alike) ++out;
  }
  return out;
}

}  // namespace

Placement place_layers(const Hparams& hparams, const Arguments& arguments,
                       std::int64_t free_bytes) {
  const std::int64_t layers = hparams.n_layer_all;
  Placement out{.devices = devices_in_use(arguments),
                .layers = std::vector<std::int64_t>(static_cast<std::size_t>(layers), kHost)};
  if (out.devices == 0) return out;
  out.tensor_split = arguments.split.mode == SplitMode::kTensor;
  const std::int64_t asked = arguments.split.n_gpu_layers.value_or(layers + 1);
  const std::int64_t first = std::max<std::int64_t>(0, layers + 1 - asked);
  const std::int64_t active = std::min(asked, layers + 1);
  // A split by tensors is one device to the engine.
  const std::int64_t groups = out.tensor_split ? 1 : out.devices;
  const std::vector<float> points = split_points(out.tensor_split ? SplitParams{} : arguments.split,
                                                 groups, std::max<std::int64_t>(1, free_bytes));
  const auto device_of = [&](std::int64_t layer) {
    if (layer < first || layer - first >= active) return kHost;
    const float place = static_cast<float>(layer - first) / static_cast<float>(active);
    const auto found = std::ranges::upper_bound(points, place);
    return std::min(static_cast<std::int64_t>(found - points.begin()), groups - 1);
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    out.layers[static_cast<std::size_t>(layer)] = device_of(layer);
  }
  out.output = device_of(layers);
  return out;
}

std::vector<std::int64_t> split_row(const SplitRow& row, const SplitParams& split) {
  const std::int64_t devices = std::max<std::int64_t>(1, split.devices);
  std::vector<float> scan;
  for (std::int64_t i = 0; i < devices; ++i) {
    const auto place = static_cast<std::size_t>((i + row.rotation) % devices);
    const double share = place < split.shares.size() ? split.shares[place] : 0.0;
    scan.push_back((scan.empty() ? 0.0F : scan.back()) + static_cast<float>(share));
  }
  // Beyond single precision nothing is split: a size that no model has.
  constexpr std::int64_t kMostElements = std::int64_t{1} << 52;
  std::vector<std::int64_t> out(static_cast<std::size_t>(devices), row.elements);
  if (row.elements > kMostElements) return out;
  std::int64_t low = 0;
  for (std::int64_t i = 0; i < devices; ++i) {
    std::int64_t high = row.elements;
    if (i + 1 < devices) {
      const float share = scan[static_cast<std::size_t>(i)];
      high =
          scan.back() == 0.0F
              ? row.elements * (i + 1) / devices
              : static_cast<std::int64_t>(static_cast<float>(row.elements) * share / scan.back());
      high -= high % row.step;
    }
    out[static_cast<std::size_t>((i + row.rotation) % devices)] = high - low;
    low = high;
  }
  return out;
}

SplitHeads split_heads(const Hparams& hparams, std::int64_t layer, std::int64_t block,
                       const SplitParams& split) {
  const std::int64_t head_k = std::max<std::int64_t>(1, hparams.n_embd_head_k(layer));
  const std::int64_t kv_heads = std::max<std::int64_t>(1, hparams.n_head_kv(layer));
  const std::int64_t group = std::max<std::int64_t>(1, hparams.n_head(layer) / kv_heads);
  const std::int64_t row = saturating_product({group, head_k});
  // Larger steps suit the kernels, as long as every GPU gets something.
  constexpr std::int64_t kWanted = 128;
  std::int64_t wide = std::max<std::int64_t>(1, block);
  while (wide < kWanted && wide * split.devices < row) wide *= 2;
  const std::int64_t step_q = saturating_product({row / std::gcd(row, wide), wide});
  const std::int64_t step_k = std::max<std::int64_t>(1, step_q / group);
  const std::int64_t step_v = std::max<std::int64_t>(
      1, saturating_product({step_k / head_k, hparams.n_embd_head_v(layer)}));
  const std::int64_t rotation =
      rotation_of(hparams, layer) % std::max<std::int64_t>(1, split.devices);
  return {.k = split_row({hparams.n_embd_k_gqa(layer), step_k, rotation}, split),
          .v = split_row({hparams.n_embd_v_gqa(layer), step_v, rotation}, split)};
}

}  // namespace kernelpath::engines::llamacpp
