#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernelpath::kernels::cpu {

// Rows that kernels work on together, for n tokens; a thread's share is a multiple of it.
constexpr std::int64_t rows_at_once(std::int64_t n) {
  constexpr std::int64_t kFewTokens = 8;
  return n < kFewTokens ? 4 : 32;
}

// The outputs [begin, end) of a part, for all its tokens.
struct PartRows {
  const MatmulPart* part = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Computes a thread's share of the outputs of several parts. Each output is one sum over the
// columns in an order that depends on nothing but the number of columns and the kernel, and the
// kernel on nothing but the format and the number of tokens.
using MatmulRows = void (*)(std::span<const PartRows> share);

void matmul_rows_reference(std::span<const PartRows> share);
void matmul_rows_avx2(std::span<const PartRows> share);
void matmul_rows_avx512(std::span<const PartRows> share);
// Few tokens as matmul_rows_avx512.
void matmul_rows_amx(std::span<const PartRows> share);

// What the kernels of a thread need beside its registers: one huge page.
constexpr std::int64_t kMatmulScratchBytes = std::int64_t{2} << 20;

// Gives this thread's kernels kMatmulScratchBytes, aligned to a cache line, until another call; its
// executor does that.
void use_matmul_scratch(std::byte* memory);
// That memory, of which `bytes` are about to be used.
std::byte* matmul_scratch(std::int64_t bytes);

MatmulRows matmul_rows(Isa isa);

// Computes this thread's share of all parts: an equal piece of what they cost together.
void matmul_share(const Team& team, std::span<const MatmulPart> parts, MatmulRows rows);

}  // namespace kernelpath::kernels::cpu
