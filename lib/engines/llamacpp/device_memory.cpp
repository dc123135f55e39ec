#include "engines/llamacpp/device_memory.h"

#include "base/text.h"
#include "checkpoint/gguf.h"
#include "memory/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kConvertedBytes = 2;  // of a parameter: f16 or bf16
constexpr std::string_view kBlock = "blk.";
// Tensors of the input layer, which stays on the CPU (src/llama-arch.cpp, LLM_TENSOR_LAYER_INPUT).
constexpr auto kInputTensors = std::to_array<std::string_view>(
    {"token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.", "masked_embd_"});

std::optional<std::int64_t> layer_of(std::string_view tensor) {
  if (!tensor.starts_with(kBlock)) return std::nullopt;
  tensor.remove_prefix(kBlock.size());
  std::int64_t layer = 0;
  const auto [end, status] = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  const bool named = status == std::errc() && end != tensor.data() + tensor.size() && *end == '.';
  return named ? std::optional(layer) : std::nullopt;
}

bool is_input(std::string_view tensor) {
  return std::ranges::any_of(
      kInputTensors, [tensor](std::string_view prefix) { return tensor.starts_with(prefix); });
}

// Source: common/common.h, LLM_FFN_EXPS_REGEX and LLM_FFN_DENSE_REGEX.
bool names_one_of(std::string_view tensor, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [tensor](std::string_view part) {
    return tensor.find(part) != std::string_view::npos;
  });
}
bool is_expert(std::string_view tensor) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {".ffn_up_exps", ".ffn_down_exps", ".ffn_gate_exps", ".ffn_gate_up_exps", ".ffn_up_chexps",
       ".ffn_down_chexps", ".ffn_gate_chexps", ".ffn_gate_up_chexps"});
  return names_one_of(tensor, kParts);
}
bool is_dense_mlp(std::string_view tensor) {
  constexpr auto kParts = std::to_array<std::string_view>({".ffn_up.", ".ffn_down.", ".ffn_gate."});
  return names_one_of(tensor, kParts);
}

// Weights that --split-mode tensor cuts; the others are on every GPU.
bool is_cut(std::string_view tensor) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {".attn_q.", ".attn_k.", ".attn_v.", ".attn_qkv.", ".attn_output.weight", ".attn_gate.weight",
       ".ssm_out.weight", ".ssm_conv1d.weight", ".ffn_up.", ".ffn_gate.", ".ffn_down.weight",
       ".ffn_up_exps.", ".ffn_gate_exps.", ".ffn_gate_up_exps.", ".ffn_down_exps.weight",
       ".ffn_gate_up."});
  return tensor == "output.weight" || names_one_of(tensor, kParts);
}

class Spreader {
 public:
  explicit Spreader(const SpreadQuestion& spread)
      : spread_(spread),
        hparams_(spread.question.model.hparams),
        placement_(place_layers(hparams_, spread.arguments,
                                spread.request.device.usable_bytes().value_or(1))) {
    out_.shares.resize(static_cast<std::size_t>(placement_.devices) + 1);
    for (std::size_t i = 0; i < out_.shares.size(); ++i) {
      out_.shares[i].device = static_cast<std::int64_t>(i) - 1;
    }
  }

  DeviceMemory run() {
    name_layers();
    for (const Cache& cache : spread_.question.memory.caches) add_cache(cache);
    add_states();
    add_weights();
    return std::move(out_);
  }

 private:
  DeviceShare& share(std::int64_t device) {
    return out_.shares[static_cast<std::size_t>(device + 1)];
  }
  [[nodiscard]] std::int64_t device_of(std::int64_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return index < placement_.layers.size() ? placement_.layers[index] : kHost;
  }
  [[nodiscard]] bool is_cut_layer(std::int64_t device) const {
    return placement_.tensor_split && device != kHost;
  }

  void name_layers() {
    for (std::int64_t layer = 0; layer < hparams_.n_layer(); ++layer) {
      const std::int64_t device = device_of(layer);
      if (!is_cut_layer(device)) {
        share(device).layers.push_back(layer);
        continue;
      }
      for (std::int64_t i = 0; i < placement_.devices; ++i) share(i).layers.push_back(layer);
    }
    if (!is_cut_layer(placement_.output)) share(placement_.output).output = true;
  }

  // --- caches ------------------------------------------------------------------------------------

