// Reading the extracted tables.
#include "base/text.h"
#include "engines/json_fields.h"
#include "engines/llamacpp/profile.h"
#include "engines/table_header.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;

template <class T>
struct Named {
  std::string_view name;
  T value;
};

constexpr auto kForms = std::to_array<Named<ReadForm>>({
    {"scalar", ReadForm::kScalar},
    {"scalar_or_array", ReadForm::kScalarOrArray},
    {"array", ReadForm::kArray},
    {"list", ReadForm::kList},
    {"count", ReadForm::kCount},
    {"window_pattern", ReadForm::kWindowPattern},
    {"set", ReadForm::kSet},
    {"refuse", ReadForm::kRefuse},
});

constexpr auto kTypes = std::to_array<Named<GgufType>>({
    {"u32", GgufType::kUint32},
    {"u64", GgufType::kUint64},
    {"f32", GgufType::kFloat32},
    {"bool", GgufType::kBool},
    {"str", GgufType::kString},
});

constexpr auto kWindowTypes = std::to_array<Named<WindowType>>({
    {"none", WindowType::kNone},
    {"standard", WindowType::kStandard},
    {"chunked", WindowType::kChunked},
    {"symmetric", WindowType::kSymmetric},
});

template <class Rows>
Result<decltype(Rows::value_type::value)> named(const JsonFields& row, std::string_view member,
                                                const Rows& rows) {
  KERNELPATH_TRY(name, row.string(member));
  const auto* const found =
      std::ranges::find(rows, std::string_view(name), &Rows::value_type::name);
  if (found == rows.end()) return fail(row.error(member, "this build does not know " + name));
  return found->value;
}

Result<JsonFields> open_table(const json::Document& document, std::string_view name) {
  KERNELPATH_TRY(table, JsonFields::of(document.root,
                                       {.code = ErrorCode::kInputSchema, .file = document.file}));
  KERNELPATH_CHECK_OK(check_table_header(table, "llamacpp", name));
  return table;
}

Result<ArchitectureRow> read_architecture(const JsonFields& row) {
  ArchitectureRow out;
  KERNELPATH_TRY(name, row.string("name"));
  KERNELPATH_TRY(constant, row.string("constant"));
  KERNELPATH_TRY(class_name, row.optional_string("class"));
  out.name = name;
  out.constant = constant;
  out.class_name = class_name.value_or("");
  const auto flags = std::to_array<std::pair<std::string_view, bool ArchitectureRow::*>>(
      {{"recurrent", &ArchitectureRow::recurrent},
       {"hybrid", &ArchitectureRow::hybrid},
       {"diffusion", &ArchitectureRow::diffusion},
       {"state_rollback", &ArchitectureRow::state_rollback},
       {"no_tensor_split", &ArchitectureRow::no_tensor_split},
       {"no_memory", &ArchitectureRow::no_memory},
       {"multi_rope", &ArchitectureRow::multi_rope}});
  for (const auto& [flag, member] : flags) {
    KERNELPATH_TRY(set, row.boolean_or(flag, false));
    out.*member = set;
  }
  return out;
}

Result<std::vector<ConverterRow>> read_converter(const JsonFields& table, std::string_view name) {
  std::vector<ConverterRow> out;
  KERNELPATH_TRY(rows, table.objects(name));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(architecture, row.string("architecture"));
    KERNELPATH_TRY(gguf, row.string("gguf"));
    KERNELPATH_TRY(converter, row.string("converter"));
    KERNELPATH_TRY(module, row.string("module"));
    out.push_back({architecture, gguf, converter, module});
  }
  return out;
}

Result<void> read_registry(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(rows, table.objects("architectures"));
  for (const JsonFields& row : rows) {
    KERNELPATH_TRY(architecture, read_architecture(row));
    profile.architectures.push_back(std::move(architecture));
  }
  KERNELPATH_TRY(cache_types, table.strings("cache_types"));
  profile.cache_types = std::move(cache_types);
  KERNELPATH_TRY(converter, read_converter(table, "converter"));
  profile.converter = std::move(converter);
  KERNELPATH_TRY(projector, read_converter(table, "projector_converter"));
  profile.projector_converter = std::move(projector);
  KERNELPATH_TRY(listed, table.strings("listed_without_class"));
  profile.listed_without_class = std::move(listed);
  return {};
}

Result<void> read_guards(const JsonFields& row, ReadRow& out) {
  KERNELPATH_TRY(texts, row.optional_strings("when"));
  for (const std::string& text : texts) {
    auto guard = parse_guard(text);
    if (!guard) return fail(row.error("when", guard.error().message + ": " + text));
    out.when.push_back(std::move(*guard));
  }
  return {};
}

