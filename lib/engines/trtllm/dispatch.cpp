#include "engines/trtllm/dispatch.h"

#include "base/text.h"
#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::array<std::string_view, 3> kOuterBackends = {"VANILLA", "TRTLLM", "FLASHINFER"};
constexpr std::array<std::string_view, 3> kDenseClasses = {"VanillaAttention", "TrtllmAttention",
                                                           "FlashInferAttention"};

// Cells of the sparse table that are not a class name.
constexpr std::string_view kRefused;
constexpr std::string_view kByImplementation = "<minimax_m3: by implementation>";
constexpr std::string_view kBySm = "<csa2: by device>";

struct SparseRow {
  std::string_view algorithm;
  std::array<std::string_view, 3> classes;  // in the order of kOuterBackends
};

constexpr std::array kSparseTable = {
    SparseRow{"rocket", {"RocketVanillaAttention", "RocketTrtllmAttention", kRefused}},
    SparseRow{"dsa", {kRefused, "DSATrtllmAttention", kRefused}},
    SparseRow{"deepseek_v4", {kRefused, "DeepseekV4TrtllmAttention", kRefused}},
    SparseRow{"skip_softmax", {kRefused, "TrtllmAttention", kRefused}},
    SparseRow{"minimax_m3", {kByImplementation, kByImplementation, kByImplementation}},
    SparseRow{"qsa", {kRefused, "QSATrtllmAttention", kRefused}},
    SparseRow{"glm_kpool", {kRefused, "GlmKpoolSparseAttention", kRefused}},
    SparseRow{"csa2", {kRefused, kBySm, kRefused}},
};

struct Csa2Row {
  int min_sm;
  int max_sm;
  std::string_view compute;
  std::string_view backend_class;
};

constexpr std::array kCsa2Table = {
    Csa2Row{90, 90, "flash_mla", "CSA2FlashMLAAttention"},
    Csa2Row{100, 109, "trtllm", "CSA2TrtllmAttention"},
    Csa2Row{120, 121, "flashinfer", "CSA2FlashInferAttention"},
};

struct CacheManagerRow {
  std::string_view algorithm;
  std::string_view v1;  // empty: refused
  std::string_view v2;
};

constexpr std::array kCacheManagers = {
    CacheManagerRow{"csa2", "CSA2CacheManager", "CSA2CacheManager"},
    CacheManagerRow{"rocket", "RocketKVCacheManager", "RocketKVCacheManager"},
    CacheManagerRow{"dsa", "DSACacheManager", "DSACacheManagerV2"},
    CacheManagerRow{"deepseek_v4", "DeepseekV4CacheManager", "DeepseekV4CacheManager"},
    CacheManagerRow{"skip_softmax", "KVCacheManager", "KVCacheManager"},
    CacheManagerRow{"minimax_m3", "MiniMaxM3KVCacheManagerV2", "MiniMaxM3KVCacheManagerV2"},
    CacheManagerRow{"qsa", "", "QSAMambaHybridCacheManagerV2"},
};

template <class Table>
auto find_algorithm(const Table& table, std::string_view algorithm) -> decltype(table.data()) {
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const auto& entry) { return entry.algorithm == algorithm; });
  return row == table.end() ? nullptr : &*row;
}

EngineError value_error(std::string code, std::string message) {
  return EngineError{.type = "ValueError",
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

void choose_minimax_m3(const SparseRequest& sparse, DispatchDecision& decision) {
  if (sparse.implementation != "msa") {
    decision.backend_class = "MiniMaxM3SparseRuntimeBackend";
  } else if (sparse.msa_available) {
    decision.backend_class = "MiniMaxM3MsaSparseAttention";
  } else {
    decision.error = value_error("MSA-UNAVAILABLE",
                                 "minimax_m3 asks for the implementation msa, whose kernels are "
                                 "not available here");
  }
}

void choose_csa2(const SparseRequest& sparse, DispatchDecision& decision) {
  const int sm = sparse.sm.value_or(0);
  const auto* row = std::find_if(kCsa2Table.begin(), kCsa2Table.end(), [&](const Csa2Row& entry) {
    return entry.min_sm <= sm && sm <= entry.max_sm;
  });
  if (row == kCsa2Table.end()) {
    decision.error =
        value_error("CSA2-UNSUPPORTED-SM",
                    fmt::format("csa2 attention has no kernels for SM{}; it has for SM90, "
                                "SM100 to SM109, SM120 and SM121",
                                sm));
    return;
  }
  decision.backend_class = row->backend_class;
  decision.csa2_compute = row->compute;
}

void choose_sparse(const SparseRequest& sparse, std::size_t backend, DispatchDecision& decision) {
  const SparseRow* row = find_algorithm(kSparseTable, sparse.algorithm);
  const std::string_view cell = row == nullptr ? kRefused : row->classes[backend];
  if (cell == kRefused) {
    decision.error =
        value_error(fmt::format("SPARSE-UNSUPPORTED-{}", kOuterBackends[backend]),
                    fmt::format("the {} backend does not serve the sparse attention algorithm '{}'",
                                kOuterBackends[backend], sparse.algorithm));
  } else if (cell == kByImplementation) {
    choose_minimax_m3(sparse, decision);
  } else if (cell == kBySm) {
    choose_csa2(sparse, decision);
  } else {
    decision.backend_class = cell;
  }
}

void fall_back(const DispatchRequest& request, bool is_flashinfer, DispatchDecision& decision) {
  if (request.sparse && request.variant == Variant::kSparseStrictFallback) {
    decision.error = value_error(
        "SPARSE-NEEDS-KNOWN-BACKEND",
        fmt::format("sparse attention '{}' cannot use '{}', which is unknown or not installed",
                    request.sparse->algorithm, request.name));
    return;
  }
  decision.fell_back = true;
  decision.flashinfer_missing = is_flashinfer;
  decision.sparse_dropped = request.sparse.has_value();
  decision.selected_backend = "TRTLLM";
  decision.backend_class = "TrtllmAttention";
}

std::string fallback_reason(const DispatchDecision& decision) {
  if (decision.flashinfer_missing) return "package flashinfer is not installed; TRTLLM is used";
  return fmt::format("'{}' is not a name that dispatch knows ({}); TRTLLM is used with a warning",
                     escape_for_terminal(decision.requested), fmt::join(kOuterBackends, ", "));
}

}  // namespace

std::span<const std::string_view> outer_backend_names() { return kOuterBackends; }

std::span<const std::string_view> sparse_algorithms() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kSparseTable.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kSparseTable[i].algorithm;
    return names;
  }();
  return kNames;
}

