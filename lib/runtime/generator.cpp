#include "runtime/generator.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kernelpath::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

SchedulerLimits limits_for(const model::Model& model, SchedulerLimits limits) {
  if (model.has_state() || model.rope_depends_on_length()) limits.share_prefixes = false;
  return limits;
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfSequence:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kMaxTokens:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kFailed:
      return "error";
  }
  return "";
}

// A request with everything that belongs to it.
struct Generator::Job {
  Job(Prompt p, const tokenizer::Tokenizer* tokenizer)
      : prompt(std::move(p)), sampler(prompt.sampling, prompt.tokens), stop(prompt.stop) {
    if (tokenizer != nullptr) decoder.emplace(tokenizer->stream_decoder(/*skip_special=*/true));
  }

  Prompt prompt;
  Sequence sequence;
  Sampler sampler;
  StopStrings stop;
  std::optional<tokenizer::StreamDecoder> decoder;
  Clock::time_point added = Clock::now();
  double first_token_s = 0;
  std::int64_t first_reused = 0;
  std::int64_t proposed = 0;
  std::int64_t accepted = 0;

  [[nodiscard]] std::int64_t generated() const { return sequence.known() - sequence.prompt_tokens; }
};

// The arrays of a step; kept so that a step allocates nothing once they are large enough.
class Generator::Batch {
 public:
  void fill(const std::vector<SequenceRun>& runs, const kv::BlockManager& blocks) {
    clear();
    std::size_t pages = 0;
    for (const SequenceRun& run : runs) {
      pages = std::max(pages, blocks.block_table(run.sequence->id).size());
    }
    stride_ = pages;
    block_table_.assign(runs.size() * pages, 0);
    for (const SequenceRun& run : runs) add(run, blocks);
  }

  [[nodiscard]] model::Step step(const GeneratorParts& parts) const {
    return {.tokens = tokens_,
            .positions = positions_,
            .metadata = {.query_start = query_start_,
                         .seq_lens = seq_lens_,
                         .block_table = block_table_,
                         .block_table_stride = static_cast<std::int64_t>(stride_),
                         .page_size = parts.blocks.page_size() / parts.context_ranks},
            .prompt_lens = prompt_lens_,
            .logit_rows = logit_rows_,
            .state_slots = parts.model.has_state() ? std::span<const std::int32_t>(slots_)
                                                   : std::span<const std::int32_t>(),
            .caches = parts.caches};
  }

  // Room for the logits of the step, [rows, vocab_size].
  std::span<float> logits(std::int64_t vocab_size) {
    logits_.resize(logit_rows_.size() * static_cast<std::size_t>(vocab_size));
    return logits_;
  }

  [[nodiscard]] std::size_t num_tokens() const { return tokens_.size(); }

 private:
  void clear() {
    for (auto* list : {&tokens_, &query_start_, &seq_lens_, &prompt_lens_, &logit_rows_, &slots_}) {
      list->clear();
    }
    positions_.clear();
    query_start_.push_back(0);
  }

  void add(const SequenceRun& run, const kv::BlockManager& blocks) {
    const Sequence& sequence = *run.sequence;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t position = run.first + i;
      const std::int64_t draft = position - sequence.known();
      tokens_.push_back(draft < 0 ? sequence.tokens[static_cast<std::size_t>(position)]
                                  : sequence.drafts[static_cast<std::size_t>(draft)]);
      positions_.push_back(position);
    }
    const auto end = static_cast<std::int32_t>(tokens_.size());
    for (std::int64_t row = end - run.logits; row < end; ++row) {
      logit_rows_.push_back(static_cast<std::int32_t>(row));
    }
    const std::span<const std::int32_t> pages = blocks.block_table(sequence.id);
    std::ranges::copy(
        pages, block_table_.begin() + static_cast<std::ptrdiff_t>(seq_lens_.size() * stride_));
    query_start_.push_back(end);
    seq_lens_.push_back(static_cast<std::int32_t>(run.first + run.count));
    prompt_lens_.push_back(static_cast<std::int32_t>(sequence.prompt_tokens));
    slots_.push_back(sequence.slot);
  }

  std::vector<std::int32_t> tokens_;
  std::vector<std::int64_t> positions_;
  std::vector<std::int32_t> query_start_;
  std::vector<std::int32_t> seq_lens_;
  std::vector<std::int32_t> block_table_;
  std::size_t stride_ = 0;
  std::vector<std::int32_t> prompt_lens_;
  std::vector<std::int32_t> logit_rows_;
  std::vector<std::int32_t> slots_;
  std::vector<float> logits_;
};

