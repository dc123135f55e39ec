#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
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

// exp(x) for x of -87 to 0, to 2e-7 of itself; of plain operations, so that a loop over it becomes
// vectors, in whatever it is compiled into.
[[gnu::always_inline]] inline float exp_of_negative(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: its last bit counts ones
  const float shifted = x * kLog2E + kRounder;
  const float whole = shifted - kRounder;
  // ln 2 in two parts, the first one short.
  const float r = x - whole * 0.693359375F + whole * 2.12194440e-4F;
  float power = 1.9875691500e-4F;
  power = power * r + 1.3981999507e-3F;
  power = power * r + 8.3334519073e-3F;
  power = power * r + 4.1665795894e-2F;
  power = power * r + 1.6666665459e-1F;
  power = power * r + 5.0000001201e-1F;
  power = power * (r * r) + r + 1.0F;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + exponent);
}

// Every logit of every request is read twice a step, so that these two loops are compiled for wider
// vectors too, of which the system's loader takes what the processor has.
#if defined(__x86_64__) && defined(__GLIBC__)
#define KERNELPATH_FOR_EACH_VECTOR_WIDTH \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KERNELPATH_FOR_EACH_VECTOR_WIDTH
#endif

// The largest number, -inf if there is none. A comparison with NaN is false: NaN is never taken.
KERNELPATH_FOR_EACH_VECTOR_WIDTH
float largest_of(const float* x, std::size_t count) {
  constexpr std::size_t kLanes = 64;
  std::array<float, kLanes> largest;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled next
  largest.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      largest[lane] = x[i + lane] > largest[lane] ? x[i + lane] : largest[lane];
    }
  }
  for (; i < count; ++i) largest[0] = x[i] > largest[0] ? x[i] : largest[0];
  return *std::ranges::max_element(largest);
}

// sum(exp(x - largest)); short sums in float go into one in double.
KERNELPATH_FOR_EACH_VECTOR_WIDTH
double sum_of_exponentials(const float* x, std::size_t count, float largest) {
  constexpr std::size_t kRun = 256;
  constexpr float kLeast = -87.0F;  // 2e-38, which is nothing beside the largest term, 1
  double sum = 0;
  for (std::size_t first = 0; first < count; first += kRun) {
    const std::size_t run = std::min(kRun, count - first);
    std::array<float, kRun> terms;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled next
    terms.fill(kLeast);
    for (std::size_t i = 0; i < run; ++i) {
      const float below = x[first + i] - largest;
      terms[i] = below > kLeast ? below : kLeast;
    }
    for (float& term : terms) term = exp_of_negative(term);
    // A half is added to the other, again and again.
    for (std::size_t half = kRun / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) terms[i] += terms[i + half];
    }
    sum += static_cast<double>(terms[0]);
  }
  return sum;
}

// log(sum(exp(logits))) with the largest of them, `largest`, subtracted first.
double log_sum_exp(std::span<const float> logits, float largest) {
  return static_cast<double>(largest) +
         std::log(sum_of_exponentials(logits.data(), logits.size(), largest));
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
  constexpr std::size_t kBlock = 1024;
  std::span<const float> best_block = logits.first(std::min(kBlock, logits.size()));
  float best = largest_of(best_block.data(), best_block.size());
  for (std::size_t first = kBlock; first < logits.size(); first += kBlock) {
    const auto block = logits.subspan(first, std::min(kBlock, logits.size() - first));
    const float largest = largest_of(block.data(), block.size());
    if (!(largest > best)) continue;
    best = largest;
    best_block = block;
  }
  const auto found = std::ranges::find(best_block, best);
  if (found == best_block.end()) return -1;
  return static_cast<std::int32_t>(best_block.data() - logits.data() +
                                   (found - best_block.begin()));
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
  const double normaliser = log_sum_exp(logits, logits[static_cast<std::size_t>(best)]);
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
  if (has_penalties()) {
    penalised.assign(logits.begin(), logits.end());
    penalise(penalised);
    out.token = params_.is_greedy() ? argmax(penalised) : draw(penalised);
  } else {
    out.token = params_.is_greedy() ? best : draw(logits);
  }
  out.logprob = logprob(out.token);
  ++draws_;
  ++generated_[out.token];
  return out;
}

}  // namespace kernelpath::runtime
