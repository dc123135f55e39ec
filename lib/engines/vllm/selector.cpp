#include "engines/vllm/selector.h"

#include "base/text.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kBlockSizeReason = "block_size not supported";

// The names of MiniMax M3's sparse decode kernels; they leave the choice of the rest open.
constexpr std::array<std::string_view, 2> kMsaAliases = {"CUTLASS_MSA", "TRITON_MSA"};

// What stands behind a member's name: a class, or why there is none.
struct Candidate {
  std::string name;
  std::string path = {};
  const BackendClass* row = nullptr;
  std::string class_name = {};
  std::string reported_name = {};
  bool registered = true;  // false: a placeholder without a class
  std::string import_error_type = {};
  std::string import_error_text = {};
  [[nodiscard]] bool importable() const { return import_error_type.empty(); }
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

const RegisteredBackend* find_registered(const SelectorRequest& request, std::string_view name) {
  const auto found = std::find_if(request.registered.rbegin(), request.registered.rend(),
                                  [&](const RegisteredBackend& row) { return row.name == name; });
  return found == request.registered.rend() ? nullptr : &*found;
}

Candidate plugin_candidate(const SelectorContext& context, const RegisteredBackend& plugin) {
  Candidate candidate{.name = plugin.name, .path = plugin.path};
  const auto& classes = context.profile.classes;
  const auto known = std::find_if(classes.begin(), classes.end(),
                                  [&](const BackendClass& row) { return row.path == plugin.path; });
  const BackendMember* base = context.profile.find_member(plugin.inherits);
  if (known != classes.end()) {
    candidate.row = &*known;
    candidate.reported_name = known->reported_name;
  } else {
    candidate.row = base != nullptr && base->backend != nullptr ? base->backend : &base_backend();
    candidate.reported_name = plugin.name;
  }
  candidate.class_name = last_part(plugin.path);
  return candidate;
}

// A package that the module of a class imports and that is not there; empty if none is missing.
std::string_view missing_import(const SelectorContext& context, const BackendClass& row) {
  for (const std::string& package : row.needs_at_import) {
    const PackageInfo* info = find_import(package);
    if (info != nullptr && !(context.machine.packages.*(info->member))) return package;
  }
  return {};
}

// The candidate behind a name of the enum; nothing for an unknown name.
std::optional<Candidate> find_candidate(const SelectorContext& context,
                                        const SelectorRequest& request, std::string_view name) {
  const BackendMember* member = context.profile.find_member(name);
  const RegisteredBackend* plugin = find_registered(request, name);
  const bool may_be_new = context.profile.at_least(0, 33);
  if (plugin != nullptr && (member != nullptr || may_be_new)) {
    return plugin_candidate(context, *plugin);
  }
  if (member == nullptr) return std::nullopt;
  Candidate candidate{.name = member->name,
                      .path = member->path,
                      .row = member->backend,
                      .registered = !member->path.empty(),
                      .import_error_type = member->import_error_type,
                      .import_error_text = member->import_error_text};
  if (member->backend == nullptr) return candidate;
  candidate.class_name = member->backend->class_name;
  candidate.reported_name = member->backend->reported_name;
  const std::string_view missing = missing_import(context, *member->backend);
  if (!missing.empty()) {
    candidate.import_error_type = "ModuleNotFoundError";
    candidate.import_error_text = fmt::format("No module named '{}'", missing);
  }
  return candidate;
}

Selection failed(Selection selection, SelectionFault fault, std::string type, std::string text,
                 std::string stage = "select") {
  selection.error = SelectionError{
      .fault = fault, .stage = std::move(stage), .type = std::move(type), .text = std::move(text)};
  return selection;
}

Selection unknown_name(Selection selection, const std::string& name) {
  return failed(std::move(selection), SelectionFault::kUnknownName, "ValidationError",
                fmt::format("1 validation error for AttentionConfig\nbackend\n  Value error, "
                            "Unknown attention backend: '{}'. Valid options are: <enum names>",
                            name),
                "config");
}

Selection not_registered(Selection selection, const Candidate& candidate) {
  selection.rejected.push_back({.backend = candidate.name, .reasons = {"ValueError"}});
  return failed(std::move(selection), SelectionFault::kNotRegistered, "ValueError",
                fmt::format("Backend {0} must be registered before use. Use "
                            "register_backend(Backend.{0}, 'your.module.YourClass')",
                            candidate.name));
}

Selection engine_fault(Selection selection, const Verdict& verdict) {
  return failed(std::move(selection), SelectionFault::kEngineFault, verdict.fault_type,
                verdict.fault_text);
}

// Everything that speaks against a candidate.
Verdict examine(const SelectorContext& context, const Candidate& candidate,
                const SelectorConfig& config) {
  if (candidate.importable()) return validate(context, *candidate.row, config);
  Verdict verdict;
  const bool says_which =
      context.profile.at_least(0, 33) && context.machine.platform == hardware::Platform::kCuda;
  verdict.reasons.push_back(
      says_which ? fmt::format("{}: {}", candidate.import_error_type, candidate.import_error_text)
                 : std::string("ImportError"));
  return verdict;
}

void choose(const SelectorContext& context, const Candidate& candidate, Selection& selection) {
  selection.member = candidate.name;
  selection.backend = candidate.reported_name;
  selection.class_name = candidate.class_name;
  selection.path = candidate.path;
  selection.row = candidate.row;
  selection.layouts = layouts_of(context, *candidate.row);
}

// --- AMD: what mixes with TurboQuant's and UltraQuant's layers (since 0.33) ---------------------

bool shares_layout(const SelectorContext& context, const BackendClass& row,
                   std::string_view other) {
  const BackendMember* member = context.profile.find_member(other);
  if (member == nullptr || member->backend == nullptr) return true;
  const auto own = layouts_of(context, row);
  const auto theirs = layouts_of(context, *member->backend);
  if (!own || !theirs) return true;
  return std::any_of(own->begin(), own->end(), [&](const std::string& layout) {
    return std::find(theirs->begin(), theirs->end(), layout) != theirs->end();
  });
}

// A run with a packed cache keeps some layers at the model's dtype; all must share a layout.
void require_shared_layout(const SelectorContext& context, const Candidate& candidate,
                           bool explicit_choice, Verdict& verdict) {
  const bool applies = context.machine.platform == hardware::Platform::kRocm &&
                       context.profile.at_least(0, 33) && verdict.admitted();
  if (!applies) return;
  const std::string_view run = context.settings.run_kv_dtype;
  if (run.starts_with("turboquant_") && !shares_layout(context, *candidate.row, "TURBOQUANT")) {
    verdict.reasons.emplace_back("no KV cache layout in common with TURBOQUANT");
  } else if (explicit_choice && run == "ultraquant_4bit" &&
             !shares_layout(context, *candidate.row, "ULTRAQUANT")) {
    verdict.reasons.emplace_back("no KV cache layout in common with ULTRAQUANT");
  }
}

// Whether an explicit choice that cannot serve this layer of a packed run is dropped for it.
bool tolerates_mismatch(const SelectorContext& context, const SelectorConfig& config,
                        const Verdict& verdict) {
  if (context.machine.platform != hardware::Platform::kRocm || !context.profile.at_least(0, 33) ||
      verdict.reasons.size() != 1) {
    return false;
  }
  const std::string_view run = context.settings.run_kv_dtype;
  const bool packed = run.starts_with("turboquant_") || run == "ultraquant_4bit" ||
                      config.kv_dtype.starts_with("turboquant");
  const std::string& reason = verdict.reasons.front();
  return packed && (reason == "kv_cache_dtype not supported" ||
                    reason.starts_with("no KV cache layout in common with"));
}

// --- the two ways -------------------------------------------------------------------------------

Selection select_automatically(const SelectorContext& context, const SelectorRequest& request,
                               Selection selection) {
  for (const std::string& name : backend_priorities(context, request)) {
    const std::optional<Candidate> candidate = find_candidate(context, request, name);
    if (!candidate) continue;
    if (!candidate->registered) return not_registered(std::move(selection), *candidate);
    Verdict verdict = examine(context, *candidate, request.config);
    require_shared_layout(context, *candidate, false, verdict);
    if (!verdict.fault_type.empty()) return engine_fault(std::move(selection), verdict);
    if (verdict.admitted()) {
      if (selection.member.empty()) choose(context, *candidate, selection);
      selection.valid.push_back(name);
      continue;
    }
    const bool only_block_size = context.machine.platform == hardware::Platform::kCuda &&
                                 verdict.reasons.size() == 1 &&
                                 verdict.reasons.front() == kBlockSizeReason;
    if (only_block_size && selection.member.empty()) selection.precluded.push_back(name);
    selection.rejected.push_back({.backend = name,
                                  .reasons = std::move(verdict.reasons),
                                  .not_importable = !candidate->importable()});
  }
  if (!selection.member.empty()) return selection;
  selection.precluded.clear();
  return failed(std::move(selection), SelectionFault::kNoneValid, "ValueError",
                fmt::format("No valid attention backend found for {} with <config>. Reasons: "
                            "<rejected>.",
                            hardware::platform_name(context.machine.platform)));
}

Selection select_requested(const SelectorContext& context, const SelectorRequest& request,
                           const Candidate& candidate) {
  Selection selection;
  selection.automatic = false;
  if (!candidate.registered) return not_registered(std::move(selection), candidate);
  Verdict verdict = examine(context, candidate, request.config);
  require_shared_layout(context, candidate, true, verdict);
  if (!verdict.fault_type.empty()) return engine_fault(std::move(selection), verdict);
  if (verdict.admitted()) {
    choose(context, candidate, selection);
    return selection;
  }
  if (tolerates_mismatch(context, request.config, verdict)) {
    return select_automatically(context, request, {});
  }
  selection.rejected.push_back({.backend = candidate.name,
                                .reasons = std::move(verdict.reasons),
                                .not_importable = !candidate.importable()});
  return failed(std::move(selection), SelectionFault::kInvalid, "ValueError",
                "Selected backend <enum> is not valid for this configuration. Reason: <reasons>");
}

// --- CPU ----------------------------------------------------------------------------------------

Selection choose_on_cpu(const SelectorContext& context, const SelectorRequest& request,
                        std::string_view name) {
  Selection selection;
  const std::optional<Candidate> candidate = find_candidate(context, request, name);
  if (candidate && candidate->row != nullptr) choose(context, *candidate, selection);
  return selection;
}

// A CPU has one backend for each kind of layer; other requests are dropped with a log line.
Selection select_on_cpu(const SelectorContext& context, const SelectorRequest& request,
                        std::string_view wanted) {
  const SelectorConfig& config = request.config;
  const bool later = context.profile.at_least(0, 33);
  const auto refuse = [](std::string type, std::string text) {
    return failed({}, SelectionFault::kPlatform, std::move(type), std::move(text));
  };
  if (config.use_mla && !later)
    return refuse("NotImplementedError", "MLA is not supported on CPU.");
  if (config.use_sparse) {
    return refuse("NotImplementedError", "Sparse Attention is not supported on CPU.");
  }
  if (!later) return choose_on_cpu(context, request, "CPU_ATTN");
  const bool plain_cache =
      config.kv_dtype == "auto" || config.kv_dtype == "bfloat16" || config.kv_dtype == "float16";
  if (!config.use_mla) {
    Selection selection = choose_on_cpu(context, request, "CPU_ATTN");
    if (selection.row == nullptr || takes_kv_dtype(context, *selection.row, config.kv_dtype)) {
      return selection;
    }
    return refuse("ValueError",
                  fmt::format("--kv-cache-dtype {} is not supported by the CPU attention backend "
                              "on this host.",
                              config.kv_dtype));
  }
  if (!plain_cache) {
    return refuse("ValueError",
                  fmt::format("--kv-cache-dtype {} is not supported by MLA attention on CPU.",
                              config.kv_dtype));
  }
  const bool amx = context.machine.packages.amx && wanted != "CPU_MLA";
  return choose_on_cpu(context, request, amx ? "AMX_MLA" : "CPU_MLA");
}

}  // namespace