Result<void> read_constant(const JsonFields& row, ReadRow& out) {
  if (out.into == "swa_type") {
    KERNELPATH_TRY(type, named(row, "value", kWindowTypes));
    out.window_type = type;
    return {};
  }
  const json::Value* value = row.find("value");
  if (value == nullptr || !value->is_number() || !out.field.known()) {
    return fail(row.error("value", "expected a number for a member that this build knows"));
  }
  out.value = value->as_double();
  return {};
}

Result<void> read_pattern(const JsonFields& row, ReadRow& out) {
  KERNELPATH_TRY(period, row.integer("period"));
  KERNELPATH_TRY(dense_first, row.boolean_or("dense_first", false));
  KERNELPATH_TRY(key, row.optional_string("key"));
  out.period = period;
  out.dense_first = dense_first;
  out.key = key.value_or("");
  return {};
}

Result<void> read_message(const JsonFields& row, ReadRow& out) {
  KERNELPATH_TRY(message, row.string("message"));
  out.message = message;
  return {};
}

Result<void> read_key(const JsonFields& row, ReadRow& out) {
  KERNELPATH_TRY(key, row.string("key"));
  KERNELPATH_TRY(type, named(row, "type", kTypes));
  KERNELPATH_TRY(required, row.boolean_or("required", true));
  KERNELPATH_TRY(length, row.optional_string("length"));
  out.key = key;
  out.type = type;
  out.required = required;
  out.length = length.value_or("");
  return {};
}

Result<ReadRow> read_row(const JsonFields& row) {
  ReadRow out;
  KERNELPATH_TRY(form, named(row, "form", kForms));
  KERNELPATH_TRY(into, row.string("into"));
  out.form = form;
  out.into = into;
  out.field = find_hparam(into);
  KERNELPATH_CHECK_OK(read_guards(row, out));
  switch (form) {
    case ReadForm::kSet:
      KERNELPATH_CHECK_OK(read_constant(row, out));
      break;
    case ReadForm::kWindowPattern:
      KERNELPATH_CHECK_OK(read_pattern(row, out));
      break;
    case ReadForm::kRefuse:
      KERNELPATH_CHECK_OK(read_message(row, out));
      break;
    default:
      KERNELPATH_CHECK_OK(read_key(row, out));
      break;
  }
  return out;
}

Result<void> read_classes(const JsonFields& table, Profile& profile) {
  KERNELPATH_TRY(classes, table.objects("classes"));
  for (const JsonFields& entry : classes) {
    ClassRow out;
    KERNELPATH_TRY(name, entry.string("class"));
    KERNELPATH_TRY(file, entry.string("file"));
    KERNELPATH_TRY(like, entry.optional_string("like"));
    out.name = name;
    out.file = file;
    out.like = like.value_or("");
    if (entry.find("rows") != nullptr) {
      KERNELPATH_TRY(rows, entry.objects("rows"));
      for (const JsonFields& row : rows) {
        KERNELPATH_TRY(read, read_row(row));
        out.rows.push_back(std::move(read));
      }
    }
    profile.classes.push_back(std::move(out));
  }
  return {};
}

Result<void> check_classes(const Profile& profile, const std::string& file) {
  for (const ArchitectureRow& row : profile.architectures) {
    if (row.class_name.empty() || profile.find_reads(row.class_name) != nullptr) continue;
    return fail(Error{.code = ErrorCode::kInputSchema,
                      .message = "no reads are listed for the class " + row.class_name,
                      .file = file});
  }
  if (profile.find_reads(kBaseClass) != nullptr) return {};
  return fail(Error{.code = ErrorCode::kInputSchema,
                    .message = fmt::format("no reads are listed for {}", kBaseClass),
                    .file = file});
}

}  // namespace

Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder) {
  Profile profile;
  KERNELPATH_TRY(registry,
                 json::parse_object(std::move(texts.registry), folder + "/registry.json"));
  KERNELPATH_TRY(table, open_table(registry, "registry"));
  KERNELPATH_TRY(version, table.string("version"));
  profile.version = version;
  KERNELPATH_TRY(sources, read_table_sources(table));
  profile.sources = std::move(sources);
  KERNELPATH_CHECK_OK(read_registry(table, profile));

  KERNELPATH_TRY(hparams, json::parse_object(std::move(texts.hparams), folder + "/hparams.json"));
  KERNELPATH_TRY(reads, open_table(hparams, "hparams"));
  KERNELPATH_TRY(reads_version, reads.string("version"));
  if (reads_version != version) {
    return fail(reads.error("version", "the folder's other table is of " + version));
  }
  KERNELPATH_CHECK_OK(read_classes(reads, profile));
  KERNELPATH_CHECK_OK(check_classes(profile, hparams.file));
  return profile;
}

}  // namespace kernelpath::engines::llamacpp
