#include "kernels/cpu/matmul.h"

#include "base/assert.h"

#include <algorithm>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

std::int64_t row_blocks(const MatmulPart& part) {
  const std::int64_t rows = rows_at_once(part.n);
  return part.n == 0 ? 0 : (part.w.rows + rows - 1) / rows;
}

// What a block of rows costs: to read and convert the weights, and to multiply them with n tokens.
std::int64_t block_cost(const MatmulPart& part) {
  constexpr std::int64_t kReading = 8;
  return part.w.cols * rows_at_once(part.n) * (kReading + part.n);
}

// The blocks of a part that starts at `start` on the line of all costs, up to the point `edge`.
std::int64_t blocks_before(const MatmulPart& part, std::int64_t start, std::int64_t edge) {
  const std::int64_t cost = block_cost(part);
  return std::clamp<std::int64_t>((edge - start + cost - 1) / cost, 0, row_blocks(part));
}

std::byte*& own_scratch() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of this thread alone
  static thread_local std::byte* memory = nullptr;
  return memory;
}

}  // namespace

void use_matmul_scratch(std::byte* memory) { own_scratch() = memory; }

std::byte* matmul_scratch(std::int64_t bytes) {
  KERNELPATH_ASSERT(own_scratch() != nullptr && bytes <= kMatmulScratchBytes);
  return own_scratch();
}

// All parts' blocks of rows lie on one line of costs, of which every thread takes an equal piece.
void matmul_share(const Team& team, std::span<const MatmulPart> parts, MatmulRows rows) {
  static thread_local std::vector<PartRows> share;
  share.clear();
  std::int64_t total = 0;
  for (const MatmulPart& part : parts) total += row_blocks(part) * block_cost(part);
  const std::int64_t first = total * team.thread / team.threads;
  const std::int64_t last = total * (team.thread + 1) / team.threads;
  std::int64_t start = 0;
  for (const MatmulPart& part : parts) {
    const std::int64_t at_once = rows_at_once(part.n);
    const std::int64_t begin = blocks_before(part, start, first) * at_once;
    const std::int64_t end = std::min(blocks_before(part, start, last) * at_once, part.w.rows);
    if (begin < end) share.push_back({.part = &part, .begin = begin, .end = end});
    start += row_blocks(part) * block_cost(part);
  }
  rows(share);
}

}  // namespace kernelpath::kernels::cpu