Selection select_backend(const SelectorContext& context, const SelectorRequest& request) {
  std::string wanted;
  if (request.backend && to_lower(*request.backend) != "auto") {
    wanted = to_upper(*request.backend);
    const auto candidate = find_candidate(context, request, wanted);
    if (!candidate) {
      Selection selection;
      selection.automatic = false;
      return unknown_name(std::move(selection), wanted);
    }
    const bool alias = context.profile.at_least(0, 33) &&
                       std::ranges::find(kMsaAliases, wanted) != kMsaAliases.end();
    if (alias) wanted.clear();
  }
  if (context.machine.platform == hardware::Platform::kCpu) {
    return select_on_cpu(context, request, wanted);
  }
  if (wanted.empty()) return select_automatically(context, request, {});
  return select_requested(context, request, *find_candidate(context, request, wanted));
}

const BackendClass& base_backend() {
  static const BackendClass kBase = [] {
    BackendClass base;
    base.class_name = "AttentionBackend";
    base.dtypes.value = {"float16", "bfloat16"};
    base.kv_dtypes.value = {"auto", "float16", "bfloat16"};
    base.kv_dtypes_listed = base.kv_dtypes.value;
    base.block_sizes.value = {{.size = 1, .multiple = true}};
    base.capabilities.value = {CapabilityRange{}};
    base.attention_types = {"decoder"};
    base.flags[static_cast<std::size_t>(Question::kKvConnector)].value = true;
    base.flags[static_cast<std::size_t>(Question::kQueryLengthsMismatch)].value = true;
    return base;
  }();
  return kBase;
}

}  // namespace kernelpath::engines::vllm
