#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kernelpath::runtime {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

Unexpected bad(std::string_view field, std::string allowed, double found) {
  return fail({.code = ErrorCode::kUsage,
               .message = std::move(allowed),
               .where = std::string(field),
               .value = fmt::format("{}", found)});
}

// log(sum(exp(logits))), in double; the largest logit is subtracted first.
double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

bool is_better(std::span<const float> logits, std::int32_t a, std::int32_t b) {
  const float x = logits[static_cast<std::size_t>(a)];
  const float y = logits[static_cast<std::size_t>(b)];
  return x != y ? x > y : a < b;
}

// The `count` best ids, best first.
std::vector<std::int32_t> best_ids(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), middle, ids.end(),
                    [&](std::int32_t a, std::int32_t b) { return is_better(logits, a, b); });
  ids.erase(middle, ids.end());
  return ids;
}

// Keeps the first candidates that together reach `top_p` of the sum of `weights`.
std::size_t nucleus(std::span<const double> weights, double top_p) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= top_p * all) return i + 1;
  }
  return weights.size();
}

}  // namespace

Result<void> check_sampling(const SamplingParams& params) {
  if (!(params.temperature >= 0) || !std::isfinite(params.temperature)) {
    return bad("temperature", "must be 0 (greedy) or more", params.temperature);
  }
  if (params.top_k < 0) {
    return bad("top_k", "must be 0 (all) or more", static_cast<double>(params.top_k));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return bad("top_p", "must be more than 0 and at most 1", params.top_p);
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return bad("min_p", "must be from 0 to 1", params.min_p);
  }
  if (!(params.repetition_penalty > 0) || !std::isfinite(params.repetition_penalty)) {
    return bad("repetition_penalty", "must be more than 0", params.repetition_penalty);
  }
  for (const auto& [name, value] : {std::pair{"presence_penalty", params.presence_penalty},
                                    std::pair{"frequency_penalty", params.frequency_penalty}}) {
    if (!(value >= -2 && value <= 2)) return bad(name, "must be from -2 to 2", value);
  }
  return {};
}

double uniform(std::uint64_t seed, std::uint64_t n) {
  // 53 bits: every double in [0, 1) of this spacing is possible, and 1 is not.
  return static_cast<double>(mix(mix(seed) ^ n) >> 11U) * 0x1p-53;
}

std::int32_t argmax(std::span<const float> logits) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (best < 0 || logits[i] > logits[static_cast<std::size_t>(best)]) {
      best = static_cast<std::int32_t>(i);
    }
  }
  return best;
}

Sampler::Sampler(const SamplingParams& params, std::span<const std::int32_t> prompt)
    : params_(params) {
  if (params_.repetition_penalty == 1) return;
  for (const std::int32_t token : prompt) ++prompt_[token];
}

bool Sampler::has_penalties() const {
  return params_.repetition_penalty != 1 || params_.presence_penalty != 0 ||
         params_.frequency_penalty != 0;
}

void Sampler::penalise(std::span<float> logits) const {
  const auto repeat = [&](std::int32_t token) {
    float& logit = logits[static_cast<std::size_t>(token)];
    const auto penalty = static_cast<float>(params_.repetition_penalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  };
  if (params_.repetition_penalty != 1) {
    for (const auto& [token, count] : prompt_) repeat(token);
    for (const auto& [token, count] : generated_) {
      if (!prompt_.contains(token)) repeat(token);
    }
  }
  for (const auto& [token, count] : generated_) {
    const double penalty =
        params_.presence_penalty + params_.frequency_penalty * static_cast<double>(count);
    logits[static_cast<std::size_t>(token)] -= static_cast<float>(penalty);
  }
}

std::int32_t Sampler::draw(std::span<const float> logits) const {
  const std::size_t count = params_.top_k > 0
                                ? std::min(static_cast<std::size_t>(params_.top_k), logits.size())
                                : logits.size();
  const std::vector<std::int32_t> ids = best_ids(logits, count);
  const double best = logits[static_cast<std::size_t>(ids.front())];
  std::vector<double> weights;
  weights.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const double logit = logits[static_cast<std::size_t>(id)];
    const double weight = std::exp((logit - best) / params_.temperature);
    if (!(weight >= params_.min_p) || weight == 0) break;  // sorted: no later one is larger
    weights.push_back(weight);
  }
  weights.resize(nucleus(weights, params_.top_p));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = uniform(params_.seed, draws_) * all;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  return ids[weights.size() - 1];
}

Result<Sampled> Sampler::sample(std::span<const float> logits, std::int64_t top) {
  const std::int32_t best = argmax(logits);
  if (best < 0 || !std::isfinite(logits[static_cast<std::size_t>(best)])) {
    return fail({.code = ErrorCode::kRuntime,
                 .message = "the logits have no finite largest value",
                 .hint = "the checkpoint holds NaN or infinite weights, or a kernel is wrong: try "
                         "--backend vanilla"});
  }
  Sampled out;
  const double normaliser = log_sum_exp(logits);
  const auto logprob = [&](std::int32_t token) {
    return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(token)]) -
                              normaliser);
  };
  if (top > 0) {
    for (const std::int32_t id : best_ids(logits, static_cast<std::size_t>(top))) {
      out.top.push_back({id, logprob(id)});
    }
  }
  std::vector<float> penalised;
  std::span<const float> judged = logits;
  if (has_penalties()) {
    penalised.assign(logits.begin(), logits.end());
    penalise(penalised);
    judged = penalised;
  }
  out.token = params_.is_greedy() ? argmax(judged) : draw(judged);
  out.logprob = logprob(out.token);
  ++draws_;
  ++generated_[out.token];
  return out;
}

}  // namespace kernelpath::runtime
