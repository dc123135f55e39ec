#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void softmax(std::span<float> values) {
  const float largest = *std::max_element(values.begin(), values.end());
  float sum = 0.0F;
  for (float& value : values) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (float& value : values) value /= sum;
}

// Indices of the `count` largest values, largest first; of equal ones the lower index.
void top_k(std::span<const float> values, std::span<std::int32_t> out,
           std::vector<std::int32_t>& scratch) {
  scratch.resize(values.size());
  std::iota(scratch.begin(), scratch.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float left = values[static_cast<std::size_t>(a)];
    const float right = values[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  const auto middle = scratch.begin() + static_cast<std::ptrdiff_t>(out.size());
  std::partial_sort(scratch.begin(), middle, scratch.end(), before);
  std::copy(scratch.begin(), middle, out.begin());
}

// One token's routing; holds the buffers that all tokens share.
class Router {
 public:
  explicit Router(const RouteParams& params)
      : p_(params),
        scores_(static_cast<std::size_t>(params.experts)),
        choice_(scores_.size()),
        group_scores_(static_cast<std::size_t>(params.groups)),
        kept_(static_cast<std::size_t>(params.top_groups)) {}

  void run(std::int64_t token) {
    const float* const logits = p_.logits + token * p_.logits_stride;
    std::copy(logits, logits + p_.experts, scores_.begin());
    if (p_.kind == RouterKind::kSoftmax) softmax(scores_);
    if (p_.kind == RouterKind::kSigmoid) {
      for (float& score : scores_) score = 1.0F / (1.0F + std::exp(-score));
    }
    choice_ = scores_;
    if (p_.correction != nullptr) {
      for (std::size_t e = 0; e < choice_.size(); ++e) choice_[e] += p_.correction[e];
    }
    if (p_.group_score != GroupScore::kNone) keep_best_groups();
    const std::span<std::int32_t> ids(p_.ids + token * p_.top_k,
                                      static_cast<std::size_t>(p_.top_k));
    top_k(choice_, ids, order_);
    weigh(ids, std::span(p_.weights + token * p_.top_k, ids.size()));
  }

 private:
  [[nodiscard]] float score_of_group(std::span<const float> members) const {
    if (p_.group_score == GroupScore::kMax) {
      return *std::max_element(members.begin(), members.end());
    }
    float first = kNever;
    float second = kNever;
    for (const float member : members) {
      second = std::max(second, std::min(first, member));
      first = std::max(first, member);
    }
    return first + second;
  }

  // Experts of the other groups can no longer be chosen. The reference sets their softmax scores
  // to 0, which differs only where all others are 0, too.
  void keep_best_groups() {
    const std::size_t size = choice_.size() / group_scores_.size();
    for (std::size_t g = 0; g < group_scores_.size(); ++g) {
      group_scores_[g] = score_of_group(std::span(choice_).subspan(g * size, size));
    }
    top_k(group_scores_, kept_, order_);
    for (std::size_t g = 0; g < group_scores_.size(); ++g) {
      const auto number = static_cast<std::int32_t>(g);
      if (std::find(kept_.begin(), kept_.end(), number) != kept_.end()) continue;
      std::fill_n(choice_.begin() + static_cast<std::ptrdiff_t>(g * size), size, kNever);
    }
  }

  void weigh(std::span<const std::int32_t> ids, std::span<float> weights) const {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      weights[i] = scores_[static_cast<std::size_t>(ids[i])];
    }
    if (p_.kind == RouterKind::kTopKSoftmax) softmax(weights);
    if (p_.normalize) {
      float sum = p_.normalize_eps;
      for (const float weight : weights) sum += weight;
      for (float& weight : weights) weight /= sum;
    }
    for (float& weight : weights) weight *= p_.scaling;
  }

  const RouteParams& p_;
  std::vector<float> scores_;
  std::vector<float> choice_;
  std::vector<float> group_scores_;
  std::vector<std::int32_t> kept_;
  std::vector<std::int32_t> order_;
};

}  // namespace

void route_rows(const RouteParams& params, std::int64_t begin, std::int64_t end) {
  if (begin == end) return;
  Router router(params);
  for (std::int64_t token = begin; token < end; ++token) router.run(token);
}

}  // namespace kernelpath::kernels::cpu
