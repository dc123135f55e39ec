#pragma once

#include "json/document.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::checkpoint {
struct Gguf;
}

namespace kernelpath::config {

// Where a value of ModelConfig comes from.
enum class OriginKind : std::uint8_t {
  kAbsent,   // nobody states it and no default applies
  kField,    // a field of config.json
  kSibling,  // a file beside it (hf_quant_config.json, generation_config.json, an index)
  kDefault,  // a default; `rule` says which
  kDerived,  // computed from other fields; `rule` says how
};

struct Origin {
  OriginKind kind = OriginKind::kAbsent;
  std::string where;  // JSON pointer; "hf_quant_config.json:/quantization/quant_algo" for a sibling
  std::string rule;   // "hidden_size // num_attention_heads", "family default: mixtral" …
};

// A value with its origin. Absent unless `value` is set.
template <class T>
struct Field {
  std::optional<T> value = {};
  Origin origin = {};

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  [[nodiscard]] T value_or(T other) const { return value.value_or(std::move(other)); }
};

using IntField = Field<std::int64_t>;
using StringField = Field<std::string>;
using DoubleField = Field<double>;
using BoolField = Field<bool>;

// What a decoder layer does to mix tokens.
enum class LayerKind : std::uint8_t {
  kFull,     // causal attention over everything before
  kSliding,  // over the last `window` tokens
  kChunked,  // over the current chunk of `chunk_size` tokens
  kLinear,   // linear attention or gated delta net: a state, no KV cache
  kMamba,    // state-space layer: a state, no KV cache
  kSparse,   // full attention restricted by an indexer or compressor (DSA, DeepSeek-V4 …)
  kEncoder,  // bidirectional, no cache
  kCross,    // attends an encoder's output
  kNone,     // no token mixing (an MLP or MoE block of a hybrid model)
};
std::string_view layer_kind_name(LayerKind kind);

struct Layer {
  LayerKind kind = LayerKind::kFull;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;           // of K (and Q)
  std::int64_t v_head_dim = 0;         // of V, where it differs, else = head_dim
  std::optional<std::int64_t> window;  // sliding window, or chunk size for kChunked
  bool rope = true;                    // false on no-RoPE layers (Llama 4, SmolLM3, Cohere2)
  bool moe = false;                    // a mixture of experts in this layer
  bool has_state = false;              // keeps a recurrent or convolution state (also beside
                                       // attention: Falcon-H1, Zamba2)
  bool shares_kv = false;              // reads the KV cache of an earlier layer (Gemma 3n)
  std::optional<std::int64_t> intermediate_size;  // where it varies by layer
};

struct Rope {
  StringField
      type;  // "default", "linear", "dynamic", "llama3", "yarn", "longrope", "mrope", "none"
  DoubleField theta;
  DoubleField factor;
  IntField original_max_position_embeddings;
  DoubleField partial_rotary_factor;
  std::optional<DoubleField> local_theta;  // a second base for sliding layers (Gemma 3 …)
  std::vector<std::int64_t> mrope_section;
};

struct Mla {
  IntField q_lora_rank;  // may be absent while MLA is on (V2-Lite)
  IntField kv_lora_rank;
  IntField qk_nope_head_dim;
  IntField qk_rope_head_dim;
  IntField v_head_dim;
};

// Sparse-attention fields of a checkpoint (DeepSeek V3.2 / V4, GLM-5, MiniMax-M3 …).
struct SparseAttention {
  IntField index_n_heads;
  IntField index_head_dim;
  IntField index_topk;
  std::vector<std::int64_t> compress_ratios;
  Origin compress_ratios_origin;
  IntField window_size;
};

struct Moe {
  IntField num_experts;
  IntField num_experts_per_tok;
  IntField moe_intermediate_size;
  IntField num_shared_experts;
  IntField shared_intermediate_size;
  IntField first_k_dense_replace;
};

// State of linear-attention and state-space layers, per layer. One reading for all kinds:
//                     num_heads     head_dim      num_groups  state_size    intermediate_size
//   Mamba-2           heads         head size     groups      state size    num_heads * head_dim
//   gated delta net   value heads   value size    key heads   key size      num_heads * head_dim
//   Mamba-1           absent        absent        absent      state size    inner width
//   short convolution absent        absent        absent      absent        width
struct LinearState {
  IntField conv_kernel;
  IntField state_size;
  IntField num_heads;
  IntField head_dim;
  IntField num_groups;
  IntField intermediate_size;
};

// kv_cache_scheme, where it is an object.
struct KvCacheScheme {
  std::string type;                      // "float", "int"; empty: not stated
  std::optional<std::int64_t> num_bits;  // of an element
  std::string strategy;                  // "tensor", "attn_head" …; empty: not stated
  std::optional<bool> dynamic;
};

struct Quantization {
  StringField method;  // "fp8", "modelopt", "awq", "gptq", "compressed-tensors", "mxfp4" …
  StringField
      algo;  // normalised: "FP8", "FP8_BLOCK_SCALES", "NVFP4", "W4A16_AWQ", "MIXED_PRECISION" …
  IntField weight_bits;
  IntField group_size;
  std::vector<std::int64_t> weight_block_size;
  StringField activation_scheme;
  StringField expert_dtype;    // "fp4": routed experts differ from the rest (DeepSeek-V4)
  StringField kv_cache_dtype;  // "fp8", "nvfp4" …, as the checkpoint states it
  std::optional<KvCacheScheme> kv_cache_scheme;
  std::vector<std::string> exclude_modules;
  std::vector<std::pair<std::string, std::string>> layer_algos;  // quantized_layers: module → algo
  [[nodiscard]] bool any() const { return method || algo; }
};

// Draft fields: what makes a checkpoint a speculative draft, and what a target brings along.
struct Draft {
  bool has_draft_vocab_size = false;  // presence alone counts (EAGLE-3 rewrite), also with null
  IntField draft_vocab_size;
  IntField num_nextn_predict_layers;
  bool has_eagle_config = false;
  bool has_dflash_config = false;
  IntField block_size;
  std::vector<std::int64_t> target_layer_ids;
};

// A tensor as an index or a safetensors header names it.
struct WeightFiles {
  IntField total_bytes;  // sum of tensor bytes, from headers or from the index
  IntField tensor_count;
  std::vector<std::string> missing_shards;
  bool from_headers = false;  // exact, not the index's own claim
};

// One model, all defaults filled, each value with its origin. Nothing later reads the file again;
// `file` holds what it says for the engines whose own rules judge its fields by their spelling.
struct ModelConfig {
  std::string name;    // as shown: the folder's name, or the file's
  std::string path;    // of config.json as given ("-" for standard input)
  std::string sha256;  // of config.json's bytes; empty where the build has no hash library