DispatchDecision get_attention_backend(const DispatchRequest& request) {
  DispatchDecision decision;
  decision.requested = request.name;
  if (request.sparse) decision.sparse_algorithm = request.sparse->algorithm;

  const std::string name = to_upper(request.name);
  const auto* known = std::find(kOuterBackends.begin(), kOuterBackends.end(), name);
  const bool is_flashinfer = name == "FLASHINFER";
  if (known == kOuterBackends.end() || (is_flashinfer && !request.flashinfer_available)) {
    fall_back(request, is_flashinfer, decision);
    return decision;
  }

  const auto backend = static_cast<std::size_t>(known - kOuterBackends.begin());
  if (request.sparse) {
    choose_sparse(*request.sparse, backend, decision);
  } else {
    decision.backend_class = kDenseClasses[backend];
  }
  if (!decision.error) decision.selected_backend = *known;
  return decision;
}

void append_steps(const DispatchDecision& decision, std::vector<Step>& steps) {
  if (decision.error) {
    append_error_step(*decision.error, Stage::kFallback, decision.requested, steps);
    return;
  }
  if (decision.fell_back) {
    append_step({.rule = "TRT-ATTN-FALLBACK",
                 .stage = Stage::kFallback,
                 .verdict = Verdict::kRejected,
                 .severity = Severity::kWarn,
                 .candidate = decision.requested,
                 .reason = fallback_reason(decision)},
                steps);
  }
  if (decision.sparse_dropped) {
    append_step({.rule = "TRT-ATTN-SPARSE-DROPPED",
                 .stage = Stage::kFallback,
                 .verdict = Verdict::kApplied,
                 .severity = Severity::kWarn,
                 .candidate = decision.sparse_algorithm,
                 .reason = fmt::format("the fallback ignores the sparse attention algorithm '{}': "
                                       "dense attention runs",
                                       decision.sparse_algorithm)},
                steps);
  }
  if (!decision.csa2_compute.empty()) {
    append_step({.rule = "TRT-CSA2-COMPUTE",
                 .stage = Stage::kAvailability,
                 .verdict = Verdict::kSelected,
                 .candidate = decision.csa2_compute,
                 .reason = "the device decides which kernels compute csa2 attention"},
                steps);
  }
  append_step({.rule = "TRT-ATTN-CLASS",
               .stage = Stage::kFallback,
               .verdict = Verdict::kSelected,
               .candidate = decision.selected_backend,
               .reason = decision.backend_class},
              steps);
}

CacheManagerDecision sparse_cache_manager(std::string_view algorithm, bool use_v2) {
  CacheManagerDecision decision{std::string(algorithm), {}, std::nullopt};
  const CacheManagerRow* row = find_algorithm(kCacheManagers, algorithm);
  if (row == nullptr) {
    decision.error = value_error(
        "SPARSE-UNSUPPORTED-CACHE",
        fmt::format("no KV cache manager serves the sparse attention algorithm '{}'", algorithm));
    return decision;
  }
  decision.manager_class = use_v2 ? row->v2 : row->v1;
  if (decision.manager_class.empty()) {
    decision.error = value_error("QSA-NEEDS-V2",
                                 "qsa sparse attention needs version 2 of the KV cache manager "
                                 "(kv_cache_config.use_kv_cache_manager_v2)");
  }
  return decision;
}

void append_steps(const CacheManagerDecision& decision, std::vector<Step>& steps) {
  if (decision.error) {
    append_error_step(*decision.error, Stage::kConstruction, decision.algorithm, steps);
    return;
  }
  append_step({.rule = "TRT-SPARSE-CACHE",
               .stage = Stage::kConstruction,
               .verdict = Verdict::kSelected,
               .candidate = decision.manager_class,
               .reason = fmt::format("KV cache manager of the sparse attention algorithm '{}'",
                                     decision.algorithm)},
              steps);
}

}  // namespace kernelpath::engines::trtllm
