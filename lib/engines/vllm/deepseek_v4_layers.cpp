// DeepSeek V4 asks no selector: its class picks the attention by name, and each layer keeps up to
// five caches. Source: vllm/models/deepseek_v4/{attention,compressor}.py, nvidia/model.py.

#include "engines/vllm/layer_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::int64_t kPackedAlignment = 576;  // bytes, of pages of fp8_ds_mla
constexpr std::int64_t kPlainAlignment = 512;
constexpr std::int64_t kDefaultWindow = 128;  // of the configuration's class
constexpr std::int64_t kWindowBlock = 64;     // tokens of a block of the window's cache
constexpr std::int64_t kIndexedRatio = 4;     // layers that keep one of four tokens have an indexer
constexpr std::int64_t kIndexerHead = 128;    // elements of an indexer's key
constexpr std::int64_t kIndexerBytes = 132;   // with their scale

class V4Builder {
 public:
  explicit V4Builder(RunState& state) : state_(state), model_(state.question.model) {}

  bool build() {
    if (!choose_attention() || !resolve_dtype()) return false;
    const std::vector<std::int64_t> ratios =
        model_.sparse ? model_.sparse->compress_ratios : std::vector<std::int64_t>{};
    const std::int64_t stated = model_.num_hidden_layers.value_or(0);
    const auto layers = stated > 0 ? stated : static_cast<std::int64_t>(ratios.size());
    for (std::int64_t i = 0; i < layers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      add_layer(i, at < ratios.size() ? std::max<std::int64_t>(1, ratios[at]) : 1);
    }
    return true;
  }

 private:
  bool choose_attention() {
    const std::string asked = state_.run().attention_backend.value_or("");
    const bool newest = state_.question.machine.family(12);
    if (asked == "FLASHINFER_MLA_SPARSE" || asked == "FLASHINFER_MLA_SPARSE_SM120") {
      return state_.raise(model_error(
          "ValueError", "VLLM-DSV4-BACKEND",
          fmt::format("{} is not a DeepSeek V4 attention backend. Use FLASHINFER_MLA_SPARSE_DSV4 "
                      "for DeepSeek V4 FlashInfer sparse MLA.",
                      asked)));
    }
    const bool flash_mla = asked == "FLASHMLA_SPARSE" || asked == "FLASHMLA_SPARSE_DSV4";
    const bool flashinfer = asked == "FLASHINFER_MLA_SPARSE_DSV4" || (newest && !flash_mla);
    member_ = flashinfer ? "FLASHINFER_MLA_SPARSE_DSV4" : "FLASHMLA_SPARSE_DSV4";
    packed_ = !flashinfer || newest;
    state_.note("VLLM-DSV4-CHOSEN", member_, "the model's class picks its attention itself");
    return true;
  }

  bool resolve_dtype() {
    std::string& dtype = state_.run().cache_dtype;
    if (!packed_) return true;
    const bool later = state_.profile().at_least(0, 33);
    if (!dtype.starts_with("fp8") && !(later && dtype == "auto")) {
      return state_.raise(model_error(later ? "ValueError" : "AssertionError", "VLLM-DSV4-DTYPE",
                                      fmt::format("DeepseekV4 fp8_ds_mla layout only supports fp8 "
                                                  "kv-cache, got {}",
                                                  dtype)));
    }
    if (dtype != "fp8_ds_mla") {
      dtype = "fp8_ds_mla";
      state_.settings.run_kv_dtype = dtype;
      state_.note("VLLM-MLA-PACKED", "kv_cache_dtype",
                  "DeepSeek V4 keeps 584 bytes a token: fp8_ds_mla", Severity::kWarn);
    }
    return true;
  }

  void add_layer(std::int64_t index, std::int64_t ratio) {
    if (ratio == kIndexedRatio) {
      add_indexer(index, ratio);
      add_compressor(index, ratio, kIndexerHead, "indexer.compressor");
    }
    BuiltLayer window = base(index, "swa_cache", "DeepseekSparseSWABackend");
    window.window = model_.sliding_window.value_or(kDefaultWindow);
    window.own_block_size = kWindowBlock;
    state_.out.layers.push_back(std::move(window));
    if (ratio == 1) return;
    BuiltLayer attention = base(index, "attn", "");
    take(attention);
    attention.sparse = true;
    attention.tokens_per_state = ratio;
    state_.out.layers.push_back(std::move(attention));
    add_compressor(index, ratio, state_.view().head_size, "attn.compressor");
  }

  [[nodiscard]] BuiltLayer base(std::int64_t index, std::string_view part,
                                std::string_view backend) const {
    BuiltLayer out;
    out.role = LayerRole::kMla;
    out.index = index;
    out.name = fmt::format("model.layers.{}.{}", index, part);
    out.kv_dtype = state_.run().cache_dtype;
    out.num_heads = state_.view().heads;
    out.num_kv_heads = 1;
    out.head_size = state_.view().head_size;
    out.head_size_v = out.head_size;
    out.page_alignment = packed_ ? kPackedAlignment : kPlainAlignment;
    out.model_version = "deepseek_v4";
    set_class(backend, out);
    return out;
  }

  // Since 0.33 the window's cache has a class for each kind of attention.
  void set_class(std::string_view backend, BuiltLayer& out) const {
    std::string name(backend);
    if (name == "DeepseekSparseSWABackend" && state_.profile().at_least(0, 33)) {
      name = member_ == "FLASHMLA_SPARSE_DSV4" ? "DeepseekSparseSWAFlashMLABackend"
                                               : "DeepseekSparseSWAFlashInferBackend";
    }
    out.class_name = name;
    out.backend = state_.profile().find_layer_class(name);
    if (out.backend != nullptr) out.reported_backend = out.backend->reported_name;
  }

  void take(BuiltLayer& out) const {
    const BackendMember* member = state_.profile().find_member(member_);
    if (member == nullptr || member->backend == nullptr) return;
    out.backend = member->backend;
    out.class_name = member->backend->class_name;
    out.reported_backend = member->backend->reported_name;
    if (member->backend->implementation) {
      out.implementation = member->backend->implementation->class_name;
    }
  }

  void add_indexer(std::int64_t index, std::int64_t ratio) {
    BuiltLayer out = base(index, "indexer.k_cache", "DeepseekV4IndexerBackend");
    out.role = LayerRole::kIndexer;
    out.head_size = kIndexerBytes;
    out.head_size_v = kIndexerBytes;
    out.kv_dtype = "uint8";
    out.tokens_per_state = ratio;
    out.model_version.clear();
    state_.out.layers.push_back(std::move(out));
  }

  // What is not compressed yet: keys and scores of the last tokens, in float32.
  void add_compressor(std::int64_t index, std::int64_t ratio, std::int64_t head,
                      std::string_view part) {
    const std::int64_t overlap = ratio == kIndexedRatio ? 2 : 1;
    BuiltLayer out = base(index, part, "CompressorBackend");
    out.head_size = 2 * overlap * head;
    out.head_size_v = out.head_size;
    out.kv_dtype = "float32";
    out.window = overlap * ratio;
    out.own_block_size = ratio == kIndexedRatio ? 4 : 8;
    out.model_version.clear();
    state_.out.layers.push_back(std::move(out));
  }

  RunState& state_;
  const config::ModelConfig& model_;
  std::string member_;
  bool packed_ = true;  // fp8_ds_mla, not plain rows
};

}  // namespace

bool plan_deepseek_v4(RunState& state) { return V4Builder(state).build(); }

}  // namespace kernelpath::engines::vllm