  struct Bytes {
    std::int64_t total = 0;
    std::int64_t per_token = 0;
  };

  void add_kv(std::int64_t device, const Bytes& bytes) {
    DeviceShare& to = share(device);
    to.kv_bytes = saturating_sum(to.kv_bytes, bytes.total);
    to.kv_bytes_per_token = saturating_sum(to.kv_bytes_per_token, bytes.per_token);
  }

  void add_cache(const Cache& cache) {
    const std::int64_t cells = std::max<std::int64_t>(1, cache.cells * cache.streams);
    for (std::size_t i = 0; i < cache.layers.size(); ++i) {
      const std::int64_t device = spread_.arguments.kv_offload ? device_of(cache.layers[i]) : kHost;
      const std::int64_t total = saturating_sum(cache.k_bytes[i], cache.v_bytes[i]);
      if (is_cut_layer(device)) {
        add_cut_layer(cache, i, cells);
      } else {
        add_kv(device, {total, total / cells});
      }
    }
  }

  // Keys and values by heads; an indexer's keys and caches of DeepSeek-V4 are on every GPU.
  void add_cut_layer(const Cache& cache, std::size_t index, std::int64_t cells) {
    const std::int64_t layer = cache.layers[index];
    const bool whole =
        cache.role == "indexer" || spread_.question.memory.kind == MemoryKind::kDeepseek4;
    const SplitHeads heads =
        split_heads(hparams_, layer, output_block(layer), spread_.arguments.split);
    const auto part = [&](std::int64_t bytes, const std::vector<std::int64_t>& elements,
                          std::size_t device, std::int64_t width) {
      if (whole || width <= 0 || bytes == kTooLarge) return bytes;
      return static_cast<std::int64_t>(static_cast<long double>(bytes) *
                                       static_cast<long double>(elements[device]) /
                                       static_cast<long double>(width));
    };
    for (std::int64_t device = 0; device < placement_.devices; ++device) {
      const auto at = static_cast<std::size_t>(device);
      const std::int64_t total =
          saturating_sum(part(cache.k_bytes[index], heads.k, at, hparams_.n_embd_k_gqa(layer)),
                         part(cache.v_bytes[index], heads.v, at, hparams_.n_embd_v_gqa(layer)));
      add_kv(device, {total, total / cells});
    }
  }

  // Elements of a block of the type of a layer's output projection.
  [[nodiscard]] std::int64_t output_block(std::int64_t layer) const {
    const checkpoint::Gguf* const gguf = spread_.request.model.gguf.get();
    if (gguf == nullptr) return 1;
    const std::string name = fmt::format("blk.{}.attn_output.weight", layer);
    const auto found = std::ranges::find(gguf->tensors, name, &checkpoint::GgufTensor::name);
    return found == gguf->tensors.end() || found->type == nullptr ? 1 : found->type->block;
  }

  void add_states() {
    const std::optional<RecurrentState>& state = spread_.question.memory.state;
    if (state && !state->layers.empty()) {
      add_evenly(state->layers, state->bytes());
    }
    const std::int64_t compressors = spread_.question.memory.compressor_bytes;
    if (compressors > 0 && hparams_.n_layer() > 0) {
      std::vector<std::int64_t> layers;
      for (std::int64_t layer = 0; layer < hparams_.n_layer(); ++layer) layers.push_back(layer);
      add_evenly(layers, compressors);
    }
  }

  void add_evenly(const std::vector<std::int64_t>& layers, std::int64_t bytes) {
    const auto count = static_cast<std::int64_t>(layers.size());
    for (const std::int64_t layer : layers) {
      const std::int64_t device = spread_.arguments.kv_offload ? device_of(layer) : kHost;
      const std::int64_t one = bytes / count;
      if (!is_cut_layer(device)) {
        share(device).state_bytes = saturating_sum(share(device).state_bytes, one);
        continue;
      }
      for (std::int64_t i = 0; i < placement_.devices; ++i) {
        share(i).state_bytes = saturating_sum(share(i).state_bytes, one / placement_.devices);
      }
    }
  }

  // --- weights -----------------------------------------------------------------------------------

  void add_weight(std::int64_t device, std::int64_t bytes, bool cut) {
    if (!is_cut_layer(device)) {
      share(device).weight_bytes = saturating_sum(share(device).weight_bytes, bytes);
      return;
    }
    for (std::int64_t i = 0; i < placement_.devices; ++i) {
      share(i).weight_bytes =
          saturating_sum(share(i).weight_bytes, cut ? cut_share(bytes, i) : bytes);
    }
  }

