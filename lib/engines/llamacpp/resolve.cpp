#include "engines/llamacpp/resolve.h"

#include "base/text.h"
#include "base/units.h"
#include "checkpoint/gguf.h"
#include "engines/llamacpp/arguments.h"
#include "engines/llamacpp/convert.h"
#include "engines/llamacpp/layer_groups.h"
#include "engines/llamacpp/memory_accounts.h"
#include "engines/llamacpp/memory_report.h"
#include "engines/llamacpp/model_facts.h"
#include "engines/llamacpp/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kThrown = "std::runtime_error";

Metadata metadata_of(const checkpoint::Gguf& gguf) {
  Metadata out;
  for (const checkpoint::GgufPair& pair : gguf.pairs) out.emplace(pair.key, pair.value);
  return out;
}

TensorNames names_of(const checkpoint::Gguf& gguf) {
  TensorNames out{.known = true};
  for (const checkpoint::GgufTensor& tensor : gguf.tensors) out.names.push_back(tensor.name);
  return out;
}

class Resolver {
 public:
  Resolver(const Request& request, const Profile& profile) : request_(request), profile_(profile) {
    out_.engine = "llamacpp";
    out_.version = profile.version;
  }

  Resolution run() {
    Deployment asked = request_.deployment;
    // Backends of other engines are no choice here.
    const bool foreign = asked.backend && !is_flash_word(*asked.backend);
    if (foreign) asked.backend.reset();
    auto arguments = Arguments::read(profile_, asked, request_.environment);
    if (!arguments) {
      refuse(Status::kError, "LCPP-CONTEXT-REFUSED", arguments.error().text());
      out_.facts = facts_of_model(profile_, request_.model);
      return std::move(out_);
    }
    arguments_ = std::move(*arguments);
    if (request_.device.platform == hardware::Platform::kCpu) arguments_.on_devices = false;
    tell_arguments();
    if (find_metadata() && load() && plan()) fill();
    state_facts();
    return std::move(out_);
  }

 private:
  void step(StepDraft draft) { append_step(std::move(draft), out_.steps); }

  void warn(StepDraft draft) {
    draft.severity = Severity::kWarn;
    out_.warnings.push_back(draft.reason);
    step(std::move(draft));
  }

  // What the engine prints instead of going on.
  bool refuse(Status status, std::string_view rule, std::string message,
              std::vector<std::string> near = {}) {
    step({.rule = rule,
          .stage = rule.starts_with("LCPP-CONTEXT") ? Stage::kConstruction : Stage::kModelClass,
          .verdict = Verdict::kRejected,
          .severity = Severity::kError,
          .reason = message});
    out_.status = status;
    const bool aborts = rule == "LCPP-ABORT";
    out_.error = EngineError{.type = std::string(aborts ? "abort" : kThrown),
                             .code = std::string(rule),
                             .message = std::move(message),
                             .near_matches = std::move(near)};
    return false;
  }

  void tell_arguments() {
    out_.options = arguments_.options;
    for (const Resolution::Option& option : out_.options) {
      if (option.set_by == "engine default") continue;
      step({.rule = "LCPP-ARGUMENT",
            .stage = Stage::kFinalValue,
            .candidate = option.name,
            .reason = fmt::format("{} by {}", option.value, option.set_by)});
    }
    out_.requested_backend = to_lower(find_option("flash_attn"));
    const bool by_user = arguments_.flash_set_by != "engine default";
    out_.requested_by = by_user ? "user" : "engine default";
    tell_missing_options();
  }

  [[nodiscard]] const std::string& find_option(std::string_view name) const {
    return std::ranges::find(arguments_.options, name, &Resolution::Option::name)->value;
  }

