#include "engines/vllm/mla_prefill.h"

#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

using hardware::Platform;

constexpr std::string_view kMissing = "required dependencies not available";
constexpr std::string_view kTokenspeedMissing =
    "tokenspeed_mla package is not installed. Install it with: `uv pip install tokenspeed-mla`";

// What the prefill selector is asked.
struct PrefillQuestion {
  std::string dtype;
  MlaDims dims;
};

PrefillQuestion question_of(const SelectorContext& context, const std::string& dtype) {
  if (!context.settings.model) return {.dtype = "float32", .dims = {}};
  const ModelFacts& model = *context.settings.model;
  return {.dtype = dtype,
          .dims = {.nope = model.qk_nope_head_dim.value_or(0),
                   .rope = model.qk_rope_head_dim.value_or(0),
                   .value = model.v_head_dim.value_or(0)}};
}

std::string dims_text(const MlaDims& dims) {
  return fmt::format("(qk_nope_head_dim={}, qk_rope_head_dim={}, v_head_dim={})", dims.nope,
                     dims.rope, dims.value);
}

bool takes_device(const Machine& machine, const PrefillBackend& backend) {
  if (backend.mi300_only) {
    return machine.platform == Platform::kRocm && (machine.cdna == 3 || machine.cdna == 4);
  }
  return std::any_of(
      backend.capabilities.begin(), backend.capabilities.end(),
      [&](const CapabilityRange& range) { return range.contains(machine.capability); });
}

bool installed(const Machine& machine, PrefillNeeds needs) {
  const Packages& packages = machine.packages;
  switch (needs) {
    case PrefillNeeds::kNothing:
      return true;
    case PrefillNeeds::kFlashAttnFunction:
      // CUDA's release brings the function; on AMD AITER's or another flash-attn has to be there.
      return machine.platform == Platform::kCuda ||
             (machine.platform == Platform::kRocm && packages.aiter);
    case PrefillNeeds::kFlashInfer:
      return packages.flashinfer;
    case PrefillNeeds::kTokenspeed:
      return packages.tokenspeed_mla;
    case PrefillNeeds::kAiter:
      return machine.platform == Platform::kRocm && packages.aiter && machine.aiter_enabled;
    case PrefillNeeds::kZentorch:
      return packages.zentorch;
  }
  return false;
}

std::string dims_reason(const PrefillBackend& backend, const MlaDims& dims) {
  std::string reason =
      fmt::format("Model does not have supported MLA dimensions (got {}", dims_text(dims));
  if (backend.names_dims) {
    std::vector<std::string> supported;
    for (const MlaDims& known : *backend.dims) supported.push_back(dims_text(known));
    reason += fmt::format("; supported: {}", fmt::join(supported, ", "));
  }
  return reason + ")";
}

std::vector<std::string> reasons_against(const SelectorContext& context,
                                         const PrefillBackend& backend,
                                         const PrefillQuestion& question) {
  std::vector<std::string> reasons;
  const hardware::Capability capability = context.machine.capability;
  if (!takes_device(context.machine, backend)) {
    reasons.push_back(
        fmt::format("compute capability {}.{} not supported", capability.major, capability.minor));
  }
  const auto& dtypes = backend.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), question.dtype) == dtypes.end()) {
    reasons.push_back(fmt::format("dtype torch.{} not supported", question.dtype));
  }
  if (!installed(context.machine, backend.needs)) {
    reasons.emplace_back(backend.names_package ? kTokenspeedMissing : kMissing);
  }
  if (backend.dims &&
      std::find(backend.dims->begin(), backend.dims->end(), question.dims) == backend.dims->end()) {
    reasons.push_back(dims_reason(backend, question.dims));
  }
  if (backend.refuses_batch_invariance && context.settings.batch_invariant) {
    reasons.emplace_back("batch invariance not supported");
  }
  return reasons;
}

// Source: platforms/rocm.py and, until 0.32, selector.py.
const std::vector<std::string>& rocm_order() {
  static const std::vector<std::string> kOrder = {"ROCM_AITER_FA", "FLASH_ATTN"};
  return kOrder;
}

