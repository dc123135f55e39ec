#pragma once

#include "config/model_config.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines {

// Where a rule comes from: a file of the engine at a version.
struct Source {
  std::string project;  // "TensorRT-LLM"
  std::string file;     // "tensorrt_llm/_torch/attention/backends/utils.py"
  std::string version;  // commit, release or date
};

enum class Verdict : std::uint8_t { kSelected, kRejected, kApplied, kSkipped, kNoted };
enum class Severity : std::uint8_t { kInfo, kWarn, kError };
std::string_view verdict_name(Verdict verdict);     // "selected", …
std::string_view severity_name(Severity severity);  // "info", "warn", "error"

// The order in which somebody who debugs a deployment asks.
enum class Stage : std::uint8_t {
  kModelClass,    // which class, and what rewrote the name
  kFinalValue,    // final value of each option and who set it
  kFallback,      // fallbacks
  kAvailability,  // what is installed, what the device can do
  kConstruction,  // checks when the layer is built
  kRewrite,       // rewrites by model or layer
  kInnerKernel,   // the inner kernel of each phase
  kMemory,        // sizes
};

// One decision; the only log of reasons.
struct Step {
  std::string rule;       // stable id: "TRT-ATTN-FALLBACK"
  std::string candidate;  // what it is about: "FLASHINFER"; may be empty
  Verdict verdict = Verdict::kNoted;
  Severity severity = Severity::kInfo;
  std::string reason;  // one sentence
  Source source;
  Stage stage = Stage::kModelClass;
};

enum class Status : std::uint8_t { kOk, kFallback, kUnsupported, kError };
std::string_view status_name(Status status);

// What the engine itself would raise.
struct EngineError {
  std::string type;     // "ValueError"
  std::string code;     // our stable id of the refusal: "UNKNOWN-ARCH"
  std::string message;  // in our words, with the engine's values
  std::vector<std::string> near_matches;
};

enum class Phase : std::uint8_t { kPrefill, kDecode };
std::string_view phase_name(Phase phase);

// An inner kernel or library that was asked before another one.
struct RejectedKernel {
  std::string kernel;
  std::string rule;
  std::string reason;
};

struct KernelChoice {
  std::string kernel;  // "fallback (XQA / FMHA cubins)", "fa3", "trtllm-gen"; empty: none serves it
  std::vector<RejectedKernel> rejected;
  std::string note;
};

struct KvLayout {
  std::string dtype;                      // "bf16", "fp8", "nvfp4"
  std::string layout;                     // "HND", "NHD", or the engine's own name
  std::optional<std::int64_t> page_size;  // tokens in a block
  std::string shape;                      // "[num_pages, 2, num_kv_heads, page_size, head_dim]"
};

// What a token takes in the caches of a group of layers on one rank.
struct KvParts {
  std::int64_t values = 0;         // numbers that are stored: keys and values, or a latent
  std::int64_t data_bytes = 0;     // of them, in the cache's dtype
  std::int64_t scale_bytes = 0;    // of block scales
  std::int64_t index_bytes = 0;    // of an indexer's keys
  std::int64_t padding_bytes = 0;  // that nothing is kept in
};

// All layers that resolve alike.
struct LayerGroup {
  config::LayerKind kind = config::LayerKind::kFull;
  bool draft = false;                // of the model that drafts tokens, not of the target
  std::vector<std::int64_t> layers;  // indices
  std::optional<std::int64_t> window;
  std::string backend;  // outer backend class: "TrtllmAttention"
  KernelChoice prefill;
  KernelChoice decode;
  KvLayout kv;
  std::optional<bool> rope_fused;
  std::string cuda_graph;               // level, in the engine's words; empty if it has none
  std::int64_t kv_bytes_per_token = 0;  // per rank, over all layers of the group
  KvParts kv_parts;                     // what it is made of; all parts but `values` sum up to it
};

// Why a size is not the plain one: plain_bytes and the bytes of all rows sum up to total_bytes.
struct MemoryAccount {
  struct Row {
    std::string cause;       // of memory_causes(): "KV dtype", "KV heads replicated" …
    std::int64_t bytes = 0;  // what it adds; negative: saves
    std::string reason;      // one sentence with the engine's numbers
  };
  std::string figure;            // "kv_bytes_per_token", "kv_bytes_per_sequence", "kv_pool_bytes"
  std::string plain;             // what plain_bytes counts
  std::int64_t plain_bytes = 0;  // the same for every engine, as far as they count alike
  std::vector<Row> rows;
  std::int64_t total_bytes = 0;  // the engine's own figure
};

// Memory of one rank, in bytes.
struct Memory {
  std::optional<std::int64_t> weight_bytes;
  std::string weight_source;                       // "safetensors headers", "index", "geometry"
  std::optional<std::int64_t> kv_bytes_per_token;  // what the pool really uses
  std::optional<std::int64_t> kv_bytes_per_token_estimate;  // what the engine budgets with
  std::optional<std::int64_t> kv_pool_bytes;
  std::optional<std::int64_t> kv_pool_tokens;
  std::optional<std::int64_t> sequence_tokens;           // the longest sequence: context length
  std::optional<std::int64_t> kv_bytes_per_sequence;     // of sequence_tokens
  std::optional<std::int64_t> state_bytes_per_sequence;  // linear and state-space layers
  std::optional<std::int64_t> batch_sequences;           // --batch-size, where it is given
  std::optional<std::int64_t> kv_bytes_per_batch;        // unset with batch_sequences: too large
  std::optional<std::int64_t> construction_host_bytes;
  std::vector<std::string> notes;
  std::vector<MemoryAccount> accounts;  // of the figures above that are known
};

struct Resolution {
  std::string engine;
  std::string version;
  Status status = Status::kOk;
  std::string model_class;
  std::string model_module;
  std::string requested_backend;  // as the user, a model default or the engine's default says
  std::string requested_by;       // "user", "model default", "engine default"
  std::string selected_backend;   // canonical name: "TRTLLM"
  std::string backend_class;      // "TrtllmAttention"
  std::string fallback_reason;    // empty if nothing fell back
  std::string fallback_rule;
  std::vector<LayerGroup> layers;
  Memory memory;
  std::vector<Step> steps;
  std::vector<std::string> warnings;
  std::optional<EngineError> error;
  // Resolved options, in a fixed order: name, value, who set it.
  struct Option {
    std::string name;
    std::string value;
    std::string set_by;
  };
  std::vector<Option> options;
  // What the engine knows of the model in its own terms, for the rules of its table: the field's
  // name ("gguf.architecture") and its value. Null: rules must not know what would be there.
  struct Fact {
    std::string name;
    json::Value value;
  };
  std::vector<Fact> facts;
};

}  // namespace kernelpath::engines
