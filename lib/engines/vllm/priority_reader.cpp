#include "engines/vllm/profile_readers.h"
#include "engines/vllm/table_fields.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

struct FactName {
  std::string_view name;
  Fact fact;
};

constexpr std::array kFactNames = {
    FactName{"quantized_kv", Fact::kQuantizedKv},
    FactName{"few_heads", Fact::kFewHeads},
    FactName{"non_causal", Fact::kNonCausal},
    FactName{"head_size_512", Fact::kHeadSize512},
    FactName{"mm_prefix", Fact::kMmPrefix},
    FactName{"use_sparse", Fact::kSparse},
    FactName{"use_mla", Fact::kMla},
    FactName{"kv_connector", Fact::kKvConnector},
    FactName{"aiter_mla", Fact::kAiterMla},
    FactName{"aiter_mha", Fact::kAiterMha},
    FactName{"aiter_found", Fact::kAiterFound},
    FactName{"aiter_rdna", Fact::kAiterRdna},
};

// The rules of prefill backends that say what must be installed.
struct PrefillRule {
  std::string_view name;
  PrefillNeeds needs;
};

constexpr std::array kPrefillRules = {
    PrefillRule{"FlashAttnPrefillBackend.is_available", PrefillNeeds::kFlashAttnFunction},
    PrefillRule{"FlashInferPrefillBackend.is_available", PrefillNeeds::kFlashInfer},
    PrefillRule{"TrtllmRaggedPrefillBackend.is_available", PrefillNeeds::kFlashInfer},
    PrefillRule{"TokenspeedMLAPrefillBackend.is_available", PrefillNeeds::kTokenspeed},
    PrefillRule{"AiterFlashAttnPrefillBackend.is_available", PrefillNeeds::kAiter},
    PrefillRule{"ZenCPUSDPAMLAPrefillBackend.is_available", PrefillNeeds::kZentorch},
};

constexpr std::string_view kAiterCapability =
    "AiterFlashAttnPrefillBackend.supports_compute_capability";
constexpr std::string_view kTokenspeedValidation =
    "TokenspeedMLAPrefillBackend.validate_configuration";
constexpr std::string_view kAiterValidation = "AiterFlashAttnPrefillBackend.validate_configuration";

Result<PriorityRow> read_row(const JsonFields& row) {
  PriorityRow out;
  KERNELPATH_TRY(when, row.object("when"));
  for (const json::Member& member : when.value().members()) {
    const auto* found =
        std::find_if(kFactNames.begin(), kFactNames.end(),
                     [&](const FactName& known) { return known.name == member.key; });
    if (found == kFactNames.end() || !member.value.is_bool()) {
      return fail(when.error(member.key, "not a fact that this build knows, or no boolean"));
    }
    out.when.emplace_back(found->fact, member.value.as_bool());
  }
  KERNELPATH_TRY(order, row.strings("order"));
  out.order = std::move(order);
  return out;
}

Result<std::vector<PriorityRow>> read_rows(const JsonFields& table, std::string_view name) {
  std::vector<PriorityRow> out;
  KERNELPATH_TRY(rows, table.objects(name));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(read, read_row(row));
    out.push_back(std::move(read));
  }
  return out;
}

Result<std::vector<PriorityEntry>> read_entries(const JsonFields& table, std::string_view name) {
  std::vector<PriorityEntry> out;
  KERNELPATH_TRY(entries, table.objects(name));
  for (const JsonFields& entry : entries) {
    KERNELPATH_TRY(majors, read_integers(entry, "majors"));
    KERNELPATH_TRY(rows, read_rows(entry, "rows"));
    out.push_back({.majors = std::move(majors), .rows = std::move(rows)});
  }
  return out;
}

std::optional<MlaDims> dims_of(const json::Value& value) {
  if (!value.is_array() || value.items().size() != 3) return std::nullopt;
  for (const json::Value& item : value.items()) {
    if (!item.is_integer()) return std::nullopt;
  }
  return MlaDims{.nope = value.items()[0].as_integer(),
                 .rope = value.items()[1].as_integer(),
                 .value = value.items()[2].as_integer()};
}

Result<void> read_dims(const JsonFields& row, PrefillBackend& backend) {
  const json::Value* value = row.value().find_non_null("dims");
  if (value == nullptr) return {};
  if (!value->is_array()) return fail(row.error("dims", "expected a list of three sizes each"));
  auto& dims = backend.dims.emplace();
  for (const json::Value& item : value->items()) {
    const std::optional<MlaDims> read = dims_of(item);
    if (!read) return fail(row.error("dims", "expected a list of three sizes each"));
    dims.push_back(*read);
  }
  return {};
}