const std::vector<std::string>& order_of(const SelectorContext& context, const MlaDims& dims) {
  if (context.machine.platform == Platform::kRocm) return rocm_order();
  const auto& entries = context.profile.prefill_orders;
  const int major = context.machine.capability.major;
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const PrefillEntry& row) {
    return std::find(row.majors.begin(), row.majors.end(), major) != row.majors.end();
  });
  const auto& rows = entry == entries.end() ? entries.front().rows : entry->rows;
  // The row for all other dimensions comes last.
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const PrefillOrder& order) {
    return !order.dims || *order.dims == dims;
  });
  return row == rows.end() ? rows.back().order : row->order;
}

void choose(const PrefillBackend& backend, Selection& selection) {
  selection.member = backend.name;
  selection.backend = backend.reported_name;
  selection.class_name = backend.class_name;
  selection.path = backend.path;
}

Selection failed(Selection selection, SelectionFault fault, std::string stage, std::string type,
                 std::string text) {
  selection.error = SelectionError{
      .fault = fault, .stage = std::move(stage), .type = std::move(type), .text = std::move(text)};
  return selection;
}

Selection select_requested(const SelectorContext& context, const std::string& name,
                           const PrefillQuestion& question) {
  Selection selection;
  selection.automatic = false;
  const PrefillBackend* backend = context.profile.find_prefill_backend(name);
  if (backend == nullptr) {
    return failed(std::move(selection), SelectionFault::kUnknownName, "config", "ValidationError",
                  fmt::format("1 validation error for AttentionConfig\nmla_prefill_backend\n  "
                              "Value error, Unknown MLA prefill backend: '{}'. Valid options "
                              "are: <enum names>",
                              name));
  }
  if (backend->path.empty()) {
    return failed(std::move(selection), SelectionFault::kNotRegistered, "select", "ValueError",
                  fmt::format("MLA prefill backend {0} must be registered before use. Use "
                              "register_mla_prefill_backend(MLAPrefillBackendEnum.{0}, "
                              "'your.module.YourClass')",
                              name));
  }
  std::vector<std::string> reasons = reasons_against(context, *backend, question);
  if (reasons.empty()) {
    choose(*backend, selection);
    return selection;
  }
  selection.rejected.push_back({.backend = name, .reasons = std::move(reasons)});
  return failed(std::move(selection), SelectionFault::kInvalid, "select", "ValueError",
                "Selected MLA prefill backend <name> is not valid for this configuration. Reason: "
                "<reasons>");
}

Selection select_automatically(const SelectorContext& context, const PrefillQuestion& question) {
  Selection selection;
  for (const std::string& name : order_of(context, question.dims)) {
    const PrefillBackend* backend = context.profile.find_prefill_backend(name);
    if (backend == nullptr) continue;
    std::vector<std::string> reasons = reasons_against(context, *backend, question);
    if (reasons.empty()) {
      if (selection.member.empty()) choose(*backend, selection);
      selection.valid.push_back(name);
    } else {
      selection.rejected.push_back({.backend = name, .reasons = std::move(reasons)});
    }
  }
  if (!selection.member.empty()) return selection;
  return failed(std::move(selection), SelectionFault::kNoneValid, "select", "ValueError",
                "No valid MLA prefill backend found with <config>. Reasons: <rejected>.");
}

// A CPU has one for AMD's Zen and one for all others; nothing else is asked.
Selection select_on_cpu(const SelectorContext& context) {
  Selection selection;
  const bool zen = context.machine.packages.zentorch;
  const PrefillBackend* backend = context.profile.find_prefill_backend(zen ? "ZEN_CPU" : "CPU");
  // Versions without CPU backends do not ask for the device either.
  if (backend == nullptr) backend = context.profile.find_prefill_backend("FLASH_ATTN");
  if (backend != nullptr) choose(*backend, selection);
  return selection;
}

}  // namespace

Selection select_mla_prefill(const SelectorContext& context,
                             const std::optional<std::string>& requested,
                             const std::string& dtype) {
  if (context.machine.platform == Platform::kCpu) return select_on_cpu(context);
  const PrefillQuestion question = question_of(context, dtype);
  if (requested) return select_requested(context, to_upper(*requested), question);
  return select_automatically(context, question);
}

}  // namespace kernelpath::engines::vllm
