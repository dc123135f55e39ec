#include "comm/communicator.h"

#include "base/assert.h"

#include <algorithm>
#include <cstring>

namespace kernelpath::comm {
namespace {

// So many values are gathered at a time: what is summed is still in the cache, and prompts do not
// take memory for all ranks' copies of all their tokens.
constexpr std::size_t kPieceFloats = std::size_t{1} << 16;

class SingleRank final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }

  Result<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) override {
    KERNELPATH_ASSERT(in.size() == out.size());
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return {};
  }
  Result<void> broadcast(std::span<std::byte> /*data*/, int /*root*/) override { return {}; }
  Result<void> barrier() override { return {}; }
  Result<std::unique_ptr<Communicator>> split(int /*color*/) override { return make_single_rank(); }
};

}  // namespace

Result<void> Communicator::all_reduce_sum(std::span<float> values) {
  if (size() == 1) return {};
  const auto ranks = static_cast<std::size_t>(size());
  for (std::size_t first = 0; first < values.size(); first += kPieceFloats) {
    const std::span<float> piece =
        values.subspan(first, std::min(kPieceFloats, values.size() - first));
    parts_.resize(ranks * piece.size());
    KERNELPATH_CHECK_OK(all_gather_values<float>(piece, parts_));
    std::copy_n(parts_.begin(), piece.size(), piece.begin());
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const float* const part = parts_.data() + rank * piece.size();
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] += part[i];
    }
  }
  return {};
}

std::unique_ptr<Communicator> make_single_rank() { return std::make_unique<SingleRank>(); }

}  // namespace kernelpath::comm
