#include "engines/answer_fields.h"
#include "engines/llamacpp/answer.h"
#include "engines/llamacpp/cuda_kernels.h"

#include <fmt/format.h>

namespace kernelpath::engines::llamacpp {
namespace {

const checkpoint::GgmlType* read_type(AnswerFields& fields, std::string_view name) {
  const checkpoint::GgmlType* type = checkpoint::find_ggml_type(fields.required_text(name));
  if (type == nullptr) fields.refuse(name, "ggml has no type of this name");
  return type;
}

CudaBuild read_build(AnswerFields& fields) {
  const std::string backend = fields.text("backend", "cuda");
  if (backend != "cuda" && backend != "hip") fields.refuse("backend", "expected cuda or hip");
  const std::string pairs = fields.text("fa_quants", "default");
  if (pairs != "default" && pairs != "all") fields.refuse("fa_quants", "expected default or all");
  CudaBuild build{.architectures = {}, .all_kv_pairs = pairs == "all"};
  // HIP has no list.
  if (backend == "cuda") build.architectures = fields.integer_list("compiled_archs");
  return build;
}

AttentionCall read_call(AnswerFields& fields) {
  AttentionCall call;
  call.cc = fields.required_integer("cc");
  call.head_size_k = fields.required_integer("head_size_k");
  call.head_size_v = fields.integer("head_size_v", call.head_size_k);
  call.type_k = read_type(fields, "type_k");
  call.type_v = read_type(fields, "type_v");
  call.n_head = fields.sized_integer("n_head", 1, 1);
  call.n_head_kv = fields.sized_integer("n_head_kv", call.n_head, 1);
  call.n_q = fields.sized_integer("n_q", 1, 1);
  call.n_kv = fields.sized_integer("n_kv", 256, 1);
  call.n_stream = fields.sized_integer("n_stream", 1, 1);
  call.mask = fields.boolean("mask", true);
  call.max_bias = fields.number("max_bias", 0);
  call.logit_softcap = fields.number("logit_softcap", 0);
  call.n_kv_max = fields.sized_integer("n_kv_max", 0, 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // so that no product can wrap
  if (call.n_kv > kMost) fields.refuse("n_kv", "must be at most 2^31");
  if (call.n_kv_max > kMost) fields.refuse("n_kv_max", "must be at most 2^31");
  if (call.n_q > kMost) fields.refuse("n_q", "must be at most 2^31");
  if (call.n_head % call.n_head_kv != 0) fields.refuse("n_head", "must be a multiple of n_head_kv");
  return call;
}

json::Value pick_value(const AttentionCall& call, const KernelPick& pick) {
  AnswerObject out;
  out.add_text("kernel", cuda_kernel_name(pick.kernel));
  if (pick.kernel == CudaKernel::kNone) return out.take();
  if (pick.aborts) return out.add("aborts", true).take();
  out.add("dkq", call.head_size_k)
      .add("dv", call.head_size_v)
      .add("ncols1", pick.ncols1)
      .add("ncols2", pick.ncols2)
      .add("sparse", pick.sparse);
  if (pick.kernel == CudaKernel::kVec) {
    out.add_text("vec_type_k", pick.vec_type_k->name)
        .add_text("vec_type_v", pick.vec_type_v->name)
        .add("vec_fallback_f16", pick.vec_fallback_f16);
  }
  return out.add("k_converted_to_f16", pick.k_converted)
      .add("v_converted_to_f16", pick.v_converted)
      .take();
}

}  // namespace

Result<json::Value> answer_fattn(const json::Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  const CudaBuild build = read_build(fields);
  const AttentionCall call = read_call(fields);
  KERNELPATH_CHECK_OK(fields.status());
  return pick_value(call, pick_cuda_kernel(build, call));
}

}  // namespace kernelpath::engines::llamacpp