  [[nodiscard]] std::int64_t cut_share(std::int64_t bytes, std::int64_t device) const {
    return split_row({.elements = bytes},
                     spread_.arguments.split)[static_cast<std::size_t>(device)];
  }

  void add_weights() {
    const checkpoint::Gguf* const gguf = spread_.request.model.gguf.get();
    if (gguf == nullptr) {
      add_counted_weights();
    } else if (gguf->tensors.empty()) {
      out_.weight_source = "GGUF tensor table";
      add_weight(placement_.output, gguf->tensor_bytes, true);
    } else {
      add_tensors(*gguf);
    }
  }

  void add_tensors(const checkpoint::Gguf& gguf) {
    out_.weight_source = "GGUF tensor table";
    out_.weights_exact = true;
    bool has_output = false;
    std::int64_t embedding = 0;
    for (const checkpoint::GgufTensor& tensor : gguf.tensors) {
      const std::string_view name = tensor.name;
      has_output = has_output || name == "output.weight";
      if (name == "token_embd.weight") embedding = tensor.bytes;
      add_weight(device_of_tensor(name), tensor.bytes, is_cut(name));
    }
    // Without an output projection of its own, the model gets a second copy of the embeddings.
    const bool encoder = spread_.question.memory.kind == MemoryKind::kNone;
    if (!has_output && !encoder) add_weight(placement_.output, embedding, true);
  }

  [[nodiscard]] std::int64_t device_of_tensor(std::string_view name) const {
    if (is_input(name)) return kHost;
    const std::optional<std::int64_t> layer = layer_of(name);
    if (!layer) return placement_.output;
    const SplitParams& split = spread_.arguments.split;
    const bool host = (*layer < split.host_experts && is_expert(name)) ||
                      (*layer < split.host_mlps && is_dense_mlp(name));
    return host ? kHost : device_of(*layer);
  }

  // Part by part, every layer alike: an estimate.
  void add_counted_weights() {
    const auto ledger = memory::count_weights(spread_.request.model);
    if (!ledger) {
      out_.weights_unknown = ledger.error().text();
      return;
    }
    out_.weight_source = "geometry, 16 bits a parameter (estimate)";
    std::int64_t embedding = 0;
    std::int64_t head = 0;
    for (const memory::WeightItem& item : ledger->items) {
      const std::int64_t bytes = saturating_product({item.parameters, kConvertedBytes});
      if (item.part == memory::Part::kVision || item.part == memory::Part::kMtp) continue;
      if (item.part == memory::Part::kEmbedding) {
        embedding = bytes;
      } else if (item.part == memory::Part::kLmHead) {
        head = bytes;
      } else {
        add_part(item.part, bytes);
      }
    }
    add_weight(kHost, embedding, false);
    const bool encoder = spread_.question.memory.kind == MemoryKind::kNone;
    if (head == 0 && !encoder) head = embedding;
    add_weight(placement_.output, head, true);
  }

  void add_part(memory::Part part, std::int64_t bytes) {
    const std::int64_t layers = std::max<std::int64_t>(1, hparams_.n_layer());
    const SplitParams& split = spread_.arguments.split;
    const bool cut = part == memory::Part::kAttention || part == memory::Part::kMlp ||
                     part == memory::Part::kExperts || part == memory::Part::kState;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const bool host = (part == memory::Part::kExperts && layer < split.host_experts) ||
                        (part == memory::Part::kMlp && layer < split.host_mlps);
      add_weight(host ? kHost : device_of(layer), bytes / layers, cut);
    }
  }

  const SpreadQuestion& spread_;
  const Hparams& hparams_;
  Placement placement_;
  DeviceMemory out_;
};

}  // namespace

std::int64_t DeviceShare::total() const {
  return saturating_sum(weight_bytes, saturating_sum(kv_bytes, state_bytes));
}

const DeviceShare& DeviceMemory::fullest() const {
  if (shares.size() == 1) return shares.front();
  return *std::ranges::max_element(shares.begin() + 1, shares.end(), {}, &DeviceShare::total);
}

DeviceMemory spread_memory(const SpreadQuestion& spread) { return Spreader(spread).run(); }

}  // namespace kernelpath::engines::llamacpp
