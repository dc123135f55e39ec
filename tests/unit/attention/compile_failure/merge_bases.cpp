// Merging a log-sum-exp of base 2 with one of base e: this must not compile. With
// KERNELPATH_CONTROL both have one base.
#include "attention/lse.h"
#include "kernels/cpu/merge.h"

#include <array>

void merge(const float* o, const float* lse, float* out) {
  using kernelpath::attention::ConstLse;
  using kernelpath::attention::LogBase;
  using kernelpath::kernels::cpu::AttentionPart;
#ifdef KERNELPATH_CONTROL
  constexpr LogBase kOther = LogBase::kE;
#else
  constexpr LogBase kOther = LogBase::k2;
#endif
  const std::array<AttentionPart<LogBase::kE>, 2> parts{
      {{.o = o, .lse = ConstLse<LogBase::kE>(lse)}, {.o = o, .lse = ConstLse<kOther>(lse)}}};
  kernelpath::kernels::cpu::merge_attention<LogBase::kE>(parts, {.rows = 1, .dim = 1}, nullptr,
                                                         {.o = out});
}