  void tell_missing_options() {
    const Deployment& asked = request_.deployment;
    const auto missing = std::to_array<std::pair<std::string_view, bool>>({
        {"--backend", asked.backend && !is_flash_word(*asked.backend)},
        {"--page-size", asked.page_size.has_value()},
        {"--ep", asked.ep > 1},
        {"--dp", asked.dp > 1},
        {"--cp", asked.cp > 1},
        {"--dcp", asked.dcp > 1},
        {"--dtype", asked.dtype.has_value()},
        {"--quantization", asked.quantization.has_value()},
    });
    for (const auto& [option, given] : missing) {
      if (!given) continue;
      warn({.rule = "LCPP-NO-OPTION",
            .stage = Stage::kFinalValue,
            .verdict = Verdict::kSkipped,
            .candidate = std::string(option),
            .reason = fmt::format("llama.cpp has nothing like {}; it is left out", option)});
    }
  }

  // --- the model ---------------------------------------------------------------------------------

  bool find_metadata() {
    if (request_.model.gguf != nullptr) {
      metadata_ = metadata_of(*request_.model.gguf);
      tensors_ = names_of(*request_.model.gguf);
      return true;
    }
    Conversion conversion = convert_config(profile_, request_.model);
    if (conversion.architecture.empty()) {
      return refuse(Status::kUnsupported, "LCPP-CONVERT-NO-NAME", std::move(conversion.error));
    }
    if (!conversion.error.empty()) return refuse_architecture(conversion);
    step({.rule = "LCPP-CONVERT",
          .verdict = Verdict::kSelected,
          .candidate = conversion.row->gguf,
          .reason = fmt::format("{} is registered by {}", conversion.architecture,
                                conversion.row->converter),
          .file = fmt::format("conversion/{}.py", conversion.row->module)});
    if (!conversion.override_reason.empty()) {
      step({.rule = "LCPP-CONVERT-OVERRIDE",
            .verdict = Verdict::kSelected,
            .candidate = conversion.gguf,
            .reason = conversion.override_reason,
            .file = fmt::format("conversion/{}.py", conversion.row->module)});
    }
    metadata_ = std::move(conversion.metadata);
    return true;
  }

  bool refuse_architecture(const Conversion& conversion) {
    std::string message = conversion.error;
    if (profile_.find_projector(conversion.architecture) != nullptr) {
      message += " (its projector is, beside a language model of another name)";
    }
    std::vector<std::string_view> names;
    for (const ConverterRow& row : profile_.converter) names.push_back(row.architecture);
    return refuse(Status::kUnsupported, "LCPP-CONVERT-UNSUPPORTED", std::move(message),
                  near_matches(conversion.architecture, names));
  }

  bool load() {
    model_ = load_model(profile_, metadata_, tensors_);
    if (!model_.error.empty()) return refuse_model();
    out_.model_class = model_.architecture->class_name;
    out_.model_module = model_.reads->file;
    step({.rule = "LCPP-CLASS",
          .verdict = Verdict::kSelected,
          .candidate = out_.model_class,
          .reason = "general.architecture is " + model_.architecture->name,
          .file = model_.reads->file});
    tell_ignored_window();
    return true;
  }

  bool refuse_model() {
    if (model_.architecture == nullptr) {
      std::vector<std::string_view> names;
      for (const ArchitectureRow& row : profile_.architectures) names.push_back(row.name);
      const auto found = metadata_.find("general.architecture");
      const std::string name = found == metadata_.end() ? std::string() : found->second.text;
      return refuse(Status::kUnsupported, "LCPP-ARCH-UNKNOWN", model_.error,
                    near_matches(name, names));
    }
    if (model_.architecture->class_name.empty()) {
      return refuse(Status::kUnsupported, "LCPP-ARCH-NO-CLASS", model_.error);
    }
    if (model_.reads == nullptr) {
      return refuse(Status::kUnsupported, "LCPP-ARCH-PROJECTOR", model_.error);
    }
    const std::string_view rule = model_.aborts       ? "LCPP-ABORT"
                                  : model_.in_hparams ? "LCPP-HPARAMS"
                                                      : "LCPP-TENSORS";
    return refuse(Status::kError, rule, model_.error);
  }

