#include "engines/trtllm/resolve_request.h"

#include "base/text.h"
#include "engines/trtllm/modeling_v2.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

using registry::Failure;
using registry::FailureKind;
using registry::Kind;
using registry::Registration;

Result<std::optional<hardware::Capability>> read_capability(const JsonFields& options) {
  const json::Value* sm = options.value().find_non_null("sm");
  if (sm == nullptr) return std::nullopt;
  const auto is_part = [](const json::Value& part) {
    return part.is_integer() && part.as_integer() >= 0 &&
           part.as_integer() <= std::numeric_limits<int>::max();
  };
  if (!sm->is_array() || sm->items().size() != 2 || !is_part(sm->items()[0]) ||
      !is_part(sm->items()[1])) {
    return fail(options.error("sm", "expected a list of two integers, major and minor"));
  }
  return hardware::Capability{.major = static_cast<int>(sm->items()[0].as_integer()),
                              .minor = static_cast<int>(sm->items()[1].as_integer())};
}

Result<ModelingV2Mode> read_mode(const JsonFields& options) {
  KERNELPATH_TRY(text, options.optional_string("modeling_v2"));
  if (!text) return ModelingV2Mode::kOff;
  Result<ModelingV2Mode> mode = parse_modeling_v2(*text);
  if (mode) return mode;
  Error error = options.error("modeling_v2", mode.error().message);
  error.near_matches = mode.error().near_matches;
  return fail(std::move(error));
}

Result<ClassOptions> read_options(const JsonFields& options) {
  KERNELPATH_CHECK_OK(options.allow_only({"mm_encoder_only", "modeling_v2", "sm", "world_size",
                                          "within_bounds", "raises_no_target", "loader_attrs"}));
  KERNELPATH_TRY(mm_encoder_only, options.boolean_or("mm_encoder_only", false));
  KERNELPATH_TRY(mode, read_mode(options));
  KERNELPATH_TRY(capability, read_capability(options));
  KERNELPATH_TRY(world_size, options.optional_integer("world_size"));
  KERNELPATH_TRY(within_bounds, options.boolean_or("within_bounds", true));
  KERNELPATH_TRY(raises_no_target, options.boolean_or("raises_no_target", false));
  KERNELPATH_TRY(loader_attrs, options.optional_strings("loader_attrs"));
  if (world_size.value_or(1) < 1) {
    return fail(options.error("world_size", "expected at least 1"));
  }
  return ClassOptions{.mm_encoder_only = mm_encoder_only,
                      .modeling_v2 = mode,
                      .capability = capability,
                      .world_size = world_size.value_or(1),
                      .within_bounds = within_bounds,
                      .raises_no_target = raises_no_target,
                      .loader_attrs = std::move(loader_attrs)};
}

// A row with `key` and `name`, which stand or fall together.
Result<Registration> read_registration(const JsonFields& row) {
  if (row.find("arch") != nullptr) {
    KERNELPATH_CHECK_OK(row.allow_only({"arch", "class"}));
    KERNELPATH_TRY(architecture, row.string("arch"));
    KERNELPATH_TRY(name, row.string("class"));
    return Registration{.kind = Kind::kModelClass, .key = architecture, .name = name};
  }
  if (row.find("vision_for") != nullptr) {
    KERNELPATH_CHECK_OK(row.allow_only({"vision_for", "encoder", "base"}));
    KERNELPATH_TRY(architecture, row.string("vision_for"));
    KERNELPATH_TRY(encoder, row.string("encoder"));
    KERNELPATH_TRY(base, row.optional_string("base"));
    return Registration{
        .kind = Kind::kVisionEncoder, .key = architecture, .name = encoder, .base_class = base};
  }
  if (row.find("spec_mode") != nullptr) {
    KERNELPATH_CHECK_OK(row.allow_only({"spec_mode", "builder"}));
    KERNELPATH_TRY(mode, row.string("spec_mode"));
    KERNELPATH_TRY(builder, row.string("builder"));
    return Registration{.kind = Kind::kDraftBuilder, .key = mode, .name = builder};
  }
  return fail(row.error("",
                        "expected {arch, class}, {vision_for, encoder, base} or {spec_mode, "
                        "builder}"));
}

Result<Failure> read_breakage(const JsonFields& how, const std::string& module) {
  KERNELPATH_CHECK_OK(how.allow_only({"missing", "missing_dep", "attribute_error"}));
  if (how.value().members().size() != 1) {
    return fail(how.error("", "expected one of missing, missing_dep and attribute_error"));
  }
  KERNELPATH_TRY(missing, how.boolean_or("missing", false));
  KERNELPATH_TRY(dependency, how.optional_string("missing_dep"));
  KERNELPATH_TRY(attribute, how.optional_string("attribute_error"));
  if (attribute) return Failure{FailureKind::kAttributeError, *attribute, *attribute};
  if (!missing && !dependency) return fail(how.error("missing", "expected true"));
  std::string name = dependency.value_or(module);
  std::string message = "No module named '" + name + "'";
  return Failure{FailureKind::kModuleNotFound, std::move(name), std::move(message)};
}

