#include "engines/llamacpp/cuda_kernels.h"

#include "engines/llamacpp/cuda_gpu.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgmlType;

constexpr std::int64_t kKeyStride = 256;  // FATTN_KQ_STRIDE
constexpr std::int64_t kAda = 890;
constexpr std::int64_t kTuring = 750;
constexpr std::int64_t kVolta = 700;
constexpr std::int64_t kBlackwell = 1200;
constexpr std::int64_t kSpark = 1210;

// What a head size asks for, beside DV.
struct HeadRow {
  std::int64_t k;
  std::int64_t v;
  bool grouped;              // heads share K and V, with a mask and whole strides
  std::int64_t group_block;  // the group's size must be a multiple
};

constexpr auto kHeads = std::to_array<HeadRow>({
    {40, 40, false, 1},
    {64, 64, false, 1},
    {72, 72, false, 1},
    {80, 80, false, 1},
    {96, 96, false, 1},
    {112, 112, false, 1},
    {128, 128, false, 1},
    {192, 128, true, 8},
    {256, 256, false, 1},
    {320, 256, true, 32},
    {512, 512, true, 1},
    {576, 512, true, 1},
});

constexpr auto kTypes =
    std::to_array<std::string_view>({"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"});

// Pairs of the default build (GGML_CUDA_FA_QUANTS).
constexpr auto kDefaultPairs = std::to_array<std::string_view>({"f16", "bf16", "q8_0", "q4_0"});

struct SparseRow {
  std::int64_t k;
  std::int64_t ncols1;
  std::int64_t ncols2;
};
constexpr auto kSparse =
    std::to_array<SparseRow>({{512, 1, 8}, {576, 1, 16}, {256, 1, 8}, {256, 8, 8}});

bool is_served(const GgmlType& type) {
  return std::ranges::find(kTypes, type.name) != kTypes.end();
}

class Picker {
 public:
  Picker(const CudaBuild& build, const AttentionCall& call)
      : build_(build),
        call_(call),
        gpu_(build, call.cc),
        group_(call.n_head / call.n_head_kv),
        strided_(call.mask && call.max_bias == 0 && call.n_kv % kKeyStride == 0),
        grouped_(group_ >= 2 && strided_),
        quantized_(call.type_k->quantized || call.type_v->quantized) {}

  KernelPick run() {
    out_.refusal = refusal();
    if (!out_.refusal.empty()) return out_;
    out_.kernel = kernel();
    switch (out_.kernel) {
      case CudaKernel::kVec:
        pick_vec();
        break;
      case CudaKernel::kMma:
        pick_mma();
        break;
      default:
        pick_tile();
        break;
    }
    return out_;
  }

 private:
  [[nodiscard]] std::string_view refusal() const {
    const auto* const row = std::ranges::find(kHeads, call_.head_size_k, &HeadRow::k);
    if (row == kHeads.end()) return "no kernel has this head size of K";
    if (row->v != call_.head_size_v) return "no kernel has these head sizes of K and V";
    if (row->grouped && !grouped_) {
      return "this head size needs heads that share K and V, a mask, no ALiBi, and K and V in "
             "multiples of 256";
    }
    if (group_ % row->group_block != 0) {
      return "this head size needs another number of heads that share K and V";
    }
    if (!is_served(*call_.type_k)) return "no kernel reads this type of K";
    if (!is_served(*call_.type_v)) return "no kernel reads this type of V";
    return {};
  }

  [[nodiscard]] bool odd_head() const { return call_.head_size_k == 40 || call_.head_size_k == 72; }
  [[nodiscard]] bool vec_fits() const {
    const std::int64_t head = call_.head_size_k;
    return (head == 64 || head == 128 || head == 256) && call_.n_kv % kKeyStride == 0;
  }

  // Tokens times the heads of a group that a block can take together.
  [[nodiscard]] std::int64_t effective_batch() const {
    const std::int64_t head = call_.head_size_k;
    const std::int64_t most = head == 320 ? 32 : (head == 576 || head == 192) ? 16 : 8;
    std::int64_t group = 1;
    while (group_ % (2 * group) == 0 && group < most) group *= 2;
    return call_.n_q * group;
  }

  [[nodiscard]] CudaKernel kernel() const {
    if (!odd_head()) {
      if (gpu_.has_turing_cores()) return turing_kernel();
      if (gpu_.has_volta_cores()) return volta_kernel();
      if (prefers_amd_cores()) return CudaKernel::kMma;
    }
    if (!vec_fits()) return CudaKernel::kTile;
    const bool vec = quantized_ ? call_.n_q <= 2 : call_.n_q == 1 && !grouped_;
    return vec ? CudaKernel::kVec : CudaKernel::kTile;
  }

