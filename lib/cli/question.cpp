#include "cli/question.h"

#include "base/text.h"
#include "cli/draft_input.h"
#include "cli/information.h"
#include "engines/external_models.h"
#include "engines/gguf_input.h"
#include "hardware/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kernelpath::cli {
namespace {

using engines::Engine;

// "NAME=VALUE" or "ENGINE.FIELD=VALUE" taken apart at the first '='.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             Option option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    const OptionRow& row = option_row(option);
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("not of the form {}", row.value_name),
                 .where = "--" + std::string(row.name),
                 .value = shorten(text, 64)});
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

// The error with the place where the user set the option: "--device", "config.toml:3", "/device".
Error at(const Settings& settings, Option option, Error error) {
  error.where = settings.of(option).where;
  return error;
}

Result<std::vector<const Engine*>> chosen_engines(const Settings& settings) {
  const std::vector<std::string>& names = settings.list(Option::kEngine);
  std::vector<const Engine*> out;
  const auto add = [&](const Engine* engine) {
    if (std::find(out.begin(), out.end(), engine) == out.end()) out.push_back(engine);
  };
  for (const std::string& name : names) {
    if (!equal_ignoring_case(name, "all")) {
      const Result<const Engine*> engine = engines::find_engine(name);
      if (!engine) return fail(at(settings, Option::kEngine, engine.error()));
      add(*engine);
      continue;
    }
    for (const Engine* engine : engines::all_engines()) {
      const Result<const Engine*> newest = engines::find_engine(engine->name());
      if (newest) add(*newest);
    }
  }
  return out;
}

Result<hardware::Device> named_device(const Settings& settings) {
  const std::string& name = settings.text(Option::kDevice);
  if (equal_ignoring_case(name, "auto")) {
    static const hardware::Device kProbed = hardware::probe_device();
    return kProbed;
  }
  Result<hardware::Device> known = hardware::find_device(name);
  if (!known) return fail(at(settings, Option::kDevice, known.error()));
  return known;
}

Result<hardware::Device> device_of_capability(const Settings& settings) {
  const Result<hardware::Capability> capability =
      hardware::parse_capability(settings.text(Option::kSm));
  if (!capability) return fail(at(settings, Option::kSm, capability.error()));
  return hardware::device_from_capability(*capability, settings.integer(Option::kMemory));
}

Result<hardware::Device> chosen_device(const Settings& settings) {
  const SetBy by_device = settings.of(Option::kDevice).set_by;
  const SetBy by_sm = settings.of(Option::kSm).set_by;
  if (settings.is_set(Option::kSm) && by_sm > by_device) return device_of_capability(settings);
  if (settings.is_set(Option::kSm) && by_sm == by_device) {
    return fail(
        {.code = ErrorCode::kUsageConflict,
         .message = fmt::format("--device {} and --sm {} name two machines",
                                settings.text(Option::kDevice), settings.text(Option::kSm))});
  }
  KERNELPATH_TRY(device, named_device(settings));
  const std::optional<std::int64_t> memory = settings.integer(Option::kMemory);
  if (memory) {
    device.memory_bytes = memory;
    device.reserved_bytes = 0;
  }
  return device;
}

engines::Deployment common_deployment(const Settings& settings) {
  engines::Deployment out;
  out.backend = settings.optional_text(Option::kBackend);
  out.dtype = settings.optional_text(Option::kDtype);
  out.kv_dtype = settings.optional_text(Option::kKv);
  out.quantization = settings.optional_text(Option::kQuantization);
  out.page_size = settings.integer(Option::kPageSize);
  out.max_model_len = settings.integer(Option::kMaxModelLen);
  out.batch_size = settings.integer(Option::kBatchSize);
  out.tp = settings.integer(Option::kTp).value_or(1);
  out.pp = settings.integer(Option::kPp).value_or(1);
  out.dp = settings.integer(Option::kDp).value_or(1);
  out.ep = settings.integer(Option::kEp).value_or(1);
  out.cp = settings.integer(Option::kCp).value_or(1);
  out.dcp = settings.integer(Option::kDcp).value_or(1);
  const std::string& speculative = settings.text(Option::kSpeculative);
  if (!speculative.empty()) {
    const std::size_t colon = speculative.find(':');
    out.speculative = speculative.substr(0, colon);
    if (colon != std::string::npos) out.draft_model = speculative.substr(colon + 1);
  }
  out.draft_tokens = settings.integer(Option::kDraftTokens);
  out.draft_topk = settings.integer(Option::kDraftTopk);
  return out;
}

