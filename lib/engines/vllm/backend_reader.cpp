#include "engines/vllm/backend_rules.h"
#include "engines/vllm/kv_packing.h"
#include "engines/vllm/profile_readers.h"
#include "engines/vllm/table_fields.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::array<std::string_view, kQuestions> kFlagNames = {
    "is_mla",
    "is_sparse",
    "is_ssm",
    "supports_sink",
    "supports_mm_prefix",
    "supports_alibi_sqrt",
    "supports_per_head_quant_scales",
    "supports_sliding_window",
    "supports_rswa",
    "supports_non_causal",
    "supports_batch_invariance",
    "supports_kv_connector",
    "supports_pcp",
    "supports_dcp",
    "supports_non_causal_dcp",
    "supports_device_cpu_query_lens_mismatch",
};

// The rule of a member that names one, through `find`; null pointer where it holds a value.
template <class Rule>
Result<Rule> rule_of(const JsonFields& row, std::string_view name, Rule (*find)(std::string_view)) {
  KERNELPATH_TRY(rule_name, read_rule(row, name));
  if (rule_name.empty()) return Rule(nullptr);
  const Rule rule = find(rule_name);
  if (rule == nullptr) return fail(unknown_rule(row, name, rule_name));
  return rule;
}

Result<Flag> read_flag(const JsonFields& row, std::string_view name) {
  KERNELPATH_TRY(rule, rule_of(row, name, find_flag_rule));
  if (rule != nullptr) return Flag{.value = false, .rule = rule};
  KERNELPATH_TRY(value, row.boolean_or(name, false));
  return Flag{.value = value, .rule = nullptr};
}

Result<Names> read_names(const JsonFields& row, std::string_view name) {
  KERNELPATH_TRY(rule, rule_of(row, name, find_name_rule));
  if (rule != nullptr) return Names{.value = {}, .rule = rule};
  KERNELPATH_TRY(values, row.strings(name));
  return Names{.value = std::move(values), .rule = nullptr};
}

Result<void> read_head_sizes(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(listed, read_integers(row, "head_sizes_listed"));
  backend.head_sizes_listed = std::move(listed);
  KERNELPATH_TRY(rule, rule_of(row, "head_sizes", find_head_size_rule));
  backend.head_sizes.rule = rule;
  const json::Value* value = row.value().find_non_null("head_sizes");
  if (rule != nullptr || value == nullptr) return {};
  if (value->is_object()) {
    KERNELPATH_TRY(range, row.object("head_sizes"));
    KERNELPATH_TRY(min, range.integer("min"));
    backend.head_sizes.value.min = min;
    return {};
  }
  KERNELPATH_TRY(sizes, read_integers(row, "head_sizes"));
  backend.head_sizes.value.listed = std::move(sizes);
  return {};
}

// 64, or {"multiple_of": 16}.
Result<BlockSize> read_block_size(const JsonFields& row, const json::Value& item) {
  if (item.is_integer() && item.as_integer() > 0) return BlockSize{.size = item.as_integer()};
  const json::Value* base = item.find("multiple_of");
  if (base == nullptr || !base->is_integer() || base->as_integer() <= 0) {
    return fail(row.error("block_sizes", "expected positive sizes or {\"multiple_of\": n}"));
  }
  return BlockSize{.size = base->as_integer(), .multiple = true};
}

Result<void> read_block_sizes(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(rule, rule_of(row, "block_sizes", find_block_sizes_rule));
  backend.block_sizes.rule = rule;
  const json::Value* value = row.find("block_sizes");
  if (rule == nullptr) {
    if (!value->is_array()) return fail(row.error("block_sizes", "expected a list"));
    for (const json::Value& item : value->items()) {
      KERNELPATH_TRY(size, read_block_size(row, item));
      backend.block_sizes.value.push_back(size);
    }
  }
  KERNELPATH_TRY(test, rule_of(row, "block_size_test", find_block_size_rule));
  backend.block_size_rule = test;
  if (test != nullptr) return {};
  KERNELPATH_TRY(kind, row.string("block_size_test"));
  if (kind != "multiple" && kind != "exact") {
    return fail(row.error("block_size_test", R"(expected "multiple" or "exact")"));
  }
  backend.block_size_exact = kind == "exact";
  return {};
}