  void tell_ignored_window() {
    const bool stated =
        metadata_.contains(model_.architecture->name + ".attention.sliding_window") &&
        std::ranges::any_of(request_.model.layers, [](const config::Layer& layer) {
          return layer.kind == config::LayerKind::kSliding;
        });
    if (!stated || model_.hparams.swa_type != WindowType::kNone) return;
    warn({.rule = "LCPP-WINDOW-IGNORED",
          .stage = Stage::kRewrite,
          .candidate = model_.architecture->name,
          .reason = "the class has no sliding layers; every layer attends to the whole context",
          .file = model_.reads->file});
  }

  // --- the context -------------------------------------------------------------------------------

  bool plan() {
    machine_ = machine_of(request_.device, arguments_);
    if (machine_.place == Place::kOther) {
      warn({.rule = "LCPP-DEVICE-UNKNOWN",
            .stage = Stage::kAvailability,
            .candidate = request_.device.id,
            .reason = "this build knows the kernels of CUDA, HIP and the CPU only"});
    }
    if (!check_split()) return false;
    const ContextParams& params = arguments_.context;
    context_ = plan_context(model_, params);
    if (!context_.error.empty()) {
      return refuse(Status::kError, "LCPP-CONTEXT-REFUSED", context_.error);
    }
    memory_ = plan_memory(model_, params, context_);
    probe();
    tell_context();
    tell_flash();
    tell_memory();
    return true;
  }

  bool check_split() {
    const SplitParams& split = arguments_.split;
    const bool gpus = machine_.place == Place::kCuda || machine_.place == Place::kHip;
    if (split.mode == SplitMode::kTensor && model_.architecture->no_tensor_split) {
      return refuse(Status::kError, "LCPP-SPLIT-TENSOR",
                    fmt::format("LLAMA_SPLIT_MODE_TENSOR not implemented for architecture '{}'",
                                model_.architecture->name));
    }
    if (split.mode == SplitMode::kTensor && machine_.place == Place::kCpu &&
        request_.device.platform == hardware::Platform::kCpu) {
      return refuse(Status::kError, "LCPP-SPLIT-TENSOR",
                    "LLAMA_SPLIT_MODE_TENSOR needs >= 1 devices");
    }
    if (split.mode == SplitMode::kNone && gpus && split.main_gpu >= split.devices) {
      return refuse(Status::kError, "LCPP-MAIN-GPU",
                    fmt::format("invalid value for main_gpu: {} (available devices: {})",
                                split.main_gpu, split.devices));
    }
    if (split.mode == SplitMode::kRow && gpus) {
      return refuse(Status::kError, "LCPP-SPLIT-ROW",
                    fmt::format("device {}0 does not support split buffers",
                                machine_.place == Place::kHip ? "ROCm" : "CUDA"));
    }
    if (split.mode == SplitMode::kTensor && gpus && split.devices == 1) {
      warn({.rule = "LCPP-SPLIT-ALONE",
            .stage = Stage::kConstruction,
            .reason = "SPLIT_MODE_TENSOR being used for a single device is not recommended"});
    }
    return true;
  }

  // What auto finds where the layers are.
  void probe() {
    const AttentionQuestion question{model_, arguments_.context, context_, memory_};
    unserved_ = unserved_layer(question, machine_, arguments_.build);
    const bool gpu = machine_.place == Place::kCuda || machine_.place == Place::kHip;
    if (gpu && !arguments_.kv_offload && !memory_.caches.empty() &&
        !memory_.caches.front().layers.empty()) {
      unserved_ = memory_.caches.front().layers.front();
    }
    if (!unserved_ || context_.flash_rule != FlashRule::kProbed) return;
    arguments_.context.flash_attn_supported = false;
    context_ = plan_context(model_, arguments_.context);
    memory_ = plan_memory(model_, arguments_.context, context_);
  }

