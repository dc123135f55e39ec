#pragma once

#include "attention/metadata.h"
#include "attention/params.h"
#include "base/result.h"
#include "comm/placement.h"
#include "config/model_config.h"
#include "json/document.h"
#include "kernels/ops.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::model {

// What one decoder layer keeps, for the owner of the caches. A layer has paged rows, a state, or
// (with index-sparse attention) two kinds of paged rows; sizes that it does not need are 0.
struct CacheRows {
  // Per token: num_kv_heads rows of head_dim for K, and of v_head_dim for V. MLA keeps one row of
  // kv_lora_rank + qk_rope_head_dim and no V side (v_head_dim = 0): V lies inside K.
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
  // Per token: one index key more, in pages of its own. Every rank keeps those of all tokens.
  std::int64_t index_head_dim = 0;
  std::int64_t state_floats = 0;  // per request: recurrent state, float32
  // Tokens that queries can still see: a sliding window or the chunk size; 0: all.
  std::int64_t window = 0;
  std::int64_t chunk = 0;
};

// Where the rows and states of one layer lie. The owner makes it once from CacheRows.
struct LayerCache {
  attention::PagedRows k = {};
  attention::PagedRows v = {};      // MLA: not used
  attention::PagedRows index = {};  // one head of index_head_dim
  float* state = nullptr;           // slot s from state + s * state_stride on
  std::int64_t state_stride = 0;
};

// One forward pass over the new tokens of some requests. Rows of `tokens` are grouped by request in
// the order of metadata.query_start.
struct Step {
  std::span<const std::int32_t> tokens = {};     // [n]; each in [0, vocab_size)
  std::span<const std::int64_t> positions = {};  // [n]: seq_len - query_len + i within a request
  attention::CommonMetadata metadata = {};  // seq_lens and block_table include this step's tokens
  // [requests]: tokens of the request's prompt, which counts as one call whatever chunks it comes
  // in. Rotary kinds whose factors depend on the length of a call (dynamic NTK, longrope) need it:
  // a token before prompt_len is rotated for a call of prompt_len tokens, a later one for a call of
  // its position + 1. Empty: each token as a later one. See rope_depends_on_length().
  std::span<const std::int32_t> prompt_lens = {};
  std::span<const std::int32_t> logit_rows = {};   // [m]: the rows of `tokens` that get logits
  std::span<const std::int32_t> state_slots = {};  // [requests]; empty for models without state
  std::span<const LayerCache> caches = {};         // [layers]
};

// How large a step is.
struct StepSize {
  std::int64_t tokens = 0;
  std::int64_t logit_rows = 0;
  std::int64_t longest = 0;  // tokens of the longest request, this step's included
  std::int64_t threads = 1;
};

// Bytes of a model's weights by what they are for.
// A shape-only model knows them where the headers of its weight files could be read.
struct WeightBytes {
  std::int64_t stored = 0;    // of the tensors that were read, as the files hold them
  std::int64_t resident = 0;  // in memory now (small vectors widened to float32, kv_b_proj split)
  // The most that is in memory while the model is built: kv_b_proj before it is split, and tensors
  // that are converted, one a thread.
  std::int64_t construction_peak = 0;
  std::int64_t tensors = 0;  // that were read
};

// A tensor that a class asks for, with the shape it must have.
struct TensorNeed {
  std::string name;
  std::vector<std::int64_t> shape;
};

// What the owner of the caches decides, and attention layers are built for.
struct AttentionOptions {
  std::string backend = {};  // empty: the first that can
  attention::DataType kv_type = attention::DataType::kF32;
  attention::KvLayout layout = attention::KvLayout::kNhd;
  std::int64_t page_size = 16;
  std::int64_t max_seq_len = 0;  // the longest sequence there will be; 0: unknown
  // The tokens whose keys this rank's cache holds. A block of Step::metadata's block table holds
  // page_size of them, and count times as many tokens together with the other ranks'.
  attention::KvShard shard = {};
};

struct BuildOptions {
  // Makes layers with shapes and no data: forward() is then an error that names the operation.
  bool shape_only = false;
  // Threads that read the files.
  int load_threads = 2;
  // The class to build, as the registry gave it; empty: looked up by architecture among the
  // built-in ones. See resolve_class().
  std::string class_name = {};
  AttentionOptions attention = {};
  // This rank's place. Without communicators nothing can be run.
  comm::Placement ranks = {};
};

// A model on a device. forward() is not re-entrant; everything else is constant after build().
class Model {
 public:
  virtual ~Model() = default;

  [[nodiscard]] virtual std::string_view class_name() const = 0;
  [[nodiscard]] virtual std::int64_t vocab_size() const = 0;
  // Largest number of positions that the configuration allows; 0: not stated.
  [[nodiscard]] virtual std::int64_t max_positions() const = 0;
  // One entry per decoder layer.
  [[nodiscard]] virtual std::span<const CacheRows> cache_rows() const = 0;
  // Whether the rotary factors of a key depend on its request's prompt length (Step::prompt_lens):
  // then cached keys must not be shared between requests.
  [[nodiscard]] virtual bool rope_depends_on_length() const = 0;
  // Whether a layer keeps a recurrent state, which can neither be shared nor rolled back.
  [[nodiscard]] virtual bool has_state() const = 0;
  [[nodiscard]] virtual WeightBytes weight_bytes() const = 0;
  // Bytes of activation buffers for a step of that size.
  [[nodiscard]] virtual std::int64_t workspace_bytes(const StepSize& size) const = 0;
  // Every tensor that the class needs, in the order of the layers.
  [[nodiscard]] virtual std::vector<TensorNeed> tensors() const = 0;
  // What loading warned about: NaN weights by name, tensors that were left unread.
  [[nodiscard]] virtual std::span<const json::Warning> warnings() const = 0;

  // Runs a step and writes logits [m, vocab_size] float32 for step.logit_rows. Appends the step's
  // keys, values and states to step.caches. Errors: kUnavailable (a shape-only model; names the
  // operation), kUsage (a token outside the vocabulary, rows outside the step), kResource.
  virtual Result<void> forward(const Step& step, float* logits) = 0;
};

// Builds the model of `config` with the weights of `folder` (a folder with safetensors files, or a
// GGUF file): layers are made empty, quantisation is decided for each of them, then tensors are
// bound and read. `executor` must outlive the model.
// Errors: kUsageUnknown (architecture or class without implementation; near matches), kConfig…,
// kCheckpoint (all missing, unknown and misshaped tensors at once), kInputMissing (no weights),
// kResource (no memory), kUnavailable (a quantisation that no kernel has; sizes or blocks of
// quantised weights that so many ranks cannot divide).
Result<std::unique_ptr<Model>> build(const config::ModelConfig& config, const std::string& folder,
                                     kernels::Executor& executor, const BuildOptions& options = {});

}  // namespace kernelpath::model
