// architectures and model_type: what the file calls itself.

#include "base/text.h"
#include "config/derive.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::config {
namespace {

constexpr std::size_t kMaxArchitectures = 64;

Result<void> read_architectures(Derivation& d) {
  const json::Value* list = d.read.outer->find("architectures");
  d.out.has_architectures = list != nullptr;
  d.out.architectures_null = list != nullptr && list->is_null();
  if (list == nullptr || list->is_null()) return {};
  if (!list->is_array()) return fail(type_error(*list, "/architectures", "a list of names"));
  if (list->items().size() > kMaxArchitectures) {
    return fail(Error{.code = ErrorCode::kInputLimit,
                      .message = fmt::format("{} architectures, the limit is {}",
                                             list->items().size(), kMaxArchitectures),
                      .where = "/architectures"});
  }
  for (const json::Value& item : list->items()) {
    const std::string where = fmt::format("/architectures/{}", d.out.architectures.size());
    KERNELPATH_TRY(name, to_name(item, where));
    if (name.empty()) return fail(value_error(item, where, "an empty name is no architecture"));
    d.out.architectures.push_back(name);
  }
  if (d.out.architectures.size() > 1) {
    d.read.warn("CONFIG-ARCH-MULTIPLE", "/architectures",
                fmt::format("{} architectures: {}; an engine takes the first that it knows, "
                            "TensorRT-LLM only the first",
                            d.out.architectures.size(), join_words(d.out.architectures)));
  }
  return {};
}

// The class that a model_type stands for, in the file as a whole or in its language model.
StringField infer_architecture(const Derivation& d) {
  const json::Value* outer = d.read.outer->find_non_null("model_type");
  const Family* family = outer != nullptr ? find_family(outer->as_string()) : nullptr;
  if (family != nullptr && !family->generating_class().empty()) {
    return {std::string(family->generating_class()),
            {OriginKind::kDefault, "/model_type", family->rule()}};
  }
  if (!d.read.nested()) return {};
  const json::Value* list = d.read.text->find_non_null("architectures");
  if (list != nullptr && list->is_array() && !list->items().empty() &&
      list->items().front().is_string()) {
    return {list->items().front().as_string(),
            {OriginKind::kField, d.read.text_pointer + "/architectures/0", {}}};
  }
  if (d.read.family == nullptr || d.read.family->generating_class().empty()) return {};
  return {std::string(d.read.family->generating_class()),
          {OriginKind::kDefault, d.read.text_pointer + "/model_type", d.read.family->rule()}};
}

Result<void> replace_architectures(Derivation& d) {
  if (!d.out.architectures.empty()) return {};
  d.out.inferred_architecture = infer_architecture(d);
  if (d.out.inferred_architecture) {
    const bool inner =
        d.out.inferred_architecture.origin.where.starts_with(d.read.text_pointer + "/") &&
        d.read.nested();
    d.read.warn(
        "CONFIG-ARCH-MISSING", "/architectures",
        fmt::format("architectures is {}; {} stands for {}",
                    d.out.architectures_null  ? "null"
                    : d.out.has_architectures ? "empty"
                                              : "missing",
                    inner ? "the language model" : "model_type", *d.out.inferred_architecture));
    return {};
  }
  if (d.partial) return {};
  return fail(missing_error(
      "/architectures",
      d.out.model_type ? fmt::format("no architecture, and model_type {} stands for no known class",
                                     escape_for_terminal(*d.out.model_type))
                       : std::string("neither architectures nor model_type is given"),
      R"(name the model class: "architectures": ["LlamaForCausalLM"])"));
}

// Do a model_type and a model class belong together, directly or as language model of the whole?
bool belong_together(const Family& family, const std::vector<std::string_view>& model_types) {
  return std::any_of(model_types.begin(), model_types.end(), [&](std::string_view model_type) {
    const Family* other = find_family(model_type);
    return model_type == family.model_type() || model_type == family.text_model_type() ||
           (other != nullptr && other->text_model_type() == family.model_type());
  });
}

void check_class(Derivation& d) {
  if (d.out.architectures.empty()) return;
  const std::string& first = d.out.architectures.front();
  const auto model_types = model_types_of_class(first);
  if (model_types.empty() && d.out.needs_remote_code) {
    d.read.warn("CONFIG-REMOTE-CODE", "/auto_map",
                fmt::format("{} is no class of {}: auto_map names code that comes with the model; "
                            "nothing of it was run",
                            escape_for_terminal(first), defaults_source()));
  }
  const Family* family = d.out.model_type ? find_family(*d.out.model_type) : nullptr;
  if (family == nullptr || model_types.empty() || belong_together(*family, model_types)) return;
  d.read.warn("CONFIG-ARCH-CONFLICT", "/architectures/0",
              fmt::format("{} belongs to model_type {}, the file says {}", first,
                          model_types.front(), *d.out.model_type));
}

}  // namespace

Result<void> derive_identity(Derivation& d) {
  KERNELPATH_CHECK_OK(read_architectures(d));
  if (const json::Value* value = d.read.outer->find_non_null("model_type")) {
    KERNELPATH_TRY(name, to_name(*value, "/model_type"));
    d.out.model_type = {name, {OriginKind::kField, "/model_type", {}}};
  }
  const json::Value* auto_map = d.read.outer->find_non_null("auto_map");
  d.out.needs_remote_code =
      auto_map != nullptr && auto_map->is_object() && !auto_map->members().empty();
  KERNELPATH_CHECK_OK(replace_architectures(d));
  check_class(d);
  return {};
}

}  // namespace kernelpath::config