struct EventName {
  std::string_view op;
  ResolveEvent::Op value;
  std::string_view argument;
};
constexpr auto kEvents = std::to_array<EventName>({
    {"import", ResolveEvent::Op::kImport, "module"},
    {"declare", ResolveEvent::Op::kDeclare, "map"},
    {"lookup", ResolveEvent::Op::kLookUp, "arch"},
    {"vision", ResolveEvent::Op::kVision, "arch"},
    {"builder", ResolveEvent::Op::kBuilder, "mode"},
    {"getattr", ResolveEvent::Op::kAttribute, "name"},
});

Result<ResolveEvent> read_event(const JsonFields& entry) {
  KERNELPATH_TRY(op, entry.string("op"));
  const auto* const known = std::find_if(kEvents.begin(), kEvents.end(),
                                         [&](const EventName& event) { return event.op == op; });
  if (known == kEvents.end()) {
    return fail(entry.error("op", "expected import, declare, lookup, vision, builder or getattr"));
  }
  KERNELPATH_CHECK_OK(entry.allow_only({"op", known->argument}));
  ResolveEvent event = {.op = known->value};
  if (known->value == ResolveEvent::Op::kDeclare) {
    KERNELPATH_TRY(map, entry.object("map"));
    (void)map;
    KERNELPATH_TRY(rows, entry.optional_string_map("map"));
    event.declaration = std::move(rows);
    return event;
  }
  KERNELPATH_TRY(name, entry.string(known->argument));
  event.name = std::move(name);
  return event;
}

}  // namespace

Result<ClassInput> read_class_input(const JsonFields& in) {
  KERNELPATH_TRY(config, in.object("config"));
  KERNELPATH_TRY(architectures, config.optional_strings("architectures"));
  KERNELPATH_TRY(num_hidden_layers, config.optional_integer("num_hidden_layers"));
  KERNELPATH_TRY(hidden_size, config.optional_integer("hidden_size"));
  KERNELPATH_TRY(num_local_experts, config.optional_integer("num_local_experts"));
  return ClassInput{.architectures = std::move(architectures),
                    .has_draft_vocab_size = config.find("draft_vocab_size") != nullptr,
                    .num_hidden_layers = num_hidden_layers,
                    .hidden_size = hidden_size,
                    .num_local_experts = num_local_experts};
}

Result<ClassOptions> read_class_options(const JsonFields& in) {
  if (in.value().find_non_null("options") == nullptr) return ClassOptions{};
  KERNELPATH_TRY(options, in.object("options"));
  return read_options(options);
}

Result<ModuleOverrides> read_modules(const JsonFields& in) {
  ModuleOverrides overrides;
  if (in.value().find_non_null("external_modules") != nullptr) {
    KERNELPATH_TRY(modules, in.object("external_modules"));
    for (const json::Member& module : modules.value().members()) {
      KERNELPATH_TRY(rows, modules.objects(module.key));
      auto& registrations = overrides.external[module.key];
      for (const JsonFields& row : rows) {
        KERNELPATH_TRY(registration, read_registration(row));
        registrations.push_back(std::move(registration));
      }
    }
  }
  if (in.value().find_non_null("broken_modules") != nullptr) {
    KERNELPATH_TRY(modules, in.object("broken_modules"));
    for (const json::Member& module : modules.value().members()) {
      KERNELPATH_TRY(how, modules.fields_of(module));
      KERNELPATH_TRY(failure, read_breakage(how, module.key));
      overrides.broken.insert_or_assign(module.key, std::move(failure));
    }
  }
  return overrides;
}

Result<std::vector<ResolveEvent>> read_events(const JsonFields& in) {
  std::vector<ResolveEvent> events;
  if (in.value().find_non_null("events_before") == nullptr) return events;
  KERNELPATH_TRY(entries, in.objects("events_before"));
  for (const JsonFields& entry : entries) {
    KERNELPATH_TRY(event, read_event(entry));
    events.push_back(std::move(event));
  }
  return events;
}

Result<std::vector<std::string>> read_layer_indices(const JsonFields& in) {
  const json::Value* sequence = in.find("layer_idx_sequence");
  if (sequence == nullptr || !sequence->is_array()) {
    return fail(in.error("layer_idx_sequence", "expected a list of integers, strings and nulls"));
  }
  std::vector<std::string> indices;
  for (const json::Value& item : sequence->items()) {
    if (item.is_null()) {
      indices.emplace_back("None");
    } else if (item.is_string()) {
      indices.push_back(item.as_string());
    } else if (item.type() == json::Type::kInteger || item.type() == json::Type::kBigInteger) {
      indices.push_back(item.number_text());
    } else {
      return fail(in.error("layer_idx_sequence", "expected integers, strings and nulls only"));
    }
  }
  return indices;
}

}  // namespace kernelpath::engines::trtllm
