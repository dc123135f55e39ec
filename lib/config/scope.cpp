// Which part of the file is the language model, and whose defaults fill its gaps.

#include "config/derive.h"

#include <fmt/format.h>

#include <array>

namespace kernelpath::config {
namespace {

// Members that hold a language model, in the order in which they are tried.
constexpr std::array<std::string_view, 6> kNests = {
    "text_config", "llm_config", "language_config", "thinker_config", "language_model", "decoder"};
// These two are names for other things as well, so only an object that describes layers counts.
bool ambiguous(std::string_view nest) { return nest == "language_model" || nest == "decoder"; }

bool describes_layers(const json::Value& object) {
  return object.find("hidden_size") != nullptr || object.find("num_hidden_layers") != nullptr;
}

struct Nest {
  const json::Value* value = nullptr;
  std::string pointer;
};

// The nest under `outer`; a null or empty one counts as absent.
Result<Nest> find_nest(const json::Value& outer) {
  for (const std::string_view name : kNests) {
    const json::Value* value = outer.find_non_null(name);
    if (value == nullptr) continue;
    std::string pointer = fmt::format("/{}", name);
    if (!value->is_object()) {
      if (ambiguous(name)) continue;
      return fail(type_error(*value, pointer, "an object"));
    }
    if (value->members().empty() || (ambiguous(name) && !describes_layers(*value))) continue;
    if (name != "thinker_config") return Nest{value, std::move(pointer)};
    const json::Value* inner = value->find_non_null("text_config");
    pointer += "/text_config";
    if (inner != nullptr && !inner->is_object()) {
      return fail(type_error(*inner, pointer, "an object"));
    }
    if (inner != nullptr && !inner->members().empty()) return Nest{inner, std::move(pointer)};
    return Nest{value, "/thinker_config"};
  }
  return Nest{};
}

std::string_view model_type_of(const json::Value& object) {
  const json::Value* value = object.find_non_null("model_type");
  return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                : std::string_view();
}

// The family of the first architecture, for model_types that the table does not know.
const Family* family_of_class(const json::Value& object) {
  const json::Value* list = object.find_non_null("architectures");
  if (list == nullptr || !list->is_array() || list->items().empty()) return nullptr;
  const json::Value& first = list->items().front();
  if (!first.is_string()) return nullptr;
  const auto model_types = model_types_of_class(first.as_string());
  return model_types.empty() ? nullptr : find_family(model_types.front());
}

// A multimodal family's language model; any other family itself.
const Family* language_model(const Family* family) {
  if (family == nullptr || family->text_model_type().empty()) return family;
  return find_family(family->text_model_type());
}

const Family* choose_family(const FieldReader& read) {
  if (read.nested()) {
    if (const Family* family = find_family(model_type_of(*read.text))) {
      return language_model(family);
    }
  }
  if (const Family* family = find_family(model_type_of(*read.outer))) return language_model(family);
  if (const Family* family = family_of_class(*read.text)) return language_model(family);
  return language_model(family_of_class(*read.outer));
}

}  // namespace

Result<void> derive_scope(Derivation& d) {
  KERNELPATH_TRY(nest, find_nest(*d.read.outer));
  d.read.text = nest.value != nullptr ? nest.value : d.read.outer;
  d.read.text_pointer = nest.pointer;
  d.read.family = d.partial ? nullptr : choose_family(d.read);
  d.out.text_pointer = nest.pointer;
  d.out.text_model_type = d.read.family != nullptr ? d.read.family->model_type()
                                                   : std::string(model_type_of(*d.read.text));
  return {};
}

Result<void> check_nest(Derivation& d) {
  if (!d.read.nested()) return {};
  for (const std::string_view name :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"}) {
    const json::Value* outer = d.read.outer->find_non_null(name);
    const json::Value* inner = d.read.text->find_non_null(name);
    if (outer == nullptr || inner == nullptr || *outer == *inner) continue;
    d.read.warn("CONFIG-TEXT-CONFLICT", fmt::format("{}/{}", d.read.text_pointer, name),
                fmt::format("{0} is {1} at the top of the file and {2} in {3}; {3} counts", name,
                            outer->brief(), inner->brief(), d.read.text_pointer));
  }
  return {};
}

}  // namespace kernelpath::config
