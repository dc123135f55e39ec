#include "engines/trtllm/answer_resolve.h"

#include "base/text.h"
#include "engines/json_fields.h"
#include "engines/trtllm/class_resolution.h"
#include "engines/trtllm/layer_table.h"
#include "engines/trtllm/model_registry.h"
#include "engines/trtllm/resolve_request.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using json::Member;
using json::Value;

Value text_or_null(const std::optional<std::string>& text) {
  return text ? Value::string(*text) : Value::null();
}

// What every answer has, and the fields that only some have.
struct Answer {
  std::optional<std::string> class_name = {};
  std::optional<std::string> module = {};
  std::optional<ClassError> error = {};
  std::vector<Member> more = {};
};

Value error_value(const std::optional<ClassError>& error) {
  if (!error) return Value::null();
  std::string code = error->code;
  if (error->subject) code += ":" + *error->subject;
  std::vector<Member> members = {{"type", Value::string(error->type)},
                                 {"code", Value::string(std::move(code))}};
  if (error->missing_module) members.push_back({"name", Value::string(*error->missing_module)});
  return Value::object(std::move(members));
}

Value steps_value(std::span<const registry::Event> events) {
  std::vector<Value> steps;
  for (const registry::Event& event : events) {
    std::vector<Member> members = {{"rule", Value::string(std::string(event.rule))}};
    for (const Member& field : event.fields.members()) members.push_back(field);
    steps.push_back(Value::object(std::move(members)));
  }
  return Value::array(std::move(steps));
}

Value answer_value(Answer answer, std::span<const registry::Event> events) {
  std::vector<Member> members = {{"class", text_or_null(answer.class_name)},
                                 {"module", text_or_null(answer.module)},
                                 {"error", error_value(answer.error)}};
  for (Member& member : answer.more) members.push_back(std::move(member));
  members.push_back({"steps", steps_value(events)});
  return Value::object(std::move(members));
}

Answer class_answer(const ClassAnswer& found) {
  Answer answer = {.error = found.error};
  if (!found.provider) return answer;
  answer.module = found.provider->module;
  if (found.provider->name != registry::kUnestablished) answer.class_name = found.provider->name;
  if (found.is_vision_encoder) {
    answer.more.push_back({"vlm_base_model", text_or_null(found.provider->base_class)});
  }
  return answer;
}

ClassAnswer class_answer_of(const registry::Found& found, bool is_vision_encoder) {
  if (found.failure) return {.error = class_error(*found.failure)};
  return {.provider = found.provider,
          .is_vision_encoder = is_vision_encoder && found.provider.has_value()};
}

Answer attribute_answer(const registry::Attribute& attribute) {
  if (attribute.failure) return {.error = class_error(*attribute.failure)};
  return {.class_name = attribute.class_name, .module = attribute.module};
}

// --- the questions that need a registry
// -----------------------------------------------------------

// What one question runs on: the registry with the question's own modules.
struct Session {
  Session(const Profile& tables, ModuleOverrides overrides)
      : profile(tables), loader(tables, std::move(overrides)), registry(tables.index, loader) {}

  const Profile& profile;
  ProfileLoader loader;
  registry::Registry registry;
};

Result<Answer> answer_class(const JsonFields& in, std::string_view op, Session& session) {
  KERNELPATH_TRY(input, read_class_input(in));
  ClassResolver resolver(session.profile, session.registry);
  if (op == "get_model_architecture") return class_answer(resolver.get_model_architecture(input));
  KERNELPATH_TRY(options, read_class_options(in));
  return class_answer(op == "from_config" ? resolver.from_config(input, options)
                                          : resolver.resolve_class(input, options));
}

Result<Answer> answer_vision(const JsonFields& in, std::string_view /*op*/, Session& session) {
  KERNELPATH_TRY(architecture, in.string("arch"));
  return class_answer(class_answer_of(session.registry.vision_encoder(architecture), true));
}

Result<Answer> answer_builder(const JsonFields& in, std::string_view /*op*/, Session& session) {
  KERNELPATH_TRY(mode, in.string("mode"));
  KERNELPATH_TRY(asked, in.optional_string("ask_modes_of"));
  Answer answer = class_answer(class_answer_of(session.registry.draft_builder(mode), false));
  if (!asked) return answer;
  const std::size_t dot = asked->rfind('.');
  if (dot == std::string::npos) {
    return fail(in.error("ask_modes_of", "expected a module, a dot and a builder"));
  }
  const registry::Provider builder = {.module = asked->substr(0, dot),
                                      .name = asked->substr(dot + 1)};
  std::vector<Value> modes;
  for (std::string& name : session.registry.modes_of(builder)) {
    modes.push_back(Value::string(std::move(name)));
  }
  answer.more.push_back({"modes_of_builder", Value::array(std::move(modes))});
  answer.more.push_back({"in_mapping", Value::boolean(session.registry.holds_a_mode(builder))});
  return answer;
}

Result<Answer> answer_attribute(const JsonFields& in, std::string_view /*op*/, Session& session) {
  KERNELPATH_TRY(name, in.string("name"));
  return attribute_answer(session.registry.attribute(name));
}

