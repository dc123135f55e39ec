#pragma once

#include "base/result.h"
#include "kv/block_manager.h"
#include "kv/paged_storage.h"
#include "model/model.h"
#include "runtime/ngram_proposer.h"
#include "runtime/sampler.h"
#include "runtime/scheduler.h"
#include "runtime/stop_strings.h"
#include "tokenizer/tokenizer.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::runtime {

// A request whose prompt is token ids already.
struct Prompt {
  std::string id;  // as events name it
  std::vector<std::int32_t> tokens;
  std::int64_t max_tokens = 0;  // to generate
  bool ignore_eos = false;
  SamplingParams sampling = {};
  std::vector<std::string> stop = {};
  std::int64_t logprobs = 0;
};

enum class FinishReason : std::uint8_t {
  kEndOfSequence,
  kStopString,
  kMaxTokens,
  kCancelled,
  kFailed
};
// "stop" for the first two and "length", as OpenAI's API names them; "cancelled"; "error".
std::string_view finish_reason_name(FinishReason reason);

struct TokenEvent {
  const std::string& request;
  const Sampled& sampled;
  std::span<const float> logits;  // [vocab_size]: before penalties; good until the call returns
  std::string text;  // what is certain now: valid UTF-8, often empty; empty without a tokenizer
};

struct DoneEvent {
  const std::string& request;
  FinishReason reason = FinishReason::kMaxTokens;
  std::string text;  // the rest
  std::optional<std::string> stop_string = {};
  std::optional<Error> error = {};  // of kFailed
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;  // of the prompt, found in the cache
  std::int64_t generated_tokens = 0;
  std::int64_t proposed_tokens = 0;  // by speculation
  std::int64_t accepted_tokens = 0;
  std::int64_t preemptions = 0;
  double first_token_s = 0;  // since the request was added
  double total_s = 0;
};

// Receives what is generated, in the order in which it comes to be. An error stops the generator.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Result<void> token(const TokenEvent& event) = 0;
  virtual Result<void> done(const DoneEvent& event) = 0;
};

struct GeneratorOptions {
  SchedulerLimits limits = {};
  std::vector<std::int32_t> eos = {};  // tokens that end a sequence
  // Speculation by n-grams: what is generated is the same with and without it.
  std::optional<NgramProposer> ngrams = {};
  std::int64_t draft_tokens = 4;
  // Longest sequence; nothing: what the model's configuration allows.
  std::optional<std::int64_t> max_model_len = {};
};

// What a generator works on. All of it must outlive the generator.
struct GeneratorParts {
  model::Model& model;
  kv::BlockManager& blocks;
  kv::PagedStorage& storage;
  std::span<const model::LayerCache> caches;  // within `storage`, and the states beside it
  std::int64_t context_ranks = 1;  // that share the tokens of each block (decode context parallel)
  const tokenizer::Tokenizer* tokenizer = nullptr;  // null: events have no text
};

struct GeneratorTotals {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // that went through the model, drafts and recomputed ones included
  double prefill_s = 0;     // of steps that held part of a prompt
  std::int64_t prefill_tokens = 0;
  double decode_s = 0;  // of the other steps
  std::int64_t decode_tokens = 0;
};

// Runs requests through a model, many at a time.
class Generator {
 public:
  Generator(const GeneratorParts& parts, const GeneratorOptions& options);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Queues a request. Errors: kUsage (no tokens, a token outside the vocabulary, a prompt as long
  // as the model's context), kResource (the cache could not hold it even alone). A request that
  // would outgrow the model's context ends there, with kMaxTokens.
  Result<void> add(Prompt prompt);

  // Runs one step. False when nothing is left to do. A request whose token cannot be sampled ends
  // with kFailed, and the others go on. Errors: those of Model::forward and of the sink; nothing
  // can be generated after one.
  Result<bool> step(EventSink& sink);

  // Ends every request, with kCancelled.
  Result<void> cancel(EventSink& sink);

  [[nodiscard]] const GeneratorTotals& totals() const { return totals_; }

 private:
  struct Job;
  class Batch;

  Result<void> take_logits(const SequenceRun& run, std::span<const float> rows, EventSink& sink);
  // Appends one token to the job; true if that was its last.
  Result<bool> take_token(Job& job, std::span<const float> logits, EventSink& sink);
  static Result<void> finish(Job& job, FinishReason reason, EventSink& sink,
                             std::optional<Error> error = {});
  Job& job_of(const Sequence& sequence);

  GeneratorParts parts_;
  GeneratorOptions options_;
  Scheduler scheduler_;
  std::unique_ptr<Batch> batch_;
  std::vector<std::unique_ptr<Job>> jobs_;  // in the order of arrival
  kv::SequenceId next_id_ = 0;
  GeneratorTotals totals_;
};

}  // namespace kernelpath::runtime