// The values of --set for the engine called `name`; every value must be for a chosen engine.
Result<void> add_settings(const Settings& settings, std::vector<EngineQuestion>& questions) {
  for (const std::string& text : settings.list(Option::kSet)) {
    KERNELPATH_TRY(assignment, split_assignment(text, Option::kSet));
    const std::size_t dot = assignment.first.find('.');
    if (dot == std::string::npos || dot == 0) {
      return fail({.code = ErrorCode::kUsage,
                   .message = "not of the form ENGINE.FIELD=VALUE",
                   .where = "--set",
                   .value = shorten(text, 64)});
    }
    KERNELPATH_TRY(named, engines::find_engine(assignment.first.substr(0, dot)));
    bool used = false;
    for (EngineQuestion& question : questions) {
      if (question.engine->name() != named->name()) continue;
      question.deployment.settings.emplace_back(assignment.first.substr(dot + 1),
                                                assignment.second);
      used = true;
    }
    if (used) continue;
    return fail(
        {.code = ErrorCode::kUsageConflict,
         .message = fmt::format("sets a field of {}, which --engine leaves out", named->name()),
         .where = "--set",
         .value = shorten(text, 64)});
  }
  return {};
}

std::vector<std::string> lower_case(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  out.reserve(names.size());
  for (const std::string& name : names) out.push_back(to_lower(name));
  return out;
}

// One spelling of a package's name, as package registries compare them: "deep_gemm" is deep-gemm.
std::vector<std::string> package_names(const std::vector<std::string>& names) {
  std::vector<std::string> out = lower_case(names);
  for (std::string& name : out) std::replace(name.begin(), name.end(), '_', '-');
  return out;
}

Result<engines::Environment> make_environment(const Settings& settings,
                                              const ProcessEnvironment& process,
                                              const ExternalModels& external_models) {
  engines::Environment out;
  out.lacks = package_names(settings.list(Option::kLacks));
  out.has = package_names(settings.list(Option::kHas));
  for (const std::string& name : out.lacks) {
    if (std::find(out.has.begin(), out.has.end(), name) == out.has.end()) continue;
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "both --lacks and --has name the package",
                 .value = shorten(name, 64)});
  }
  for (const std::string& text : settings.list(Option::kEnv)) {
    KERNELPATH_TRY(assignment, split_assignment(text, Option::kEnv));
    out.variables.push_back(assignment);
  }
  if (settings.flag(Option::kEnvFromProcess)) {
    for (const auto& variable : process.variables) {
      if (out.variable(variable.first) == nullptr) out.variables.push_back(variable);
    }
  }
  out.external_models = external_models;
  return out;
}

// An option whose values are names of a table of the engines.
struct NamedOption {
  Option option;
  std::string_view table;
  std::string_view unknown;  // the message, before the names that there are
};

Result<void> check_words(const Settings& settings, const NamedOption& named) {
  if (settings.list(named.option).empty()) return {};
  const std::vector<std::string>& given = settings.list(named.option);
  const bool packages = named.table == "packages";
  std::vector<std::string> known = table_words(named.table);
  if (packages) known = package_names(known);
  for (const std::string& name : packages ? package_names(given) : lower_case(given)) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    return fail(at(settings, named.option,
                   {.code = ErrorCode::kUsageUnknown,
                    .message = std::string(named.unknown) + join_words(known),
                    .value = shorten(name, 64),
                    .near_matches = near_matches(name, candidates)}));
  }
  return {};
}

// A name of no engine's table is a misspelling; which engines look for the package is their affair.
Result<void> check_packages(const Settings& settings, Option option) {
  return check_words(settings,
                     {option, "packages", "no engine looks for such a package; they look for "});
}

// A type that one engine has and another has not is that engine's refusal.
Result<void> check_dtypes(const Settings& settings) {
  KERNELPATH_CHECK_OK(check_words(
      settings,
      {Option::kDtype, "dtypes", "no engine has such a type of activations; they have "}));
  return check_words(
      settings, {Option::kKv, "kv-dtypes", "no engine has such a type of KV cache; they have "});
}

Result<void> check_speculative(const Settings& settings) {
  const std::string& text = settings.text(Option::kSpeculative);
  if (text.empty()) return {};
  const std::string kind = text.substr(0, text.find(':'));
  const std::vector<std::string> known = option_choices(option_row(Option::kSpeculative));
  if (std::find(known.begin(), known.end(), kind) != known.end()) return {};
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  return fail(at(settings, Option::kSpeculative,
                 {.code = ErrorCode::kUsageUnknown,
                  .message = "not one of " + join_words(known, "or"),
                  .value = shorten(kind, 64),
                  .near_matches = near_matches(kind, candidates)}));
}

std::vector<std::string> row_names(const Engine& engine, std::string_view table) {
  std::vector<std::string> out;
  for (const engines::TableRow& row : engine.table(table)) out.push_back(row.name);
  return out;
}

// The variables that the engine reads go to its environment.
void keep_known_variables(const Engine& engine, engines::Environment& environment) {
  if (environment.variables.empty()) return;
  const std::vector<std::string> known = row_names(engine, "variables");
  std::erase_if(environment.variables, [&](const auto& variable) {
    return std::find(known.begin(), known.end(), variable.first) == known.end();
  });
}