  [[nodiscard]] CudaKernel turing_kernel() const {
    if (!vec_fits()) return CudaKernel::kMma;
    const bool ada = call_.cc >= kAda;
    if (quantized_) {
      if (call_.n_q <= (ada ? 2 : 1)) return CudaKernel::kVec;
    } else if (ada && call_.n_q == 1 && call_.n_stream == 1 && !many_heads_long() &&
               !sparse_decode()) {
      return CudaKernel::kVec;
    }
    return !grouped_ && call_.n_q == 1 ? CudaKernel::kVec : CudaKernel::kMma;
  }

  [[nodiscard]] bool many_heads_long() const {
    return group_ > 4 && (call_.head_size_k >= 256 || call_.n_kv >= 8192);
  }
  [[nodiscard]] bool sparse_decode() const {
    return grouped_ && group_ > 4 && has_sparse(1, 8) && sparse_pays(1, 8);
  }

  [[nodiscard]] CudaKernel volta_kernel() const {
    const std::int64_t batch = effective_batch();
    if (vec_fits() && batch <= 2) return CudaKernel::kVec;
    return batch <= 16 ? CudaKernel::kTile : CudaKernel::kMma;
  }

  [[nodiscard]] bool prefers_amd_cores() const {
    const std::int64_t head = call_.head_size_k;
    const std::int64_t batch = effective_batch();
    if (gpu_.has_mfma()) {
      if (head <= 64 && batch > 8) return true;
      if (head <= 128 && batch > 16) return true;
      if (head <= 256 && batch > 64) return true;
      if (head > 256 && grouped_ && batch > 128) return true;
    }
    return gpu_.has_wmma() && grouped_ && head <= 256 && batch > (head <= 128 ? 8 : 16);
  }

  [[nodiscard]] bool has_sparse(std::int64_t ncols1, std::int64_t ncols2) const {
    return std::ranges::any_of(kSparse, [&](const SparseRow& row) {
      return row.k == call_.head_size_k && row.ncols1 == ncols1 && row.ncols2 == ncols2;
    });
  }

  // The gather has to beat the dense kernel, which takes up to 64 / ncols2 tokens a pass.
  [[nodiscard]] bool sparse_pays(std::int64_t ncols1, std::int64_t ncols2) const {
    const std::int64_t width = ncols1 == 1 ? std::min(call_.n_q, 64 / ncols2) : ncols1;
    const std::int64_t gathered = width * call_.n_kv_max;
    return gpu_.has_turing_cores() && call_.mask && call_.n_kv_max > 0 && call_.max_bias == 0 &&
           call_.logit_softcap == 0 && call_.n_kv >= std::max<std::int64_t>(4096, 2 * gathered);
  }

  // --- VEC ---------------------------------------------------------------------------------------

  [[nodiscard]] bool has_vec_pair(const GgmlType* k, const GgmlType* v) const {
    if (build_.all_kv_pairs) return true;
    return k == v && std::ranges::find(kDefaultPairs, k->name) != kDefaultPairs.end();
  }

  void pick_vec() {
    const GgmlType* const f16 = checkpoint::find_ggml_type("f16");
    const auto as_compiled = [&](const GgmlType* type) { return type->name == "f32" ? f16 : type; };
    out_.vec_type_k = as_compiled(call_.type_k);
    out_.vec_type_v = as_compiled(call_.type_v);
    out_.vec_fallback_f16 = !has_vec_pair(out_.vec_type_k, out_.vec_type_v);
    if (out_.vec_fallback_f16) out_.vec_type_k = out_.vec_type_v = f16;
    out_.k_converted = out_.vec_type_k != call_.type_k;
    out_.v_converted = out_.vec_type_v != call_.type_v;
    out_.ncols1 = call_.n_q == 1 ? 1 : 2;
    out_.ncols2 = 1;
  }

  void convert_both() {
    out_.k_converted = call_.type_k->name != "f16";
    out_.v_converted = call_.type_v->name != "f16";
  }

  // --- MMA ---------------------------------------------------------------------------------------

  void pick_mma() {
    convert_both();
    out_.ncols2 = mma_ncols2();
    if (out_.ncols2 == 0) {
      out_.aborts = true;
      return;
    }
    pick_mma_ncols1(out_.ncols2);
  }

  [[nodiscard]] std::int64_t mma_ncols2() const {
    switch (call_.head_size_k) {
      case 192:
        return group_ % 16 == 0 ? 16 : 8;
      case 320:
        return 32;
      case 576:
        return latent_ncols2();
      default:
        return plain_ncols2();
    }
  }

  // DeepSeek's compressed heads; 20 query heads are GLM 4.7 Flash.
  [[nodiscard]] std::int64_t latent_ncols2() const {
    if (group_ != 20) return group_ % 16 == 0 ? 16 : 4;
    const bool few = call_.n_q <= 4;
    if (call_.cc >= kSpark) return call_.n_q <= 8 ? 16 : 4;
    if (call_.cc >= kBlackwell) return few && call_.n_kv >= 65536 ? 16 : 4;
    if (call_.cc >= kAda) return few ? 16 : 4;
    if (call_.cc < kTuring || !few) return 4;
    return call_.n_kv <= 16384 ? 16 : 32;
  }

