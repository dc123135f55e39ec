#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace kernelpath::runtime {

// How the next token is drawn from the logits. The defaults are greedy: the largest logit, the
// lowest id among equals.
struct SamplingParams {
  double temperature = 0;  // 0: greedy
  std::int64_t top_k = 0;  // keep so many of the most likely tokens; 0: all
  double top_p = 1;        // keep the smallest set of at least this probability
  double min_p = 0;        // keep what has at least this share of the largest probability
  double repetition_penalty =
      1;                         // divides positive logits of tokens seen, multiplies negative ones
  double presence_penalty = 0;   // subtracted once from the logits of tokens generated so far
  double frequency_penalty = 0;  // subtracted for each time that a token was generated
  std::uint64_t seed = 0;

  [[nodiscard]] bool is_greedy() const { return temperature == 0; }
};

// Errors: kUsage, `where` names the field ("temperature").
Result<void> check_sampling(const SamplingParams& params);

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0;  // natural logarithm
};

struct Sampled {
  std::int32_t token = 0;
  float logprob = 0;  // under the model's own distribution, before any of SamplingParams
  std::vector<TokenLogprob> top = {};  // the most likely ones, best first, as many as were asked
};

// Draws the tokens of one sequence. The n-th draw depends on the seed, on n and on the logits
// alone, so that neither the batch nor a preemption changes what a sequence becomes.
// Penalties first, then temperature, min_p, top_k and top_p, in the order of vLLM
// (vllm/v1/sample/sampler.py).
class Sampler {
 public:
  // `prompt` counts for the repetition penalty, as in Hugging Face transformers.
  Sampler(const SamplingParams& params, std::span<const std::int32_t> prompt);

  // logits: [vocabulary]. `top` logprobs are returned beside the token.
  // A distribution without a finite logit is kRuntime: the weights or a kernel are broken.
  Result<Sampled> sample(std::span<const float> logits, std::int64_t top);

 private:
  [[nodiscard]] bool has_penalties() const;
  void penalise(std::span<float> logits) const;
  [[nodiscard]] std::int32_t draw(std::span<const float> logits) const;

  SamplingParams params_;
  std::unordered_map<std::int32_t, std::int64_t> generated_;
  std::unordered_map<std::int32_t, std::int64_t> prompt_;
  std::uint64_t draws_ = 0;
};

// The largest logit's index; the lowest among equals. NaN never wins. −1 where all are NaN.
std::int32_t argmax(std::span<const float> logits);

// The n-th number of the stream `seed`, uniform in [0, 1): SplitMix64 of both.
double uniform(std::uint64_t seed, std::uint64_t n);

}  // namespace kernelpath::runtime