// Variables of --env that none of the engines reads, not those that --env-from-process swept up.
std::vector<std::string> unread_variables(const Settings& settings,
                                          const std::vector<EngineQuestion>& questions) {
  std::vector<std::string> out;
  for (const std::string& text : settings.list(Option::kEnv)) {
    const std::string name = text.substr(0, text.find('='));
    std::vector<std::string> asked;
    bool read = false;
    for (const EngineQuestion& question : questions) {
      asked.push_back(fmt::format("{} {}", question.engine->name(), question.engine->version()));
      read = read || question.environment.variable(name) != nullptr;
    }
    if (read) continue;
    out.push_back(fmt::format("--env {}: {} {} not read it (--list variables)", name,
                              join_words(asked), asked.size() == 1 ? "does" : "do"));
  }
  return out;
}

Result<void> check_show_parts(const std::vector<std::string>& parts) {
  const std::vector<std::string_view> known = report::show_parts();
  for (const std::string& part : parts) {
    if (std::find(known.begin(), known.end(), part) != known.end()) continue;
    const std::vector<std::string> words(known.begin(), known.end());
    return fail({.code = ErrorCode::kUsageUnknown,
                 .message = "unknown part; known are " + join_words(words),
                 .where = "--show",
                 .value = shorten(part, 64),
                 .near_matches = near_matches(part, known)});
  }
  return {};
}

// The engine's own spelling of a backend's name.
Result<std::string> find_backend(const Engine& engine, std::string_view name, Option option) {
  const std::vector<std::string> names = row_names(engine, "backends");
  for (const std::string& known : names) {
    if (equal_ignoring_case(known, name)) return known;
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = fmt::format("{} {} has no such attention backend; it has {}",
                                      engine.name(), engine.version(), join_words(names)),
               .where = "--" + std::string(option_row(option).name),
               .value = shorten(name, 64),
               .near_matches = near_matches(name, candidates)});
}

Result<void> add_requirements(const Settings& settings, Question& question) {
  for (const std::string& text : settings.list(Option::kRequire)) {
    KERNELPATH_TRY(assignment, split_assignment(text, Option::kRequire));
    KERNELPATH_TRY(engine, engines::find_engine(assignment.first));
    const bool asked = std::any_of(question.engines.begin(), question.engines.end(),
                                   [&](const EngineQuestion& q) { return q.engine == engine; });
    if (!asked) {
      return fail({.code = ErrorCode::kUsageConflict,
                   .message = fmt::format("requires a backend of {} {}, which --engine leaves out",
                                          engine->name(), engine->version()),
                   .where = "--require",
                   .value = shorten(text, 64)});
    }
    KERNELPATH_TRY(backend, find_backend(*engine, assignment.second, Option::kRequire));
    question.requirements.push_back({engine, backend});
  }
  return {};
}

}  // namespace

Result<ExternalModels> load_external_models(const Settings& settings) {
  const std::vector<std::string>& folders = settings.list(Option::kCustomModuleDirs);
  if (folders.empty()) return ExternalModels{};
  return engines::load_external_models(folders);
}

namespace {

// Whether one of the engines has a backend of this name, in any case.
bool is_some_backend(const std::vector<EngineQuestion>& questions, std::string_view name) {
  if (equal_ignoring_case(name, "auto")) return true;
  return std::any_of(questions.begin(), questions.end(), [&](const EngineQuestion& question) {
    const std::vector<std::string> names = row_names(*question.engine, "backends");
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& known) { return equal_ignoring_case(known, name); });
  });
}

// A value that no engine takes is wrong use; one that some engine takes is the others' refusal, in
// their answers. An engine without the option takes everything, so a backend's name has to be in a
// table. --set is for one engine alone.
Result<void> check_engines(const std::vector<EngineQuestion>& questions) {
  std::optional<Error> first;
  bool any_accepts = false;
  for (const EngineQuestion& question : questions) {
    Result<void> checked = question.engine->check(question.deployment, question.environment);
    if (checked) {
      any_accepts = true;
      continue;
    }
    const bool own = !question.deployment.settings.empty();
    if (own && checked.error().where.starts_with("--set")) return checked;
    if (!first) first = checked.error();
  }
  if (!first) return {};
  const std::optional<std::string>& backend = questions.front().deployment.backend;
  const bool misspelt = backend && !is_some_backend(questions, *backend);
  if (!any_accepts || misspelt) return fail(std::move(*first));
  return {};
}