  // 0: there is no variant.
  [[nodiscard]] std::int64_t plain_ncols2() const {
    const bool large = call_.head_size_k > 256;
    if (strided_ && (call_.cc == kVolta || gpu_.has_wmma())) {
      for (const std::int64_t ncols2 : {8, 4, 2}) {
        if (large && ncols2 == 2 && call_.cc == kVolta) continue;
        if (group_ % ncols2 == 0) return ncols2;
      }
    }
    if (strided_ && call_.cc != kVolta) {
      if (group_ > 4) return 8;
      if (group_ > 2) return 4;
      if (group_ > 1) return 2;
    }
    return large ? 0 : 1;
  }

  void pick_mma_ncols1(std::int64_t ncols2) {
    const std::int64_t tokens = call_.n_q;
    const bool wide_sparse = has_sparse(64 / ncols2, ncols2);
    if (has_sparse(1, ncols2) && !(wide_sparse && tokens > 32 / ncols2) && sparse_pays(1, ncols2)) {
      out_.ncols1 = 1;
      out_.sparse = true;
      return;
    }
    if (ncols2 <= 8 && gpu_.has_turing_cores() && tokens <= 8 / ncols2) {
      out_.ncols1 = 8 / ncols2;
    } else if (ncols2 <= 16 && tokens <= 16 / ncols2) {
      out_.ncols1 = 16 / ncols2;
    } else if (tokens <= 32 / ncols2 || (gpu_.is_nvidia() && gpu_.compiled() == kTuring) ||
               (gpu_.is_amd() && call_.head_size_k > 256)) {
      out_.ncols1 = 32 / ncols2;
    } else {
      out_.ncols1 = 64 / ncols2;
    }
    out_.sparse = has_sparse(out_.ncols1, ncols2) && sparse_pays(out_.ncols1, ncols2);
  }

  // --- TILE --------------------------------------------------------------------------------------

  void pick_tile() {
    convert_both();
    out_.ncols2 = tile_ncols2();
    const std::int64_t columns = out_.ncols2 == 0 ? 0 : tile_columns(out_.ncols2);
    out_.aborts = columns == 0;
    if (!out_.aborts) out_.ncols1 = columns / out_.ncols2;
  }

  [[nodiscard]] std::int64_t first_divisor(std::initializer_list<std::int64_t> sizes) const {
    for (const std::int64_t size : sizes) {
      if (group_ % size == 0) return size;
    }
    return 0;
  }

  // 0: there is no variant.
  [[nodiscard]] std::int64_t tile_ncols2() const {
    const bool limited = gpu_.is_nvidia() && group_ <= 4 && call_.head_size_v <= 256;
    const std::int64_t limit = limited ? 16 : std::numeric_limits<std::int64_t>::max();
    const bool optimised = strided_ && call_.n_q <= limit;
    switch (call_.head_size_k) {
      case 320:
        if (!optimised) return 0;
        return gpu_.is_amd() ? first_divisor({32}) : first_divisor({16});
      case 576:
        return optimised ? first_divisor({16, 4}) : 0;
      case 192:
        return optimised ? first_divisor({16, 8}) : 0;
      default:
        break;
    }
    const std::int64_t grouped = optimised ? first_divisor({8, 4, 2}) : 0;
    if (grouped != 0) return grouped;
    return call_.head_size_v <= 256 ? 1 : 0;
  }

  // Of a block: tokens times heads; 0 if no line applies.
  [[nodiscard]] std::int64_t tile_columns(std::int64_t ncols2) const {
    const std::int64_t head = call_.head_size_k;
    const std::int64_t tokens = call_.n_q;
    if (gpu_.is_amd() && head <= 128 && tokens > 32 / ncols2) return 64;
    if ((head <= 256 || gpu_.is_amd()) && tokens > 16 / ncols2) return 32;
    if (ncols2 <= 16 && tokens > 8 / ncols2) return 16;
    if (ncols2 <= 8 && tokens > 4 / ncols2) return 8;
    if (ncols2 <= 4 && tokens > 2 / ncols2) return 4;
    return ncols2 <= 2 ? 2 : 0;
  }

  const CudaBuild& build_;
  const AttentionCall& call_;
  CudaGpu gpu_;
  std::int64_t group_;  // query heads of a KV head
  bool strided_;        // a mask, no ALiBi, K and V in whole strides
  bool grouped_;
  bool quantized_;
  KernelPick out_;
};

}  // namespace

std::string_view cuda_kernel_name(CudaKernel kernel) {
  switch (kernel) {
    case CudaKernel::kNone:
      return "NONE";
    case CudaKernel::kTile:
      return "TILE";
    case CudaKernel::kVec:
      return "VEC";
    case CudaKernel::kMma:
      return "MMA_F16";
  }
  return "NONE";
}

KernelPick pick_cuda_kernel(const CudaBuild& build, const AttentionCall& call) {
  return Picker(build, call).run();
}

}  // namespace kernelpath::engines::llamacpp
