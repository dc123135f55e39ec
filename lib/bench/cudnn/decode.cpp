#include "bench/cudnn/decode.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <exception>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace cudnn_frontend {
// Where the frontend looks for cuDNN's functions: it declares this and leaves it to its users.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace kernelpath::bench::cudnn_peer {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum TensorId : std::int64_t { kQ = 1, kK, kV, kO, kQueryLens, kSeqLens, kKTable, kVTable };

// Opens the library, once. "" or why it is not there.
const std::string& library_problem() {
  static const std::string kProblem = [] {
    fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
    return fe::cudnn_dlhandle != nullptr ? std::string() : std::string(dlerror());
  }();
  return kProblem;
}

// The frontend throws where the library lacks a function that it calls.
template <class Call>
std::string caught(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string text_of(const char* call, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return "";
  return std::string(call) + ": " + fe::detail::get_error_string(status);
}

std::string text_of(fe::error_t error) {
  if (error.is_good()) return "";
  return error.get_message().empty() ? "cuDNN does not say why" : error.get_message();
}

class PagedDecode : public Decode {
 public:
  explicit PagedDecode(const DecodeProblem& problem) : problem_(problem) {}

  std::string prepare() {
    cudnnHandle_t handle = nullptr;
    std::string text = text_of("cudnnCreate", fe::detail::create_handle(&handle));
    if (!text.empty()) return text;
    handle_.reset(handle);
    describe();
    text = text_of(graph_.build(handle, {fe::HeurMode_t::A}));
    if (!text.empty()) return text;
    return text_of(graph_.get_workspace_size(workspace_bytes_));
  }

  [[nodiscard]] std::int64_t workspace_bytes() const override { return workspace_bytes_; }

  std::string launch(std::int32_t* table, void* workspace, void* stream) override {
    return caught([&] {
      std::unordered_map<std::int64_t, void*> pointers = {
          {kQ, problem_.q},
          {kK, problem_.k},
          {kV, problem_.v},
          {kO, problem_.o},
          {kQueryLens, problem_.query_lens},
          {kSeqLens, problem_.seq_lens},
          {kKTable, table},
          {kVTable, table},
      };
      auto* const on = static_cast<cudaStream_t>(stream);
      std::string text = text_of("cudnnSetStream", fe::detail::set_stream(handle_.get(), on));
      if (!text.empty()) return text;
      return text_of(graph_.execute(handle_.get(), pointers, workspace));
    });
  }

 private:
  using Extents = std::vector<std::int64_t>;

  Tensor tensor(TensorId id, const Extents& extents, const Extents& strides, fe::DataType_t type) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(id)
                             .set_dim(extents)
                             .set_stride(strides)
                             .set_data_type(type));
  }

  void describe() {
    const DecodeProblem& p = problem_;
    const fe::DataType_t type = p.f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
    constexpr fe::DataType_t kInteger = fe::DataType_t::INT32;
    graph_.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(p.sm);
#if CUDNN_FRONTEND_VERSION >= 13200
    // The captured graphs end before the plan does.
    graph_.set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
#endif
    const Extents rows = {p.batch, p.num_heads, 1, p.head_dim};
    const Extents row_strides = {p.num_heads * p.head_dim, p.head_dim, p.head_dim, 1};
    const Extents pages = {p.pages, p.num_kv_heads, p.page_size, p.head_dim};
    const Extents page_strides = {p.page_stride, p.head_stride, p.token_stride, 1};
    const Extents lengths = {p.batch, 1, 1, 1};
    const Extents table = {p.batch, 1, p.table_width, 1};
    const Extents table_strides = {p.table_width, p.table_width, 1, 1};
    const Tensor q = tensor(kQ, rows, row_strides, type);
    const Tensor k = tensor(kK, pages, page_strides, type);
    const Tensor v = tensor(kV, pages, page_strides, type);
    fe::graph::SDPA_attributes options;
    options.set_name("decode")
        .set_generate_stats(false)
        .set_attn_scale(p.softmax_scale)
        .set_padding_mask(true)
        .set_seq_len_q(tensor(kQueryLens, lengths, {1, 1, 1, 1}, kInteger))
        .set_seq_len_kv(tensor(kSeqLens, lengths, {1, 1, 1, 1}, kInteger))
        .set_paged_attention_k_table(tensor(kKTable, table, table_strides, kInteger))
        .set_paged_attention_v_table(tensor(kVTable, table, table_strides, kInteger))
        .set_paged_attention_max_seq_len_kv(static_cast<int>(p.longest));
    const Tensor o = graph_.sdpa(q, k, v, options)[0];
    o->set_output(true).set_uid(kO).set_dim(rows).set_stride(row_strides).set_data_type(type);
  }

  struct Release {
    void operator()(cudnnHandle_t handle) const { fe::detail::destroy_handle(handle); }
  };

  DecodeProblem problem_;
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Release> handle_;
  fe::graph::Graph graph_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace

std::string version() {
  return std::to_string(CUDNN_FRONTEND_MAJOR_VERSION) + "." +
         std::to_string(CUDNN_FRONTEND_MINOR_VERSION) + "." +
         std::to_string(CUDNN_FRONTEND_PATCH_VERSION);
}

std::unique_ptr<Decode> make_decode(const DecodeProblem& problem, std::string& problem_text) {
  problem_text = library_problem();
  if (!problem_text.empty()) return nullptr;
  auto out = std::make_unique<PagedDecode>(problem);
  problem_text = caught([&] { return out->prepare(); });
  if (!problem_text.empty()) return nullptr;
  return out;
}

}  // namespace kernelpath::bench::cudnn_peer