Result<void> read_preferred_block_size(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(rule, rule_of(row, "preferred_block_size", find_preferred_block_size_rule));
  backend.preferred_rule = rule;
  if (rule != nullptr || row.value().find_non_null("preferred_block_size") == nullptr) return {};
  KERNELPATH_TRY(preferred, row.object("preferred_block_size"));
  KERNELPATH_TRY(always, preferred.optional_integer("always"));
  KERNELPATH_TRY(otherwise, preferred.optional_integer("otherwise"));
  backend.preferred_always = always;
  backend.preferred_otherwise = otherwise;
  return {};
}

Result<void> read_capability(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(rule, rule_of(row, "capabilities", find_flag_rule));
  backend.capabilities.rule = rule;
  if (rule != nullptr) return {};
  KERNELPATH_TRY(ranges, read_capabilities(row, "capabilities"));
  backend.capabilities.value = std::move(ranges);
  return {};
}

Result<void> read_layouts(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(rule, rule_of(row, "layouts", find_layouts_rule));
  backend.layouts.rule = rule;
  if (rule != nullptr || row.value().find_non_null("layouts") == nullptr) return {};
  KERNELPATH_TRY(names, row.strings("layouts"));
  backend.layouts.value = std::move(names);
  return {};
}

Result<std::optional<BuilderInfo>> read_builder(const JsonFields& row) {
  if (row.value().find_non_null("builder") == nullptr) return std::optional<BuilderInfo>();
  KERNELPATH_TRY(fields, row.object("builder"));
  BuilderInfo builder;
  KERNELPATH_TRY(class_name, fields.string("class"));
  KERNELPATH_TRY(support, fields.optional_string("cudagraph_support"));
  KERNELPATH_TRY(rule, fields.optional_string("cudagraph_rule"));
  KERNELPATH_TRY(threshold, fields.optional_integer("reorder_batch_threshold"));
  KERNELPATH_TRY(query_len, fields.optional_string("query_len_support"));
  builder.class_name = std::move(class_name);
  builder.cudagraph_support = support.value_or("");
  builder.cudagraph_rule = rule.value_or("");
  builder.reorder_batch_threshold = threshold;
  builder.query_len_support = query_len.value_or("");
  return std::optional(std::move(builder));
}

std::optional<bool> optional_flag(const JsonFields& row, std::string_view name) {
  const json::Value* value = row.find(name);
  return value != nullptr && value->is_bool() ? std::optional(value->as_bool()) : std::nullopt;
}

Result<std::optional<ImplementationInfo>> read_implementation(const JsonFields& row) {
  if (row.value().find_non_null("implementation") == nullptr)
    return std::optional<ImplementationInfo>();
  KERNELPATH_TRY(fields, row.object("implementation"));
  KERNELPATH_TRY(class_name, fields.string("class"));
  return std::optional(ImplementationInfo{
      .class_name = std::move(class_name),
      .can_return_lse_for_decode = optional_flag(fields, "can_return_lse_for_decode"),
      .lse_base_on_e = optional_flag(fields, "lse_base_on_e"),
      .supports_pcp = optional_flag(fields, "supports_pcp"),
      .supports_dcp = optional_flag(fields, "supports_dcp"),
      .supports_interleave_with_speculation =
          optional_flag(fields, "supports_mtp_with_cp_non_trivial_interleave_size")});
}