Result<Answer> answer_export(const JsonFields& /*in*/, std::string_view /*op*/, Session& session) {
  std::vector<Member> rows;
  for (auto& [architecture, module] : session.registry.export_external()) {
    rows.push_back({architecture, Value::string(module)});
  }
  return Answer{.more = {{"exported", Value::object(std::move(rows))}}};
}

// One entry of events_before. What it answers is of no interest, but what it raises ends the
// question, as it would end the engine's process.
std::optional<ClassError> run_event(const ResolveEvent& event, registry::Registry& registry) {
  std::optional<registry::Failure> failure;
  switch (event.op) {
    case ResolveEvent::Op::kImport:
      failure = registry.import(event.name);
      break;
    case ResolveEvent::Op::kDeclare:
      registry.declare(event.declaration);
      break;
    case ResolveEvent::Op::kLookUp:
      failure = registry.model_class(event.name).failure;
      break;
    case ResolveEvent::Op::kVision:
      failure = registry.vision_encoder(event.name).failure;
      break;
    case ResolveEvent::Op::kBuilder:
      failure = registry.draft_builder(event.name).failure;
      break;
    case ResolveEvent::Op::kAttribute:
      failure = registry.attribute(event.name).failure;
      break;
  }
  if (!failure) return std::nullopt;
  return class_error(*failure);
}

using Handler = Result<Answer> (*)(const JsonFields&, std::string_view, Session&);

Result<Value> answer_in_session(const JsonFields& in, std::string_view op, Handler handler,
                                const Profile& profile) {
  KERNELPATH_TRY(overrides, read_modules(in));
  KERNELPATH_TRY(events, read_events(in));
  Session session(profile, std::move(overrides));
  for (const ResolveEvent& event : events) {
    if (auto error = run_event(event, session.registry)) {
      return answer_value({.error = std::move(error)}, session.registry.events());
    }
  }
  KERNELPATH_TRY(answer, handler(in, op, session));
  return answer_value(std::move(answer), session.registry.events());
}

// --- the questions without one

Result<Value> answer_layer_keys(const JsonFields& in) {
  KERNELPATH_TRY(indices, read_layer_indices(in));
  LayerTable table;
  std::vector<Value> keys;
  keys.reserve(indices.size());
  for (const std::string& index : indices) keys.push_back(Value::string(table.add(index)));
  return answer_value({.more = {{"keys", Value::array(std::move(keys))}}}, {});
}

Result<Value> answer_is_built_in(const JsonFields& in, const Profile& profile) {
  KERNELPATH_TRY(module, in.string("module"));
  return answer_value({.more = {{"builtin", Value::boolean(profile.index.is_built_in(module))}}},
                      {});
}

struct Question {
  std::string_view op;
  Handler handler;                          // null pointer: needs no registry
  std::array<std::string_view, 2> members;  // of its own
};
constexpr auto kQuestions = std::to_array<Question>({
    {"resolve_class", answer_class, {{"config", "options"}}},
    {"from_config", answer_class, {{"config", "options"}}},
    {"get_model_architecture", answer_class, {{"config"}}},
    {"vision", answer_vision, {{"arch"}}},
    {"builder", answer_builder, {{"mode", "ask_modes_of"}}},
    {"getattr", answer_attribute, {{"name"}}},
    {"export", answer_export, {{}}},
    {"attn_layer_keys", nullptr, {{"layer_idx_sequence"}}},
    {"is_builtin_zoo_module", nullptr, {{"module"}}},
});

const Question* find_question(std::string_view op) {
  const auto* const found = std::ranges::find(kQuestions, op, &Question::op);
  return found == kQuestions.end() ? nullptr : found;
}

Error unknown_op(const JsonFields& in, std::string_view op) {
  Error error = in.error("op", "no question about model classes");
  std::vector<std::string_view> known;
  known.reserve(kQuestions.size());
  for (const Question& question : kQuestions) known.push_back(question.op);
  error.near_matches = near_matches(op, known);
  error.hint = "known: " + join_words(std::vector<std::string>(known.begin(), known.end()));
  return error;
}

}  // namespace

bool is_resolve_op(std::string_view op) { return find_question(op) != nullptr; }

Result<Value> answer_resolve(const Value& in, const Profile& profile) {
  KERNELPATH_TRY(fields, JsonFields::of(in, {.code = ErrorCode::kBatchRequest}));
  KERNELPATH_TRY(op, fields.string("op"));
  const Question* question = find_question(op);
  if (question == nullptr) return fail(unknown_op(fields, op));
  const auto& [first, second] = question->members;
  if (question->handler != nullptr) {
    KERNELPATH_CHECK_OK(fields.allow_only(
        {"op", "external_modules", "broken_modules", "events_before", first, second}));
    return answer_in_session(fields, op, question->handler, profile);
  }
  KERNELPATH_CHECK_OK(fields.allow_only({"op", first}));
  return op == "attn_layer_keys" ? answer_layer_keys(fields) : answer_is_built_in(fields, profile);
}

Result<Value> answer_resolve(const Value& in) { return answer_resolve(in, built_in_profile()); }

}  // namespace kernelpath::engines::trtllm
