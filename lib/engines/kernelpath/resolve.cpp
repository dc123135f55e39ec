#include "engines/kernelpath/resolve.h"

#include "attention/backend_table.h"
#include "attention/selector.h"
#include "base/text.h"
#include "config/gguf_words.h"
#include "engines/kernelpath/ranks.h"
#include "engines/kernelpath/rules.h"
#include "engines/memory_account.h"
#include "registry/own_models.h"
#include "registry/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

class Walk {
 public:
  explicit Walk(const Request& request) : request_(request) {
    out_.engine = "kernelpath";
    out_.version = "0.1.0";
    out_.requested_backend = request.deployment.backend.value_or("auto");
    out_.requested_by = request.deployment.backend ? "user" : "engine default";
  }

  Resolution run() {
    if (read_request() && find_class() && build_layers()) {
      const bool selected = select_backends();
      if (selected) add_matrix_kernels();
      if (selected) out_.memory = resolve_memory(request_, launch_, layers_, out_);
    }
    for (const Step& step : out_.steps) {
      if (step.severity == Severity::kWarn) out_.warnings.push_back(step.reason);
    }
    std::ranges::stable_sort(out_.steps, {}, &Step::stage);
    return std::move(out_);
  }

  // A GGUF file whose metadata give no configuration.
  Resolution refuse_file(const Error& error) {
    refuse({.rule = "KP-GGUF",
            .stage = Stage::kModelClass,
            .candidate = request_.model.name,
            .reason = error.text()},
           Status::kUnsupported);
    return std::move(out_);
  }

 private:
  bool refuse(StepDraft text, Status status) {
    text.verdict = Verdict::kRejected;
    text.severity = Severity::kError;
    if (!out_.error) {
      out_.status = status;
      out_.error = EngineError{.type = "refused",
                               .code = std::string(text.rule),
                               .message = text.reason,
                               .near_matches = {}};
    }
    append_step(std::move(text), out_.steps);
    return false;
  }

  bool read_request() {
    auto launch = read_launch(request_.deployment);
    if (!launch) {
      return refuse({.rule = "KP-OPTION", .reason = launch.error().text()}, Status::kError);
    }
    launch_ = std::move(*launch);
    for (const std::string& reason : unsupported_options(request_.deployment)) {
      refuse({.rule = "KP-OPTION", .reason = reason}, Status::kUnsupported);
    }
    if (out_.error) return false;
    add_value("kv_dtype", std::string(short_name(launch_.kv_type)), launch_.kv_set_by);
    add_value("page_size", std::to_string(launch_.page_size), launch_.page_set_by);
    const std::string_view layout = attention::kv_layout_name(launch_.kv_layout);
    add_value("kv_layout", std::string(layout),
              request_.deployment.setting("kv_layout") != nullptr ? "user" : "engine default");
    add_value("kernel", launch_.kernel, launch_.kernel_set_by);
    return true;
  }

  void add_value(const std::string& name, const std::string& value, const std::string& set_by) {
    append_step({.rule = "KP-VALUE",
                 .verdict = Verdict::kApplied,
                 .candidate = name,
                 .reason = fmt::format("{} = {}, set by: {}", name, value, set_by)},
                out_.steps);
    out_.options.push_back({.name = name, .value = value, .set_by = set_by});
  }

  [[nodiscard]] std::string architecture() const {
    if (!request_.model.architectures.empty()) return request_.model.architectures.front();
    return request_.model.inferred_architecture.value_or("");
  }

  // What external providers registered, as modules that register it again when they are loaded.
  registry::Declaration add_external(registry::FunctionLoader& loader) const {
    registry::Declaration declared;
    for (const Environment::ExternalModel& model : request_.environment.external_models) {
      if (model.architecture.empty() || model.model_class.empty()) continue;
      declared.emplace_back(model.architecture, model.module);
      loader.add(model.module, [this, module = model.module](registry::Registrar& registrar) {
        for (const Environment::ExternalModel& row : request_.environment.external_models) {
          if (row.module == module) registrar.model_class(row.architecture, row.model_class);
        }
        return std::optional<registry::Failure>();
      });
    }
    return declared;
  }

  // External providers of --custom-module-dirs come before built-in classes.
  bool find_class() {
    const std::string name = architecture();
    if (request_.model.gguf != nullptr) {
      append_step(
          {.rule = "KP-GGUF",
           .stage = Stage::kModelClass,
           .verdict = Verdict::kApplied,
           .candidate = name,
           .reason = fmt::format("the metadata of {} stand for {}", request_.model.name, name)},
          out_.steps);
    }
    registry::FunctionLoader loader = registry::own_loader();
    registry::Declaration declared = add_external(loader);
    registry::Registry classes(registry::own_index(), loader);
    classes.declare(std::move(declared));
    const registry::Found found = classes.model_class(name);
    if (!found.provider) return unknown_class(name, classes.near_architectures(name));
    out_.model_class = found.provider->name;
    out_.model_module = found.provider->module;
    append_step({.rule = "KP-MODEL-CLASS",
                 .stage = Stage::kModelClass,
                 .verdict = Verdict::kSelected,
                 .candidate = out_.model_class,
                 .reason = fmt::format("{} is served by {} of {}", name, out_.model_class,
                                       out_.model_module)},
                out_.steps);
    return registry::is_own_class(out_.model_class) || foreign_class();
  }