Result<void> read_predicates(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(dtypes, read_names(row, "dtypes"));
  KERNELPATH_TRY(kv_dtypes, read_names(row, "kv_dtypes"));
  KERNELPATH_TRY(kv_dtypes_listed, row.strings("kv_dtypes_listed"));
  KERNELPATH_TRY(attention_types, row.strings("attention_types"));
  backend.dtypes = std::move(dtypes);
  backend.kv_dtypes = std::move(kv_dtypes);
  backend.kv_dtypes_listed = std::move(kv_dtypes_listed);
  backend.attention_types = std::move(attention_types);
  for (std::size_t i = 0; i < kQuestions; ++i) {
    KERNELPATH_TRY(flag, read_flag(row, kFlagNames[i]));
    backend.flags[i] = flag;
  }
  KERNELPATH_CHECK_OK(read_head_sizes(row, backend));
  KERNELPATH_CHECK_OK(read_block_sizes(row, backend));
  KERNELPATH_CHECK_OK(read_preferred_block_size(row, backend));
  KERNELPATH_CHECK_OK(read_capability(row, backend));
  KERNELPATH_TRY(combination, rule_of(row, "combination", find_combination_rule));
  KERNELPATH_TRY(validation, rule_of(row, "validation", find_combination_rule));
  backend.combination = combination;
  backend.validation = validation;
  return read_layouts(row, backend);
}

// Until 0.32 a page may be padded where the blocks of all layers lie outermost in memory.
Result<void> read_padding(const JsonFields& row, BackendClass& backend) {
  if (row.value().find_non_null("stride_order") == nullptr) return {};
  KERNELPATH_TRY(layouts, row.object("stride_order"));
  for (const json::Member& member : layouts.value().members()) {
    const json::Value* order = member.value.find_non_null("with_layers");
    if (order == nullptr || !order->is_array() || order->items().empty()) continue;
    const json::Value& outermost = order->items().front();
    if (outermost.is_integer() && outermost.as_integer() != 0) {
      backend.padded_layouts.push_back(member.key);
    }
  }
  return {};
}

Result<void> read_packing(const JsonFields& row, BackendClass& backend) {
  KERNELPATH_TRY(rule, rule_of(row, "packing", find_packing_rule));
  backend.packing = rule;
  return read_padding(row, backend);
}

Result<void> read_class(const JsonFields& row, Profile& profile) {
  BackendClass& backend = profile.classes.emplace_back();
  KERNELPATH_TRY(path, row.string("path"));
  KERNELPATH_TRY(reported_name, row.string("reported_name"));
  backend.class_name = path.substr(path.rfind('.') + 1);
  backend.path = std::move(path);
  backend.reported_name = std::move(reported_name);
  KERNELPATH_TRY(needs_at_import, row.strings("needs_at_import"));
  backend.needs_at_import = std::move(needs_at_import);
  KERNELPATH_CHECK_OK(read_predicates(row, backend));
  KERNELPATH_TRY(builder, read_builder(row));
  KERNELPATH_TRY(implementation, read_implementation(row));
  backend.builder = std::move(builder);
  backend.implementation = std::move(implementation);
  KERNELPATH_CHECK_OK(read_packing(row, backend));
  return read_cache_shapes(row, backend);
}

// What model code gives its own layers; the selector never asks it, so its row is short.
Result<void> read_layer_class(const JsonFields& row, Profile& profile) {
  BackendClass& backend = profile.layer_classes.emplace_back();
  KERNELPATH_TRY(path, row.string("path"));
  KERNELPATH_TRY(reported_name, row.string("reported_name"));
  KERNELPATH_TRY(ssm, read_flag(row, "is_ssm"));
  KERNELPATH_TRY(builder, read_builder(row));
  backend.class_name = path.substr(path.rfind('.') + 1);
  backend.path = std::move(path);
  backend.reported_name = std::move(reported_name);
  backend.flags[static_cast<std::size_t>(Question::kSsm)] = ssm;
  backend.builder = std::move(builder);
  KERNELPATH_CHECK_OK(read_block_sizes(row, backend));
  KERNELPATH_CHECK_OK(read_preferred_block_size(row, backend));
  KERNELPATH_CHECK_OK(read_layouts(row, backend));
  KERNELPATH_CHECK_OK(read_packing(row, backend));
  return read_cache_shapes(row, backend);
}

