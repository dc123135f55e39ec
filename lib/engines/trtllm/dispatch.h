#pragma once

#include "engines/resolution.h"
#include "engines/trtllm/backend_contract.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// Lowered sparse-attention parameters, as far as dispatch looks at them.
struct SparseRequest {
  std::string algorithm;  // "dsa", "rocket", …; unknown ones are refused by dispatch
  std::string implementation = "triton";  // minimax_m3 only: "triton" or "msa"
  bool msa_available = false;             // minimax_m3 with "msa": its kernels can be loaded
  std::optional<int> sm;                  // csa2 on TRTLLM only: the device
};

struct DispatchRequest {
  std::string name;  // attn_backend as the user or a default wrote it; an unchecked string
  std::optional<SparseRequest> sparse;
  bool flashinfer_available = true;
  Variant variant = Variant::kDefault;
};

struct DispatchDecision {
  std::string requested;
  std::string selected_backend;     // "VANILLA", "TRTLLM" or "FLASHINFER"; empty on error
  std::string backend_class;        // empty on error
  bool fell_back = false;           // the engine warns "Falling back to TRTLLM attention backend"
  bool flashinfer_missing = false;  // … because FLASHINFER was asked and is not installed
  bool sparse_dropped = false;      // … and nothing says that sparse attention is gone
  std::string sparse_algorithm;
  std::string csa2_compute;  // "trtllm", "flash_mla" or "flashinfer"; empty unless csa2 was chosen
  std::optional<EngineError> error;
};

// The names that dispatch knows, in its order. The name is upper-cased, never trimmed.
std::span<const std::string_view> outer_backend_names();
// The sparse algorithms that some backend serves, in the order of the table.
std::span<const std::string_view> sparse_algorithms();

// Backend name × sparse algorithm → class. csa2 on TRTLLM needs `sparse->sm`.
// Source: _torch/attention/backends/utils.py (2a3c95e3, 2ef79ea1), backends/sparse/registry.py
// (f8ad1603).
DispatchDecision get_attention_backend(const DispatchRequest& request);

void append_steps(const DispatchDecision& decision, std::vector<Step>& steps);

// The KV cache manager class of a sparse algorithm. Source: backends/sparse/registry.py, f8ad1603.
struct CacheManagerDecision {
  std::string algorithm;
  std::string manager_class;  // empty on error
  std::optional<EngineError> error;
};
CacheManagerDecision sparse_cache_manager(std::string_view algorithm, bool use_v2);

void append_steps(const CacheManagerDecision& decision, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