  void tell_context() {
    const ContextSizes& sizes = context_.sizes;
    step({.rule = "LCPP-CONTEXT",
          .stage = Stage::kFinalValue,
          .candidate = std::to_string(sizes.n_ctx),
          .reason = fmt::format("{} cells a sequence, batch {}, physical batch {}", sizes.n_ctx_seq,
                                sizes.n_batch, sizes.n_ubatch)});
    const std::int64_t asked = arguments_.context.n_ctx;
    if (asked != 0 && asked != sizes.n_ctx) {
      warn({.rule = "LCPP-CONTEXT-ROUNDED",
            .stage = Stage::kFinalValue,
            .candidate = std::to_string(sizes.n_ctx),
            .reason = fmt::format("{} cells instead of {}", sizes.n_ctx, asked)});
    }
    if (sizes.n_ctx_seq > model_.hparams.n_ctx_train && asked != 0) {
      warn({.rule = "LCPP-CONTEXT-OVER-TRAINED",
            .stage = Stage::kFinalValue,
            .reason = fmt::format("{} cells a sequence, trained for {}", sizes.n_ctx_seq,
                                  model_.hparams.n_ctx_train)});
    }
  }

  void tell_flash() {
    out_.selected_backend = context_.flash_attn ? "on" : "off";
    out_.backend_class = context_.flash_attn ? "ggml_flash_attn_ext" : "ggml_soft_max_ext";
    StepDraft draft{.stage = Stage::kFallback,
                    .verdict = Verdict::kSelected,
                    .candidate = out_.selected_backend};
    switch (context_.flash_rule) {
      case FlashRule::kAsked:
        return tell_asked(std::move(draft));
      case FlashRule::kOff:
        draft.rule = "LCPP-FA-OFF";
        break;
      case FlashRule::kGrok:
        return fall_back("LCPP-FA-GROK", "flash attention is not compatible with Grok",
                         std::move(draft));
      case FlashRule::kTensorSplit:
        draft.rule = "LCPP-FA-TENSOR-SPLIT";
        break;
      case FlashRule::kQuantizedV:
        draft.rule = "LCPP-FA-QUANTIZED-V";
        step(std::move(draft));
        return tell_on_cpu();
      case FlashRule::kProbed:
        draft.rule = "LCPP-FA-PROBED";
        draft.reason = "every layer's attention runs on the device of its cache";
        break;
      case FlashRule::kProbedMissing:
        return fall_back("LCPP-FA-PROBE-FAILED",
                         fmt::format("layer {} would run attention elsewhere: {}", *unserved_,
                                     unserved_reason()),
                         std::move(draft));
    }
    step(std::move(draft));
  }

  void tell_asked(StepDraft draft) {
    draft.rule = "LCPP-FA-ASKED";
    step(std::move(draft));
    tell_on_cpu();
  }

  void fall_back(std::string_view rule, std::string reason, StepDraft draft) {
    out_.status = Status::kFallback;
    out_.fallback_rule = rule;
    out_.fallback_reason = reason;
    draft.rule = rule;
    draft.reason = std::move(reason);
    warn(std::move(draft));
  }

  void tell_on_cpu() {
    if (!unserved_) return;
    fall_back("LCPP-FA-ON-CPU", fmt::format("layer {}: {}", *unserved_, unserved_reason()),
              {.stage = Stage::kFallback, .candidate = "CPU"});
  }

  [[nodiscard]] std::string unserved_reason() const {
    if (!arguments_.kv_offload) return "K and V are kept on the host";
    const AttentionQuestion question{model_, arguments_.context, context_, memory_};
    for (const Cache& cache : memory_.caches) {
      if (std::ranges::find(cache.layers, *unserved_) == cache.layers.end()) continue;
      auto call = attention_call(question, cache, *unserved_, Phase::kDecode);
      if (!call) continue;
      call->cc = machine_.cc;
      const KernelPick pick = pick_cuda_kernel(arguments_.build, *call);
      if (!pick.refusal.empty()) {
        return fmt::format("{} (head sizes {} and {}, types {} and {})", pick.refusal,
                           call->head_size_k, call->head_size_v, call->type_k->name,
                           call->type_v->name);
      }
    }
    return "no kernel serves it";
  }