  // A provider can name any class, and only those of this library can be built.
  bool foreign_class() {
    std::vector<std::string_view> classes;
    classes.reserve(registry::own_models().size());
    for (const registry::OwnModel& model : registry::own_models()) {
      classes.push_back(model.class_name);
    }
    refuse({.rule = "KP-MODEL-FOREIGN",
            .stage = Stage::kModelClass,
            .candidate = out_.model_class,
            .reason = fmt::format("{} names the class {}, which is none of this library's: {}",
                                  out_.model_module, out_.model_class, fmt::join(classes, ", "))},
           Status::kUnsupported);
    out_.error->near_matches = near_matches(out_.model_class, classes);
    return false;
  }

  bool unknown_class(const std::string& name, std::vector<std::string> near) {
    std::vector<std::string> known;
    for (const registry::OwnModel& model : registry::own_models()) {
      known.emplace_back(model.architecture);
    }
    refuse({.rule = "KP-MODEL-UNKNOWN",
            .stage = Stage::kModelClass,
            .candidate = name,
            .reason = name.empty()
                          ? "config.json names no architecture, and model_type stands for none"
                          : fmt::format("no class serves {}; there are classes for {}", name,
                                        join_words(known))},
           Status::kUnsupported);
    out_.error->near_matches = std::move(near);
    return false;
  }

  bool build_layers() {
    layers_ = own_layers(request_, launch_, out_.model_class);
    for (const LayerFault& fault : layers_.faults) {
      refuse({.rule = fault.rule, .stage = Stage::kConstruction, .reason = fault.reason},
             Status::kUnsupported);
    }
    if (!layers_.faults.empty()) return false;
    append_rank_steps(request_, launch_, layers_, out_.steps);
    const bool keeps_state = std::ranges::any_of(
        layers_.groups, [](const OwnLayers& group) { return group.state_bytes > 0; });
    if (!keeps_state || !request_.deployment.speculative) return true;
    return refuse(
        {.rule = "KP-SPECULATIVE-STATE",
         .stage = Stage::kConstruction,
         .candidate = *request_.deployment.speculative,
         .reason = "a state that saw a wrong proposal cannot be taken back, and layers of "
                   "this model keep one: leave speculative decoding out"},
        Status::kUnsupported);
  }

  bool select_backends() {
    bool all = true;
    for (const OwnLayers& group : layers_.groups) {
      LayerGroup out;
      out.kind = group.kind;
      out.layers = group.layers;
      out.window = group.window;
      if (group.attention) {
        all = select_backend(group, out) && all;
      } else {
        out.backend = "DELTA";
        out.prefill.kernel = out.decode.kernel = "gated delta rule";
      }
      out_.layers.push_back(std::move(out));
    }
    return all;
  }

  bool select_backend(const OwnLayers& group, LayerGroup& out) {
    const std::string about =
        fmt::format("{} {} layers", group.layers.size(), config::layer_kind_name(group.kind));
    const Result<attention::Selection>& selection =
        selector_.select({.layer = *group.attention, .backend = launch_.backend});
    if (!selection) {
      return refuse({.rule = "KP-LAYER-SIZE",
                     .stage = Stage::kConstruction,
                     .reason = selection.error().text()},
                    Status::kError);
    }
    if (!selection->alias.empty()) note_alias(*selection);
    add_refusals(*selection);
    if (selection->chosen == nullptr && launch_.falls_back && !launch_.backend.empty()) {
      return fall_back(group, out);
    }
    if (selection->chosen == nullptr) {
      return refuse(
          {.rule = "KP-NO-BACKEND",
           .stage = Stage::kAvailability,
           .candidate = request_.device.id,
           .reason = fmt::format("no attention backend runs {} on {}", about, request_.device.id)},
          Status::kUnsupported);
    }
    describe(group, *selection->chosen, out);
    append_step(
        {.rule = "KP-BACKEND",
         .stage = Stage::kInnerKernel,
         .verdict = Verdict::kSelected,
         .candidate = out.backend,
         .reason = fmt::format("{} from {}: {}", about, group.layers.front(), out.decode.kernel)},
        out_.steps);
    return true;
  }