Result<void> read_availability(const JsonFields& row, PrefillBackend& backend) {
  KERNELPATH_TRY(rule, read_rule(row, "available"));
  if (rule.empty()) return {};
  const auto* found =
      std::find_if(kPrefillRules.begin(), kPrefillRules.end(),
                   [&, &rule = rule](const PrefillRule& known) { return known.name == rule; });
  if (found == kPrefillRules.end()) return fail(unknown_rule(row, "available", rule));
  backend.needs = found->needs;
  return {};
}

Result<void> read_prefill_capability(const JsonFields& row, PrefillBackend& backend) {
  KERNELPATH_TRY(rule, read_rule(row, "capabilities"));
  if (rule.empty()) {
    KERNELPATH_TRY(ranges, read_capabilities(row, "capabilities"));
    backend.capabilities = std::move(ranges);
    return {};
  }
  if (rule != kAiterCapability) return fail(unknown_rule(row, "capabilities", rule));
  backend.mi300_only = true;
  return {};
}

Result<void> read_prefill_validation(const JsonFields& row, PrefillBackend& backend) {
  if (row.value().find_non_null("validation") == nullptr) return {};
  KERNELPATH_TRY(rule, read_rule(row, "validation"));
  backend.names_package = rule == kTokenspeedValidation;
  backend.refuses_batch_invariance = rule == kAiterValidation;
  if (!backend.names_package && !backend.refuses_batch_invariance) {
    return fail(unknown_rule(row, "validation", rule));
  }
  return {};
}

Result<PrefillBackend> read_prefill_backend(const JsonFields& row) {
  PrefillBackend backend;
  KERNELPATH_TRY(name, row.string("name"));
  KERNELPATH_TRY(path, row.optional_string("path"));
  backend.name = std::move(name);
  backend.path = path.value_or("");
  if (backend.path.empty()) return backend;
  KERNELPATH_TRY(class_path, row.string("class"));
  KERNELPATH_TRY(reported_name, row.string("reported_name"));
  KERNELPATH_TRY(dtypes, row.strings("dtypes"));
  KERNELPATH_TRY(names_dims, row.boolean_or("dims_listed", false));
  backend.class_name = class_path.substr(class_path.rfind('.') + 1);
  backend.reported_name = std::move(reported_name);
  backend.dtypes = std::move(dtypes);
  backend.names_dims = names_dims;
  KERNELPATH_CHECK_OK(read_dims(row, backend));
  KERNELPATH_CHECK_OK(read_availability(row, backend));
  KERNELPATH_CHECK_OK(read_prefill_capability(row, backend));
  KERNELPATH_CHECK_OK(read_prefill_validation(row, backend));
  return backend;
}

Result<PrefillEntry> read_prefill_entry(const JsonFields& entry) {
  PrefillEntry out;
  KERNELPATH_TRY(majors, read_integers(entry, "majors"));
  out.majors = std::move(majors);
  KERNELPATH_TRY(rows, entry.objects("rows"));
  for (const JsonFields& row : rows) {
    PrefillOrder order;
    const json::Value* dims = row.value().find_non_null("dims");
    if (dims != nullptr) order.dims = dims_of(*dims);
    if (dims != nullptr && !order.dims) {
      return fail(row.error("dims", "expected three sizes or null"));
    }
    KERNELPATH_TRY(names, row.strings("order"));
    order.order = std::move(names);
    out.rows.push_back(std::move(order));
  }
  return out;
}

}  // namespace

Result<void> read_priorities(const JsonFields& table, Profile& profile) {
  Priorities& priorities = profile.priorities;
  KERNELPATH_TRY(cuda, table.object("cuda"));
  KERNELPATH_TRY(few_heads, cuda.integer("few_heads_at_most"));
  KERNELPATH_TRY(plain, read_entries(cuda, "plain"));
  KERNELPATH_TRY(mla, read_entries(cuda, "mla"));
  KERNELPATH_TRY(vision, read_entries(table, "vision"));
  KERNELPATH_TRY(rocm, read_rows(table, "rocm"));
  priorities.few_heads_at_most = few_heads;
  priorities.plain = std::move(plain);
  priorities.mla = std::move(mla);
  priorities.vision = std::move(vision);
  priorities.rocm = std::move(rocm);
  return {};
}

Result<void> read_mla_prefill(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(members, table.objects("members"));
  for (const JsonFields& row : members) {
    KERNELPATH_TRY(backend, read_prefill_backend(row));
    profile.prefill_backends.push_back(std::move(backend));
  }
  KERNELPATH_TRY(orders, table.objects("orders"));
  for (const JsonFields& entry : orders) {
    KERNELPATH_TRY(read, read_prefill_entry(entry));
    profile.prefill_orders.push_back(std::move(read));
  }
  return {};
}

}  // namespace kernelpath::engines::vllm