Generator::Generator(const GeneratorParts& parts, const GeneratorOptions& options)
    : parts_(parts),
      options_(options),
      scheduler_(limits_for(parts.model, options.limits), parts.blocks),
      batch_(std::make_unique<Batch>()) {
  // A state that saw a wrong proposal cannot be taken back.
  KERNELPATH_ASSERT(!options.ngrams || !parts.model.has_state());
}

Generator::~Generator() = default;

Result<void> Generator::add(Prompt prompt) {
  const auto length = static_cast<std::int64_t>(prompt.tokens.size());
  const auto bad = [&](std::string message, std::string hint) {
    return fail({.code = ErrorCode::kUsage,
                 .message = std::move(message),
                 .where = "request " + prompt.id,
                 .hint = std::move(hint)});
  };
  if (length == 0) {
    return bad("the prompt has no tokens",
               "this model has no token that begins a text: say at least one word");
  }
  for (std::size_t i = 0; i < prompt.tokens.size(); ++i) {
    const std::int32_t token = prompt.tokens[i];
    if (token >= 0 && token < parts_.model.vocab_size()) continue;
    return bad(fmt::format("token {} at index {} is outside the vocabulary of {}", token, i,
                           parts_.model.vocab_size()),
               "the tokenizer is not this model's");
  }
  const std::int64_t own = parts_.model.max_positions() > 0
                               ? parts_.model.max_positions()
                               : std::numeric_limits<std::int64_t>::max();
  const std::int64_t context = options_.max_model_len.value_or(own);
  if (length >= context) {
    return bad(
        fmt::format("the prompt has {} token{}, {} {}", length, length == 1 ? "" : "s",
                    options_.max_model_len ? "--max-model-len is" : "the model's context", context),
        "shorten the prompt; one token must be left to generate");
  }
  auto job = std::make_unique<Job>(std::move(prompt), parts_.tokenizer);
  job->sequence.id = next_id_++;
  job->sequence.tokens = job->prompt.tokens;
  job->sequence.prompt_tokens = length;
  job->sequence.max_tokens = length + std::min(job->prompt.max_tokens, context - length);
  Result<void> added = scheduler_.add(job->sequence);
  if (!added) {
    added.error().where = "request " + job->prompt.id;
    return added;
  }
  jobs_.push_back(std::move(job));
  return {};
}

Generator::Job& Generator::job_of(const Sequence& sequence) {
  const auto job = std::ranges::find_if(
      jobs_, [&](const std::unique_ptr<Job>& one) { return &one->sequence == &sequence; });
  KERNELPATH_ASSERT(job != jobs_.end());
  return **job;
}

Result<bool> Generator::step(EventSink& sink) {
  const std::vector<SequenceRun> runs = scheduler_.next();
  if (runs.empty()) return false;
  const Clock::time_point start = Clock::now();
  const bool prefills = std::ranges::any_of(
      runs, [](const SequenceRun& run) { return run.count > 1 + run.drafts || run.logits == 0; });
  for (const kv::BlockCopy& copy : parts_.blocks.take_copies()) parts_.storage.copy(copy);
  batch_->fill(runs, parts_.blocks);
  const std::int64_t vocab = parts_.model.vocab_size();
  const std::span<float> logits = batch_->logits(vocab);
  KERNELPATH_CHECK_OK(parts_.model.forward(batch_->step(parts_), logits.data()));
  std::size_t row = 0;
  for (const SequenceRun& run : runs) {
    const auto rows = static_cast<std::size_t>(run.logits * vocab);
    KERNELPATH_CHECK_OK(take_logits(run, logits.subspan(row, rows), sink));
    row += rows;
  }
  const auto tokens = static_cast<std::int64_t>(batch_->num_tokens());
  ++totals_.steps;
  totals_.tokens += tokens;
  (prefills ? totals_.prefill_s : totals_.decode_s) += seconds_since(start);
  (prefills ? totals_.prefill_tokens : totals_.decode_tokens) += tokens;
  return true;
}

