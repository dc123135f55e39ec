#include "model/stored_part.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kernelpath::model {

StoredPart::StoredPart(const checkpoint::StoredTensor& whole, const Split& split)
    : whole_(&whole), part_(whole) {
  const auto split_dim = whole.shape.begin() + static_cast<std::ptrdiff_t>(split.dim);
  const std::int64_t outer =
      std::accumulate(whole.shape.begin(), split_dim, std::int64_t{1}, std::multiplies<>());
  stride_ = whole.bytes / outer;
  // Blocks of several values have no bytes a value; whole runs of blocks do.
  const auto bytes_of = [&](std::int64_t indices) { return stride_ * indices / split.whole; };
  for (const Run& run : split.runs) {
    runs_.push_back({.first = bytes_of(run.first), .count = bytes_of(run.count)});
    kept_ += runs_.back().count;
  }
  part_.shape[split.dim] = split.kept();
  part_.bytes = outer * kept_;
}

Result<void> StoredPart::read(const checkpoint::TensorFiles& files, std::int64_t first,
                              std::span<std::byte> out) const {
  if (runs_.empty()) return files.read(*whole_, first, out);
  while (!out.empty()) {
    const std::int64_t outer = first / kept_;
    std::int64_t within = first % kept_;
    auto run = runs_.begin();
    while (within >= run->count) within -= (run++)->count;
    const auto count = std::min(static_cast<std::size_t>(run->count - within), out.size());
    KERNELPATH_CHECK_OK(
        files.read(*whole_, outer * stride_ + run->first + within, out.first(count)));
    out = out.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
  return {};
}

}  // namespace kernelpath::model