  std::vector<std::string> architectures;
  bool has_architectures = false;   // the field is there (also as null or [])
  bool architectures_null = false;  // it is there and null
  // The class that model_type stands for, where the file names no architecture; `architectures`
  // then stays empty, because engines that read only that field see none.
  StringField inferred_architecture;
  StringField model_type;
  std::string text_model_type;  // of the language model: the family whose defaults count
                                // ("qwen3_vl_text"), else as written
  std::string text_pointer;  // "" or "/text_config", "/llm_config", "/thinker_config/text_config" …
  BoolField is_encoder_decoder;
  bool has_vision = false;
  bool has_audio = false;
  bool needs_remote_code = false;  // auto_map is there

  IntField num_hidden_layers;
  IntField hidden_size;
  IntField intermediate_size;
  IntField num_attention_heads;
  IntField num_key_value_heads;  // of the layers that have attention, where uniform, else the
                                 // mean's ceiling
  std::vector<std::int64_t>
      num_key_value_heads_list;  // stated per layer (a list field, block_configs)
  IntField head_dim;
  BoolField head_dim_is_explicit;  // config.json holds an integer head_dim
  IntField vocab_size;
  IntField
      max_position_embeddings;  // absent where the file says "no limit" (an integer beyond 64 bits)
  IntField sliding_window;
  IntField attention_chunk_size;
  BoolField tie_word_embeddings;
  StringField dtype;  // "bfloat16", "float16", "float32"; absent if nobody says

  std::int64_t attentions_per_layer = 1;  // LongCat-Flash has two, each with a cache
  std::vector<Layer> layers;              // one per decoder layer
  Origin layers_origin;                   // where their kinds come from
  Rope rope;
  bool has_kv_lora_rank = false;  // the field is there (TensorRT-LLM's MLA test), also with null
  std::optional<Mla> mla;         // set where the model really is MLA
  std::optional<SparseAttention> sparse;
  std::optional<Moe> moe;
  std::optional<LinearState> linear_state;
  Quantization quantization;  // config.json's word; what it leaves out, from the file beside it
  // hf_quant_config.json's word alone, where that file is there: TensorRT-LLM reads it first, vLLM
  // and SGLang believe config.json.
  std::optional<Quantization> sibling_quantization;
  Draft draft;
  std::optional<WeightFiles> weights;
  // What a GGUF file says, where MODEL is one: then no field that a config.json states is set, and
  // only an engine that loads such files can answer.
  std::shared_ptr<const checkpoint::Gguf> gguf;
  BoolField attention_sinks;  // gpt-oss
  DoubleField attn_logit_softcapping;

  // Integer and boolean members (true is 1) of the text config and of the vision tower's config,
  // sorted by name: what only the weight ledger asks for (mlp_bias, o_lora_rank, patch_size …), so
  // that it needs no JSON. See integer_members().
  std::vector<std::pair<std::string, std::int64_t>> text_integers;
  std::vector<std::pair<std::string, std::int64_t>> vision_integers;
  // String members of the text config, sorted by name.
  std::vector<std::pair<std::string, std::string>> text_strings;

  // Names of the top-level fields that are there ("draft_vocab_size"), and of the text config's,
  // sorted: for engine rules that depend on mere presence.
  std::vector<std::string> present_fields;
  std::vector<std::string> present_text_fields;
  [[nodiscard]] bool has_field(std::string_view name) const;  // at the top level

  // config.json as it was read (shared, hence cheap to copy); null for a GGUF file.
  json::Value file;

  std::vector<json::Warning> warnings;
};

// "GQA 32:8  head_dim 128  bf16 …" pieces for reports.
std::string attention_summary(const ModelConfig& config);

}  // namespace kernelpath::config