Result<void> Generator::take_logits(const SequenceRun& run, std::span<const float> rows,
                                    EventSink& sink) {
  Job& job = job_of(*run.sequence);
  const std::vector<std::int32_t> drafts = run.sequence->drafts;
  const auto vocab = static_cast<std::size_t>(parts_.model.vocab_size());
  if (job.generated() == 0) job.first_reused = run.sequence->reused;
  std::int64_t accepted = 0;
  bool ended = false;
  for (std::int64_t i = 0; i < run.logits; ++i) {
    KERNELPATH_TRY(last,
                   take_token(job, rows.subspan(static_cast<std::size_t>(i) * vocab, vocab), sink));
    ended = last;
    const bool agrees = !ended && i < run.drafts &&
                        job.sequence.tokens.back() == drafts[static_cast<std::size_t>(i)];
    if (!agrees || ended) break;
    ++accepted;
  }
  job.proposed += run.drafts;
  job.accepted += accepted;
  scheduler_.executed(run, accepted);
  if (ended) {
    scheduler_.remove(job.sequence);
    std::erase_if(jobs_, [&](const std::unique_ptr<Job>& one) { return one.get() == &job; });
    return {};
  }
  if (options_.ngrams && run.logits > 0) {
    job.sequence.drafts = options_.ngrams->propose(job.sequence.tokens, options_.draft_tokens);
  }
  return {};
}

Result<bool> Generator::take_token(Job& job, std::span<const float> logits, EventSink& sink) {
  Result<Sampled> drawn = job.sampler.sample(logits, job.prompt.logprobs);
  if (!drawn) {
    Error error = std::move(drawn).error();
    error.where = "request " + job.prompt.id;
    KERNELPATH_CHECK_OK(finish(job, FinishReason::kFailed, sink, std::move(error)));
    return true;
  }
  const Sampled& sampled = *drawn;
  job.sequence.tokens.push_back(sampled.token);
  if (job.generated() == 1) job.first_token_s = seconds_since(job.added);
  const bool ends = std::ranges::find(options_.eos, sampled.token) != options_.eos.end();
  TokenEvent event{.request = job.prompt.id, .sampled = sampled, .logits = logits, .text = {}};
  if (job.decoder) event.text = job.stop.push(job.decoder->push(sampled.token));
  KERNELPATH_CHECK_OK(sink.token(event));
  std::optional<FinishReason> reason;
  if (ends && !job.prompt.ignore_eos) {
    reason = FinishReason::kEndOfSequence;
  } else if (job.stop.found()) {
    reason = FinishReason::kStopString;
  } else if (job.sequence.known() == job.sequence.max_tokens) {
    reason = FinishReason::kMaxTokens;
  }
  if (!reason) return false;
  KERNELPATH_CHECK_OK(finish(job, *reason, sink));
  return true;
}

Result<void> Generator::finish(Job& job, FinishReason reason, EventSink& sink,
                               std::optional<Error> error) {
  std::string rest;
  if (job.decoder) rest = job.stop.push(job.decoder->flush());
  if (job.stop.found() && reason != FinishReason::kEndOfSequence && !error) {
    reason = FinishReason::kStopString;
  }
  return sink.done({.request = job.prompt.id,
                    .reason = reason,
                    .text = rest + job.stop.finish(),
                    .stop_string = job.stop.found(),
                    .error = std::move(error),
                    .prompt_tokens = job.sequence.prompt_tokens,
                    .reused_tokens = std::min(job.first_reused, job.sequence.prompt_tokens),
                    .generated_tokens = job.generated(),
                    .proposed_tokens = job.proposed,
                    .accepted_tokens = job.accepted,
                    .preemptions = job.sequence.preemptions,
                    .first_token_s = job.first_token_s,
                    .total_s = seconds_since(job.added)});
}

Result<void> Generator::cancel(EventSink& sink) {
  for (const std::unique_ptr<Job>& job : jobs_) {
    scheduler_.remove(job->sequence);
    KERNELPATH_CHECK_OK(finish(*job, FinishReason::kCancelled, sink));
  }
  jobs_.clear();
  return {};
}

}  // namespace kernelpath::runtime