// What both programs ask; nothing of it was checked against an engine's arguments.
Result<Question> unchecked_question(const Settings& settings, const ProcessEnvironment& process,
                                    const ExternalModels& external_models) {
  Question out;
  KERNELPATH_TRY(chosen, chosen_engines(settings));
  KERNELPATH_TRY(device, chosen_device(settings));
  out.device = device;
  out.device_stated = settings.is_set(Option::kDevice) || settings.is_set(Option::kSm);
  KERNELPATH_TRY(environment, make_environment(settings, process, external_models));
  const engines::Deployment deployment = common_deployment(settings);
  KERNELPATH_CHECK_OK(check_packages(settings, Option::kLacks));
  KERNELPATH_CHECK_OK(check_packages(settings, Option::kHas));
  KERNELPATH_CHECK_OK(check_dtypes(settings));
  KERNELPATH_CHECK_OK(check_speculative(settings));
  for (const Engine* engine : chosen) {
    EngineQuestion question{engine, deployment, environment, {}};
    question.named = settings.is_set(Option::kEngine) &&
                     std::ranges::none_of(settings.list(Option::kEngine), [](const auto& name) {
                       return equal_ignoring_case(name, "all");
                     });
    question.variables = question.environment.variables;
    keep_known_variables(*engine, question.environment);
    out.engines.push_back(std::move(question));
  }
  if (!out.engines.empty()) {
    out.engines.front().warnings = unread_variables(settings, out.engines);
  }
  KERNELPATH_CHECK_OK(add_settings(settings, out.engines));
  out.load.strict = settings.flag(Option::kStrict);
  out.lacks = environment.lacks;
  out.has = environment.has;
  out.view.why = settings.flag(Option::kWhy);
  out.view.sources = settings.flag(Option::kSources);
  return out;
}

}  // namespace

Result<Question> make_rules_question(const Settings& settings, const ProcessEnvironment& process,
                                     const ExternalModels& external_models) {
  return unchecked_question(settings, process, external_models);
}

Result<Question> make_question(const Settings& settings, const ProcessEnvironment& process,
                               const ExternalModels& external_models) {
  KERNELPATH_TRY(out, unchecked_question(settings, process, external_models));
  KERNELPATH_CHECK_OK(check_engines(out.engines));
  out.why_not_backend = settings.text(Option::kWhyNot);
  KERNELPATH_CHECK_OK(add_requirements(settings, out));
  KERNELPATH_CHECK_OK(check_show_parts(settings.list(Option::kShow)));
  out.view.show = settings.list(Option::kShow);
  out.view.prefill = settings.text(Option::kPhase) != "decode";
  out.view.decode = settings.text(Option::kPhase) != "prefill";
  out.view.layers = settings.flag(Option::kLayers);
  return std::move(out);
}

Result<report::InputAnswer> answer_question(const Question& question, config::ModelConfig model) {
  report::InputAnswer out{.model = {},
                          .device = question.device,
                          .lacks = question.lacks,
                          .has = question.has,
                          .engines = {}};
  engines::Request request{
      .model = std::move(model), .device = question.device, .deployment = {}, .environment = {}};
  bool known = false;
  std::optional<Error> unknown;
  for (const EngineQuestion& asked : question.engines) {
    request.deployment = asked.deployment;
    request.environment = asked.environment;
    KERNELPATH_TRY(draft, load_draft(*asked.engine, asked.deployment, question.load));
    request.draft = std::move(draft);
    report::EngineAnswer answer{.resolution = engines::resolve_input(*asked.engine, request),
                                .why_not_backend = question.why_not_backend};
    answer.resolution.warnings.insert(answer.resolution.warnings.end(), asked.warnings.begin(),
                                      asked.warnings.end());
    if (!question.why_not_backend.empty()) {
      Result<engines::Engine::WhyNot> why_not =
          asked.engine->why_not(request, question.why_not_backend);
      if (why_not) {
        answer.why_not = std::move(*why_not);
        known = true;
      } else if (!unknown) {
        unknown = std::move(why_not).error();
      }
    }
    out.engines.push_back(std::move(answer));
  }
  // A name that some engine has is no misspelling; the others just have no answer to it.
  if (unknown && !known) return fail(std::move(*unknown));
  out.model = std::move(request.model);
  return out;
}

std::vector<std::string> unmet_requirements(const Question& question,
                                            const report::InputAnswer& answer) {
  std::vector<std::string> out;
  for (const Requirement& requirement : question.requirements) {
    for (std::size_t i = 0; i < question.engines.size(); ++i) {
      if (question.engines[i].engine != requirement.engine) continue;
      const std::string& selected = answer.engines[i].resolution.selected_backend;
      if (equal_ignoring_case(selected, requirement.backend)) continue;
      out.push_back(fmt::format("{}: {} {} gets {}, not {}", answer.model.name,
                                requirement.engine->name(), requirement.engine->version(),
                                selected.empty() ? "no backend" : selected, requirement.backend));
    }
  }
  return out;
}

}  // namespace kernelpath::cli
