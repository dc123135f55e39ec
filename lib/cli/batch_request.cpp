#include "cli/batch_request.h"

#include "base/text.h"

#include <algorithm>
#include <array>

namespace kernelpath::cli {
namespace {

// Fields of a line that are no option: the protocol's own, and labels that it ignores.
constexpr std::array<std::string_view, 9> kOtherFields = {"id", "model",  "op",   "kind", "rule",
                                                          "by", "source", "note", "notes"};

Error wrong_type(const json::Member& member) {
  return {.code = ErrorCode::kBatchRequest,
          .message = "not a text, number, true, false or a list of these",
          .where = "/" + member.key,
          .value = member.value.brief()};
}

// One value as it would stand on a command line.
Result<std::string> scalar_text(const json::Member& member, const json::Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_number()) return value.number_text();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  return fail(wrong_type(member));
}

Result<std::vector<std::string>> field_values(const json::Member& member) {
  std::vector<std::string> out;
  if (member.value.is_array()) {
    for (const json::Value& item : member.value.items()) {
      KERNELPATH_TRY(text, scalar_text(member, item));
      out.push_back(text);
    }
    return out;
  }
  if (member.value.is_object()) {
    // {"NAME": VALUE} for --env and --set.
    for (const json::Member& pair : member.value.members()) {
      KERNELPATH_TRY(text, scalar_text(member, pair.value));
      out.push_back(pair.key + "=" + text);
    }
    return out;
  }
  KERNELPATH_TRY(text, scalar_text(member, member.value));
  return std::vector<std::string>{text};
}

}  // namespace

Result<std::string> batch_engine(const json::Value& request, const Settings& settings) {
  const json::Value* engine = request.find_non_null("engine");
  if (engine != nullptr && engine->is_string()) return engine->as_string();
  if (engine != nullptr) {
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "\"engine\" is not a string",
                 .value = engine->brief()});
  }
  const std::vector<std::string>& names = settings.list(Option::kEngine);
  if (names.size() == 1 && !equal_ignoring_case(names.front(), "all")) return names.front();
  return fail({.code = ErrorCode::kBatchRequest,
               .message = "the request names no \"engine\", and --engine names not just one"});
}

Result<std::string> batch_op(const json::Value& request, const json::Value& in) {
  for (const json::Value* holder : {&request, &in}) {
    const json::Value* op = holder->find_non_null("op");
    if (op != nullptr && op->is_string()) return op->as_string();
  }
  return fail({.code = ErrorCode::kBatchRequest,
               .message = R"(the request has no "op", beside "in" or inside it)"});
}

Result<BatchSettings> batch_settings(const json::Value& request, const Settings& base) {
  BatchSettings out{.settings = base, .ignored_fields = {}};
  for (const json::Member& member : request.members()) {
    const auto* const known = std::find(kOtherFields.begin(), kOtherFields.end(), member.key);
    if (known != kOtherFields.end() || member.value.is_null()) continue;
    const OptionRow* row = find_option(member.key);
    if (row == nullptr || row->scope != Scope::kRequest) {
      out.ignored_fields.push_back(member.key);
      continue;
    }
    KERNELPATH_TRY(values, field_values(member));
    KERNELPATH_CHECK_OK(out.settings.set(row->id, values, SetBy::kBatchLine, "/" + member.key));
  }
  return out;
}

}  // namespace kernelpath::cli