  void tell_memory() {
    std::vector<std::string> parts;
    for (const Cache& cache : memory_.caches) {
      parts.push_back(fmt::format("{}: {} layers, {} cells", cache.role, cache.layers.size(),
                                  cache.cells * cache.streams));
    }
    if (memory_.state) {
      parts.push_back(fmt::format("recurrent: {} layers", memory_.state->layers.size()));
    }
    step({.rule = "LCPP-MEMORY",
          .stage = Stage::kMemory,
          .candidate = std::string(memory_kind_name(memory_.kind)),
          .reason = parts.empty() ? "neither cache nor state" : join(parts, "; "),
          .file = {}});
    for (const Cache& cache : memory_.caches) tell_cache(cache);
  }

  void tell_cache(const Cache& cache) {
    if (cache.v_transposed &&
        std::ranges::adjacent_find(cache.layers, [&](std::int64_t a, std::int64_t b) {
          return model_.hparams.n_embd_v_gqa(a) != model_.hparams.n_embd_v_gqa(b);
        }) != cache.layers.end()) {
      warn({.rule = "LCPP-V-PADDED",
            .stage = Stage::kMemory,
            .candidate = cache.role,
            .reason =
                fmt::format("V of every layer is {} wide", model_.hparams.n_embd_v_gqa_max())});
    }
    // As the engine's atoi reads it.
    const std::string* const variable = request_.environment.variable("LLAMA_ATTN_ROT_DISABLE");
    const bool disabled = variable != nullptr && parse_integer(*variable).value_or(0) != 0;
    if ((cache.rotates_k || cache.rotates_v) && !disabled) {
      step({.rule = "LCPP-ROTATION",
            .stage = Stage::kRewrite,
            .candidate = cache.role,
            .reason = cache.rotates_k && cache.rotates_v ? "K and V"
                      : cache.rotates_k                  ? "K"
                                                         : "V"});
    }
  }

  void fill() {
    const AttentionQuestion question{model_, arguments_.context, context_, memory_};
    out_.layers = make_groups({.question = question,
                               .machine = machine_,
                               .build = arguments_.build,
                               .kv_offload = arguments_.kv_offload,
                               .config = request_.model},
                              out_.steps);
    const SpreadQuestion spread{.request = request_, .question = question, .arguments = arguments_};
    devices_ = spread_memory(spread);
    report_memory(spread, *devices_, out_);
    explain_memory(request_, question, out_);
  }

  // What rules may ask of the model and of what is planned for it.
  void state_facts() {
    ModelFactsInput input{.model = &model_};
    if (out_.error) {
      input.refusal = &*out_.error;
    } else {
      input.context = &context_;
      input.memory = &memory_;
      input.devices = devices_ ? &*devices_ : nullptr;
      input.arguments = &arguments_;
      if (unserved_) input.unserved = fmt::format("layer {}: {}", *unserved_, unserved_reason());
    }
    out_.facts = model_facts(input);
  }

  const Request& request_;
  const Profile& profile_;
  Resolution out_;
  Arguments arguments_;
  Metadata metadata_;
  TensorNames tensors_;
  LoadedModel model_;
  Machine machine_;
  ContextPlan context_;
  MemoryPlan memory_;
  std::optional<std::int64_t> unserved_;
  std::optional<DeviceMemory> devices_;
};

}  // namespace

Resolution resolve(const Request& request, const Profile& profile) {
  return Resolver(request, profile).run();
}

}  // namespace kernelpath::engines::llamacpp
