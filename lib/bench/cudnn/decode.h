#pragma once

#include <cstdint>
#include <memory>
#include <string>

// cuDNN's paged attention as a peer of our own: the headers of its frontend, compiled in where they
// were found (KERNELPATH_CUDNN), over libcudnn.so.9, which is opened when it is asked for. Nothing
// of cuDNN is seen outside this folder.
namespace kernelpath::bench::cudnn_peer {

// "1.32.0": of the frontend's headers that were compiled in.
std::string version();

// One query token a request over a paged cache. Pointers are the device's, and not to const where
// cuDNN only reads since it takes no others. Strides count elements.
struct DecodeProblem {
  std::int32_t sm = 0;  // of the device: 90
  bool f16 = false;     // queries, cache and outputs; else bf16
  std::int64_t batch = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t page_size = 0;
  std::int64_t pages = 0;        // that k has, and v
  std::int64_t table_width = 0;  // pages of the longest request
  std::int64_t longest = 0;      // tokens of the longest request
  std::int64_t page_stride = 0;  // of k and v alike
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float softmax_scale = 1.0F;
  void* q = nullptr;  // [batch, num_heads, head_dim]
  void* k = nullptr;
  void* v = nullptr;
  void* o = nullptr;                   // [batch, num_heads, head_dim]
  std::int32_t* query_lens = nullptr;  // [batch]: 1 each
  std::int32_t* seq_lens = nullptr;    // [batch]
};

// Plans once, then launches without allocation. Graphs that its launches were captured in end
// before it does.
class Decode {
 public:
  virtual ~Decode() = default;
  // Device memory that launch() wants.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
  // Reads the pages `table` [batch, table_width] on a cudaStream_t. "" or what went wrong.
  virtual std::string launch(std::int32_t* table, void* workspace, void* stream) = 0;
};

// Null with `problem_text` set where cuDNN is not there or refuses the problem.
std::unique_ptr<Decode> make_decode(const DecodeProblem& problem, std::string& problem_text);

}  // namespace kernelpath::bench::cudnn_peer