Result<const BackendClass*> class_at(const JsonFields& row, std::string_view name,
                                     const Profile& profile) {
  KERNELPATH_TRY(path, row.string(name));
  const auto found =
      std::find_if(profile.classes.begin(), profile.classes.end(),
                   [&, &path = path](const BackendClass& known) { return known.path == path; });
  if (found == profile.classes.end()) return fail(row.error(name, "no row of classes is it"));
  return &*found;
}

// Children may stand after their composite, so they are looked up when all classes are there.
Result<void> link_composites(const std::vector<JsonFields>& rows, Profile& profile) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].value().find_non_null("composite") == nullptr) continue;
    KERNELPATH_TRY(composite, rows[i].object("composite"));
    KERNELPATH_TRY(general, class_at(composite, "general", profile));
    KERNELPATH_TRY(causal, class_at(composite, "causal", profile));
    profile.classes[i].general = general;
    profile.classes[i].causal = causal;
  }
  return {};
}

Result<void> read_member(const JsonFields& row, Profile& profile) {
  KERNELPATH_TRY(name, row.string("name"));
  KERNELPATH_TRY(kind, row.string("kind"));
  KERNELPATH_TRY(path, row.optional_string("path"));
  BackendMember member = {
      .name = std::move(name), .mamba = kind == "mamba", .path = path.value_or("")};
  if (row.value().find_non_null("import_error") != nullptr) {
    KERNELPATH_TRY(error, row.object("import_error"));
    KERNELPATH_TRY(type, error.string("type"));
    KERNELPATH_TRY(text, error.string("text"));
    member.import_error_type = std::move(type);
    member.import_error_text = std::move(text);
  }
  if (!member.mamba && row.value().find_non_null("class") != nullptr) {
    KERNELPATH_TRY(backend, class_at(row, "class", profile));
    member.backend = backend;
  }
  profile.members.push_back(std::move(member));
  return {};
}

Result<void> read_kv_dtypes(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("kv_dtypes"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(name, row.string("name"));
    KERNELPATH_TRY(quantized, row.boolean_or("quantized", false));
    KERNELPATH_TRY(quant_mode, row.string("quant_mode"));
    KERNELPATH_TRY(stored_as, row.optional_string("stored_as"));
    KERNELPATH_TRY(bytes, row.optional_integer("bytes"));
    profile.kv_dtypes.push_back({.name = std::move(name),
                                 .quantized = quantized,
                                 .quant_mode = std::move(quant_mode),
                                 .stored_as = stored_as.value_or(""),
                                 .bytes = bytes.value_or(0)});
  }
  return {};
}

Result<void> read_layout_names(const JsonFields& table, Profile& profile) {
  if (table.find("layouts") == nullptr) return {};
  KERNELPATH_TRY(rows, table.objects("layouts"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(name, row.string("name"));
    KERNELPATH_TRY(order, read_integers(row, "stride_order"));
    profile.layouts.push_back(name);
    profile.layout_orders.push_back({.layout = std::move(name), .order = std::move(order)});
  }
  KERNELPATH_TRY(preference, table.strings("layout_preference"));
  profile.layout_preference = std::move(preference);
  return {};
}

}  // namespace

Result<void> read_backends(const JsonFields& table, Profile& profile) {
  KERNELPATH_CHECK_OK(read_kv_dtypes(table, profile));
  KERNELPATH_CHECK_OK(read_layout_names(table, profile));
  KERNELPATH_TRY(classes, table.objects("classes"));
  for (const JsonFields& row : classes) KERNELPATH_CHECK_OK(read_class(row, profile));
  KERNELPATH_CHECK_OK(link_composites(classes, profile));
  KERNELPATH_TRY(layer_classes, table.objects("layer_classes"));
  for (const JsonFields& row : layer_classes) KERNELPATH_CHECK_OK(read_layer_class(row, profile));
  KERNELPATH_TRY(members, table.objects("members"));
  for (const JsonFields& row : members) KERNELPATH_CHECK_OK(read_member(row, profile));
  return {};
}

}  // namespace kernelpath::engines::vllm
