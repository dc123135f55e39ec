#pragma once

#include "base/result.h"
#include "comm/placement.h"
#include "engines/request.h"
#include "kernels/cpu/executor.h"
#include "kv/block_manager.h"
#include "kv/paged_storage.h"
#include "model/model.h"
#include "runtime/generator.h"
#include "tokenizer/tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::runtime {

// What a session needs beyond the request that engine `kernelpath` resolved.
struct SessionOptions {
  std::string weights;  // folder with safetensors files, or a GGUF file
  std::string model_class =
      {};  // that the Resolution names; empty: the architecture's built-in one
  int threads = 1;
  kernels::cpu::Isa isa = kernels::cpu::best_isa();
  SchedulerLimits limits = {};
  // Room of the KV cache: so many bytes where they are given, else for so many tokens.
  std::optional<std::int64_t> kv_bytes = {};
  std::int64_t kv_tokens = 0;
  bool ngrams = false;
  std::int64_t draft_tokens = 4;
  std::optional<std::int64_t> max_model_len = {};
  // This rank's place. All ranks open their sessions together.
  comm::Placement ranks = {};
  int ranks_on_host = 1;  // that share this machine's memory
};

// What a session takes on this rank, in bytes. Weights and cache are exact; the rest is what a step
// can need.
struct SessionPlan {
  std::int64_t weight_bytes = 0;    // as they lie in memory
  std::int64_t kv_block_bytes = 0;  // of one block in all layers
  std::int64_t kv_blocks = 0;
  std::int64_t block_tokens = 0;     // of a block, on all ranks that share it
  std::int64_t kv_bytes = 0;         // blocks and the alignment between layers
  std::int64_t state_bytes = 0;      // recurrent states of all sequences that run at one time
  std::int64_t workspace_bytes = 0;  // activations of the largest step, and its logits
  std::int64_t kernel_bytes = 0;     // what the matrix kernels of all threads work in
  // The most that the model takes while it is built: its weights, and what is converted or split
  // on the way. The cache and all else come after that.
  std::int64_t construction_bytes = 0;
  [[nodiscard]] std::int64_t total() const {
    return weight_bytes + kv_bytes + state_bytes + workspace_bytes + kernel_bytes;
  }
};

// What this process took, as the system counts it; nothing where it does not say.
struct SessionMemory {
  std::optional<std::int64_t> before = {};             // the model was built
  std::optional<std::int64_t> construction_peak = {};  // until it was built
};

// Plans a session without reading weights: the model is built with shapes alone. Errors: those of
// model::build; kResource where the cache would not hold a single block, or where all of it is more
// than the machine has free, with the sizes.
Result<SessionPlan> plan_session(const engines::Request& request, const SessionOptions& options);

// A model with its weights, its cache and a generator.
class Session {
 public:
  // `tokenizer` may be null and must outlive the session. Errors: those of plan_session and of
  // model::build.
  static Result<std::unique_ptr<Session>> open(const engines::Request& request,
                                               const SessionOptions& options,
                                               const tokenizer::Tokenizer* tokenizer,
                                               std::vector<std::int32_t> eos);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  [[nodiscard]] Generator& generator() { return *generator_; }
  [[nodiscard]] const GeneratorTotals& totals() const { return generator_->totals(); }
  [[nodiscard]] const model::Model& model() const { return *model_; }
  [[nodiscard]] const SessionPlan& plan() const { return plan_; }
  [[nodiscard]] const SessionMemory& memory() const { return memory_; }
  // As it was allocated: what the plan says.
  [[nodiscard]] const kv::PagedStorage& storage() const { return *storage_; }
  [[nodiscard]] bool has_text() const { return has_text_; }  // there is a tokenizer
  [[nodiscard]] bool huge_pages() const { return storage_->huge_pages(); }

 private:
  Session() = default;

  SessionPlan plan_;
  SessionMemory memory_;
  bool has_text_ = false;
  std::unique_ptr<kernels::cpu::CpuExecutor> executor_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<kv::BlockManager> blocks_;
  std::unique_ptr<kv::PagedStorage> storage_;
  std::vector<std::vector<float>> states_;  // of each layer that has one
  std::vector<model::LayerCache> caches_;
  std::unique_ptr<Generator> generator_;
};

}  // namespace kernelpath::runtime