  // What multiplies with the weights. A processor is not looked at: the answer is the same on every
  // machine, and the line with which a run begins says what it found.
  void add_matrix_kernels() {
    const bool vanilla = out_.selected_backend == "VANILLA";
    const std::string kernel = vanilla ? "reference" : launch_.kernel;
    std::string reason = "matrix products, with weights as they are stored: ";
    if (vanilla) {
      reason += "backend VANILLA has the reference kernels alone";
    } else if (kernel == "auto") {
      reason += "the first that the processor has of amx, avx512, avx2 and reference";
    } else {
      reason += fmt::format("{}, set by: {}", kernel, launch_.kernel_set_by);
    }
    if (kernel == "amx" || kernel == "auto") reason += "; amx for batches and prompts, avx512 else";
    append_step({.rule = "KP-MATRIX-KERNEL",
                 .stage = Stage::kInnerKernel,
                 .verdict = Verdict::kSelected,
                 .candidate = kernel,
                 .reason = std::move(reason)},
                out_.steps);
  }

  // The named backend cannot, and the user takes another one.
  bool fall_back(const OwnLayers& group, LayerGroup& out) {
    const std::string named = std::exchange(launch_.backend, {});
    const std::vector<Step> reasons = out_.steps;
    const bool found = select_backend(group, out);
    launch_.backend = named;
    if (!found) return false;
    const auto rejected = std::ranges::find(reasons, Verdict::kRejected, &Step::verdict);
    out_.status = Status::kFallback;
    out_.fallback_rule = "KP-FALLBACK";
    out_.fallback_reason = fmt::format("{} runs in place of {}: {}", out.backend, named,
                                       rejected == reasons.end() ? "it cannot" : rejected->reason);
    append_step({.rule = "KP-FALLBACK",
                 .stage = Stage::kAvailability,
                 .verdict = Verdict::kSelected,
                 .severity = Severity::kWarn,
                 .candidate = out.backend,
                 .reason = out_.fallback_reason},
                out_.steps);
    return true;
  }

  void note_alias(const attention::Selection& selection) {
    const std::string_view name = selection.candidates.front().row->name;
    const bool known = std::ranges::any_of(
        out_.steps, [](const Step& step) { return step.rule == "KP-BACKEND-ALIAS"; });
    if (known) return;
    append_step({.rule = "KP-BACKEND-ALIAS",
                 .stage = Stage::kFinalValue,
                 .verdict = Verdict::kApplied,
                 .candidate = selection.alias,
                 .reason = fmt::format("{} stands for {}", selection.alias, name)},
                out_.steps);
  }

  void add_refusals(const attention::Selection& selection) {
    for (const attention::Candidate& candidate : selection.candidates) {
      for (const attention::Refusal& refusal : candidate.refusals) {
        const bool known = std::ranges::any_of(out_.steps, [&](const Step& step) {
          return step.rule == refusal.rule && step.reason == refusal.reason;
        });
        if (known) continue;
        append_step({.rule = refusal.rule,
                     .stage = Stage::kAvailability,
                     .verdict = Verdict::kRejected,
                     .candidate = std::string(candidate.row->name),
                     .reason = refusal.reason},
                    out_.steps);
      }
    }
  }

  void describe(const OwnLayers& group, const attention::BackendRow& row, LayerGroup& out) {
    out.backend = row.name;
    if (out_.selected_backend.empty()) {
      out_.selected_backend = row.name;
      out_.backend_class = row.name;
    }
    out.prefill.kernel = out.decode.kernel = row.kernels;
    if (group.attention->mla) {
      out.prefill.note = out.decode.note = "forward_mqa: absorbed queries over the latent rows";
    }
    out.kv = {.dtype = std::string(short_name(launch_.kv_type)),
              .layout = std::string(attention::kv_layout_name(launch_.kv_layout)),
              .page_size = launch_.page_size,
              .shape = std::string(attention::kv_shape(launch_.kv_layout))};
    out.rope_fused = attention::rope_fused(row, *group.attention);
    out.cuda_graph = attention::graph_level_name(row.graph_level);
    const KvParts one = token_parts(group, launch_.kv_type);
    for (std::size_t layer = 0; layer < group.layers.size(); ++layer) add_parts(out.kv_parts, one);
    out.kv_bytes_per_token = bytes_of(out.kv_parts);
  }

  const Request& request_;
  Resolution out_;
  Launch launch_;
  OwnModelLayers layers_;
  attention::Selector selector_;
};

}  // namespace

Resolution resolve(const Request& request) {
  if (request.model.gguf == nullptr) return Walk(request).run();
  const Result<config::ModelConfig> model = config::config_of_gguf(request.model);
  if (!model) return Walk(request).refuse_file(model.error());
  Request translated = request;
  translated.model = *model;
  return Walk(translated).run();
}

}  // namespace kernelpath::engines::kernelpath
