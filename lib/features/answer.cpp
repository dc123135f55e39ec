#include "features/answer.h"

#include "base/text.h"
#include "features/argument_table.h"
#include "features/feature_matrix.h"
#include "features/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kernelpath::features {
namespace {

// What the document says of MLA models, whatever their row: feature, devices, KV types (empty:
// any).
struct MlaFootnote {
  std::string_view mark;
  std::array<int, 3> sms;
  bool limits_kv_dtype;
};
constexpr std::array<MlaFootnote, 2> kMlaFootnotes = {
    {{"1", {100, 103, 103}, false}, {"2", {90, 100, 103}, true}}};

Unexpected bad_request(std::string message, std::string where = {}) {
  return fail(
      {.code = ErrorCode::kBatchRequest, .message = std::move(message), .where = std::move(where)});
}

using Members = std::vector<json::Member>;

json::Value document(std::string_view verdict, const std::string& error_type, Members effects) {
  return json::Value::object(
      {{.key = "verdict", .value = json::Value::string(std::string(verdict))},
       {.key = "error_type",
        .value = error_type.empty() ? json::Value::null() : json::Value::string(error_type)},
       {.key = "effects", .value = json::Value::object(std::move(effects))}});
}

std::string_view verdict_of(Level level) {
  if (level == Level::kError) return "error";
  return level == Level::kWarn ? "downgrade" : "ok";
}

// A later change of the same thing replaces the earlier one.
void add_effect(Members& effects, const std::string& name, const json::Value& value) {
  const auto found = std::find_if(effects.begin(), effects.end(),
                                  [&name](const json::Member& m) { return m.key == name; });
  if (found == effects.end()) {
    effects.push_back({.key = name, .value = value});
  } else {
    found->value = value;
  }
}

Answer answer_arguments(const RuleTable& table, const json::Value& in) {
  Context context(table);
  ArgumentFaults faults;
  for (const Mistyped& wrong : context.state(in)) {
    const FieldInfo& field = table.schema.field(wrong.field);
    faults.mistyped.push_back(
        fmt::format("{}: {} is no {}", field.name, wrong.found, field_type_name(field.type)));
  }
  state_faults(context, faults);
  // Only what the engine itself decides while it constructs its arguments: the rest is not its
  // answer.
  const Outcome outcome = validate(context, {.beyond_arguments = false});
  Members effects;
  // An engine that raises changes nothing.
  if (outcome.worst != Level::kError) {
    for (const Finding& finding : outcome.findings) {
      for (const auto& [name, value] : finding.effects) add_effect(effects, name, value);
    }
  }
  const std::string type = outcome.worst == Level::kError ? outcome.deciding->error_type : "";
  return {.out = document(verdict_of(outcome.worst), type, std::move(effects)),
          .rule = outcome.deciding != nullptr ? outcome.deciding->id : "OK"};
}

Result<std::string> text_field(const json::Value& in, std::string_view key) {
  const json::Value* const found = in.find(key);
  if (found != nullptr && found->is_string()) return found->as_string();
  return bad_request(fmt::format("'{}' must be a string", key), fmt::format("/{}", key));
}

bool flag(const json::Value& in, std::string_view key) {
  const json::Value* const found = in.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// The engine compares the backend's name as written.
Result<Answer> kv_estimation_runs(const json::Value& in) {
  KERNELPATH_TRY(backend, text_field(in, "attn_backend"));
  const bool runs = backend != "VANILLA" && !flag(in, "skip_env") && !flag(in, "cp_config");
  return Answer{
      .out = document("ok", "", {{.key = "estimation_runs", .value = json::Value::boolean(runs)}}),
      .rule = "KV-ESTIMATION"};
}

Answer documented(std::string_view status, std::string rule) {
  return {
      .out = document(status == "no" ? "error" : "ok", "",
                      {{.key = "documented", .value = json::Value::string(std::string(status))}}),
      .rule = std::move(rule)};
}

Result<std::size_t> feature_named(const FeatureMatrix& matrix, const json::Value& name) {
  if (!name.is_string()) return bad_request("a feature is a string", "/features");
  const auto found = matrix.find_feature(name.as_string());
  if (found) return *found;
  std::vector<std::string_view> known(matrix.features.begin(), matrix.features.end());
  Error error{.code = ErrorCode::kBatchRequest,
              .message = fmt::format("no feature is called '{}'", name.as_string()),
              .where = "/features"};
  error.near_matches = near_matches(name.as_string(), known);
  return fail(std::move(error));
}

Result<Answer> feature_pair(const FeatureMatrix& matrix, const json::Value& in) {
  const json::Value* const names = in.find("features");
  if (names == nullptr || !names->is_array() || names->items().size() != 2) {
    return bad_request("'features' must name two features", "/features");
  }
  KERNELPATH_TRY(a, feature_named(matrix, names->items()[0]));
  KERNELPATH_TRY(b, feature_named(matrix, names->items()[1]));
  const PairCell* const cell = matrix.cell(a, b);
  if (cell == nullptr) return bad_request("the two features are the same", "/features");
  return documented(pair_status_name(cell->status), FeatureMatrix::pair_id(a, b));
}

bool footnote_holds(const MlaFootnote& note, const json::Value& in) {
  const json::Value* const sm = in.find_non_null("sm");
  if (sm == nullptr || !sm->is_integer()) return true;  // nothing speaks against it
  const bool device =
      std::find(note.sms.begin(), note.sms.end(), sm->as_integer()) != note.sms.end();
  const json::Value* const kv = in.find_non_null("kv_dtype");
  if (!device || !note.limits_kv_dtype || kv == nullptr || !kv->is_string()) return device;
  const std::string dtype = to_lower(kv->as_string());
  return dtype == "bf16" || dtype == "bfloat16" || dtype == "auto" || dtype == "fp8";
}

Answer model_cell(const std::string& cell, const json::Value& in) {
  if (cell == "N") return documented("no", "KM-CELL");
  if (cell == "U") return documented("untested", "KM-CELL");
  if (cell == "NA") return documented("not_applicable", "KM-CELL");
  const auto* const note =
      std::find_if(kMlaFootnotes.begin(), kMlaFootnotes.end(),
                   [&cell](const MlaFootnote& n) { return cell == "Y" + std::string(n.mark); });
  if (note == kMlaFootnotes.end()) return documented("yes", "KM-CELL");
  return {.out = document(footnote_holds(*note, in) ? "ok" : "error", "", {}),
          .rule = "KM-MLA-FOOTNOTE"};
}

Result<Answer> model_feature(const FeatureMatrix& matrix, const json::Value& in) {
  KERNELPATH_TRY(architecture, text_field(in, "arch"));
  KERNELPATH_TRY(feature, text_field(in, "feature"));
  const auto row = std::find_if(
      matrix.models.begin(), matrix.models.end(),
      [&](const FeatureMatrix::ModelRow& model) { return model.architecture == architecture; });
  if (row == matrix.models.end()) {
    return bad_request(fmt::format("no row for '{}'", architecture), "/arch");
  }
  const auto column =
      std::find(matrix.model_features.begin(), matrix.model_features.end(), feature);
  if (column == matrix.model_features.end()) {
    return bad_request(fmt::format("no column for '{}'", feature), "/feature");
  }
  const auto index = static_cast<std::size_t>(column - matrix.model_features.begin());
  return model_cell(row->cells[index], in);
}

}  // namespace

Result<Answer> answer_validate(std::string_view engine, const json::Value& in) {
  const RuleTable* const table = find_rule_table(engine);
  if (table == nullptr) return bad_request(fmt::format("engine '{}' has no rules", engine));
  if (!in.is_object()) return bad_request("'in' must be an object", "/in");
  const json::Value* const op = in.find("op");
  if (op == nullptr) return answer_arguments(*table, in);
  if (!op->is_string()) return bad_request("'op' must be a string", "/op");
  if (op->as_string() == "kv_estimation_runs") return kv_estimation_runs(in);
  const FeatureMatrix* const matrix = find_feature_matrix(engine);
  if (matrix != nullptr && op->as_string() == "feature_pair") return feature_pair(*matrix, in);
  if (matrix != nullptr && op->as_string() == "model_feature") return model_feature(*matrix, in);
  return bad_request(fmt::format("no op is called '{}'", op->as_string()), "/op");
}

}  // namespace kernelpath::features
