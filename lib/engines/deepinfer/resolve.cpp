#include "engines/deepinfer/resolve.h"

#include "base/text.h"
#include "engines/deepinfer/packages.h"
#include "engines/deepinfer/python.h"
#include "engines/deepinfer/request.h"
#include "engines/deepinfer/rules.h"
#include "engines/deepinfer/run_checks.h"
#include "engines/memory_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kFolder = "the model's folder";

std::string reason_of(const Fault& fault) {
  if (fault.text.empty()) return fmt::format("{} without a text ({})", fault.type, fault.rule);
  return fmt::format("{}: {}", fault.type, fault.text);
}

// The class of a layer that answers alike: its numbers do not matter.
bool same_group(const LayerAttention& a, const LayerAttention& b) {
  return a.ratio == b.ratio && a.sparse == b.sparse && a.fused == b.fused &&
         a.kv_source == b.kv_source;
}

std::string cache_shape(const StartUp& run, const LayerAttention& layer) {
  std::string ring =
      fmt::format("[num_slots, {}, {}]", run.window_ring->stored, kMxfp8BytesPerToken);
  if (layer.ratio == 0) return ring;
  return fmt::format("[num_blocks, {}, {}] beside {}", kTokensPerBlock / layer.ratio,
                     run.kv->main_bytes_per_token, ring);
}

std::string cache_dtype(const Model& model, const LayerAttention& layer) {
  if (layer.ratio == 0) return "mxfp8";
  return model.fp4_main_cache ? "fp4" : "mxfp8";
}

class Walk {
 public:
  explicit Walk(const Request& request) : request_(request) {
    out_.engine = "deepinfer";
    out_.version = "0.1.0";
    out_.requested_backend = "auto";
    out_.requested_by = "engine default";
  }

  Resolution run() {
    if (read_request() && find_machine() && check_packages() && start()) {
      describe();
      out_.memory = resolve_memory(request_, launch_.arguments, run_, out_);
      if (check_kernels()) check_run();
    }
    finish();
    return std::move(out_);
  }

 private:
  bool refuse(const Fault& fault, Stage stage, std::string_view rule, Status status,
              const std::string& reason) {
    append_step({.rule = rule,
                 .stage = stage,
                 .verdict = Verdict::kRejected,
                 .severity = Severity::kError,
                 .candidate = fault.stage,
                 .reason = reason},
                out_.steps);
    out_.status = status;
    out_.error = EngineError{
        .type = fault.type, .code = std::string(rule), .message = reason, .near_matches = {}};
    return false;
  }

  bool read_request() {
    auto launch = read_launch(request_.deployment, request_.environment);
    if (!launch) {
      return refuse({.stage = "args", .type = "TypeError"}, Stage::kFinalValue,
                    "DI-UNKNOWN-ARGUMENT", Status::kError, launch.error().text());
    }
    launch_ = std::move(*launch);
    for (const UnknownOption& option : launch_.unknown) {
      append_step({.rule = "DI-NO-OPTION",
                   .stage = Stage::kFinalValue,
                   .verdict = Verdict::kSkipped,
                   .severity = Severity::kWarn,
                   .candidate = option.option,
                   .reason = fmt::format("there is nothing like {} here (EngineArgs has no {}): it "
                                         "is left out",
                                         option.option, option.argument)},
                  out_.steps);
    }
    return true;
  }

  bool find_machine() {
    machine_ = machine_of(request_.device);
    if (!machine_) {
      return refuse({.stage = "device", .type = "RuntimeError"}, Stage::kAvailability, "DI-DEVICE",
                    Status::kUnsupported,
                    fmt::format("{} is neither an NVIDIA GPU nor an Ascend device; the engine "
                                "would take it for CUDA until its first call fails",
                                request_.device.id));
    }
    const bool ascend = machine_->platform == Platform::kAscend;
    append_step({.rule = "DI-PLATFORM",
                 .stage = Stage::kAvailability,
                 .verdict = Verdict::kSelected,
                 .candidate = ascend ? "ascend" : "cuda",
                 .reason = ascend ? "operators asc, collectives hccl, no fused kernels"
                                  : "operators cuda, collectives nccl"},
                out_.steps);
    return true;
  }

  bool check_packages() {
    for (const Package& package : kPackages) {
      if (request_.environment.available(package.option)) continue;
      auto fault = missing_package(package.name, machine_->platform);
      const bool tower =
          package.cuda == NeededAt::kVisionTower && machine_->platform == Platform::kCuda;
      if (tower) {
        fault = Fault{.stage = "build",
                      .type = "ModuleNotFoundError",
                      .text = "No module named " + python_repr(package.name)};
      }
      if (!fault) continue;
      if (package.cuda == NeededAt::kStructuredOutput) {
        append_step({.rule = "DI-PACKAGE",
                     .stage = Stage::kAvailability,
                     .severity = Severity::kWarn,
                     .candidate = std::string(package.name),
                     .reason = reason_of(*fault) + ", at the first structured-output request"},
                    out_.steps);
        continue;
      }
      return refuse(*fault, Stage::kAvailability, "DI-PACKAGE", Status::kError, reason_of(*fault));
    }
    return true;
  }

  bool start() {
    Question question;
    question.config = request_.model.file.is_object() ? &request_.model.file : nullptr;
    question.folder = kFolder;
    question.arguments = launch_.arguments;
    question.variables = Variables(launch_.variables, machine_->platform == Platform::kAscend);
    question.machine = *machine_;
    variables_ = question.variables;
    run_ = start_up(question);
    if (run_.model) {
      out_.model_class = registered_model().class_name;
      out_.model_module = registered_model().module;
    }
    // The kernels refuse a GPU before start-up asks for its throughput.
    if (!run_.fault || run_.fault->rule == "unknown-gpu") return true;
    const bool other_model = run_.fault->rule == "architecture-not-registered" ||
                             run_.fault->rule == "architectures-not-one-string" ||
                             run_.fault->rule == "model-type";
    return refuse(*run_.fault, other_model ? Stage::kModelClass : Stage::kConstruction,
                  rule_id(*run_.fault), other_model ? Status::kUnsupported : Status::kError,
                  reason_of(*run_.fault));
  }

  void describe() {
    out_.selected_backend = kBackend;
    out_.backend_class = "V4Attention";
    add_values();
    add_groups();
    for (const LayerGroup& group : out_.layers) {
      const bool fused = group.prefill.kernel.starts_with("fused");
      append_step({.rule = fused ? "DI-ATTENTION-FUSED" : "DI-ATTENTION-UNFUSED",
                   .stage = Stage::kInnerKernel,
                   .verdict = Verdict::kSelected,
                   .candidate = group.prefill.kernel,
                   .reason = fmt::format("{} layers from {}, cache {}", group.layers.size(),
                                         group.layers.front(), group.kv.dtype)},
                  out_.steps);
    }
    const LayerAttention& first = run_.layers->front();
    if (first.padded_heads) {
      append_step({.rule = "DI-ATTENTION-PADDED",
                   .stage = Stage::kInnerKernel,
                   .severity = Severity::kWarn,
                   .candidate = std::to_string(*first.padded_heads),
                   .reason = fmt::format("{} heads are padded to {}",
                                         run_.model->num_attention_heads, *first.padded_heads)},
                  out_.steps);
    }
  }

  void add_value(const std::string& name, const std::string& value, const std::string& reason) {
    append_step({.rule = "DI-ARG-FINAL",
                 .stage = Stage::kFinalValue,
                 .verdict = Verdict::kApplied,
                 .candidate = name,
                 .reason = fmt::format("{} = {}: {}", name, value, reason)},
                out_.steps);
    out_.options.push_back({name, value, "engine"});
  }

  void add_values() {
    for (const Argument& argument : launch_.stated) {
      out_.options.push_back({argument.name, argument.value, argument.set_by});
    }
    const Limits& limits = *run_.limits;
    add_value("runtime_max_model_len", std::to_string(limits.runtime_model_len),
              "max_model_len and what drafting and overlap scheduling add");
    if (!launch_.arguments.max_num_batched_tokens) {
      add_value("max_num_batched_tokens", std::to_string(limits.max_num_batched_tokens),
                "the longest prompt, 4096 or a decode step of all sequences");
    }
    add_value("zero_overhead_scheduling", *run_.overlap_scheduling ? "True" : "False",
              "off for PROMPT engines only, unless the variable says otherwise");
    const std::int64_t stated = request_.model.max_position_embeddings.value_or(0);
    if (!launch_.arguments.max_model_len && stated > limits.max_model_len) {
      append_step({.rule = "DI-MODEL-LEN-DEFAULT",
                   .stage = Stage::kFinalValue,
                   .severity = Severity::kWarn,
                   .candidate = "max_model_len",
                   .reason = fmt::format("{} tokens are served, the model states {}",
                                         limits.max_model_len, stated)},
                  out_.steps);
    }
    append_step({.rule = "DI-GRAPHS",
                 .stage = Stage::kFinalValue,
                 .candidate = run_.graphs->main ? "decode" : "none",
                 .reason = run_.graphs->main ? fmt::format("{} sizes up to {} tokens",
                                                           run_.graphs->main_sizes->size(),
                                                           run_.graphs->main_sizes->back())
                                             : "no graphs are captured"},
                out_.steps);
    append_step({.rule = "DI-KV-DTYPE",
                 .stage = Stage::kFinalValue,
                 .candidate = run_.model->fp4_main_cache ? "fp4" : "mxfp8",
                 .reason = "use_fp4_sparse_kv of config.json decides"},
                out_.steps);
  }

  void add_groups() {
    const std::vector<LayerAttention>& layers = *run_.layers;
    const auto backbone = static_cast<std::size_t>(run_.model->num_layers);
    std::vector<std::size_t> first_of_group;
    for (std::size_t layer = 0; layer < backbone; ++layer) {
      const auto group = std::ranges::find_if(first_of_group, [&](std::size_t first) {
        return same_group(layers[first], layers[layer]);
      });
      if (group == first_of_group.end()) {
        first_of_group.push_back(layer);
        out_.layers.push_back(group_of(layers[layer]));
        out_.layers.back().layers.push_back(static_cast<std::int64_t>(layer));
      } else {
        const auto index = static_cast<std::size_t>(group - first_of_group.begin());
        out_.layers[index].layers.push_back(static_cast<std::int64_t>(layer));
      }
    }
    for (LayerGroup& group : out_.layers) count_cache(group);
  }

  [[nodiscard]] LayerGroup group_of(const LayerAttention& layer) const {
    LayerGroup group;
    group.kind = layer.ratio == 0 ? config::LayerKind::kSliding
                 : layer.sparse   ? config::LayerKind::kSparse
                                  : config::LayerKind::kFull;
    if (layer.ratio == 0) group.window = run_.model->sliding_window;
    group.backend = out_.backend_class;
    group.prefill.kernel = layer.prefill;
    group.decode.kernel = layer.decode;
    group.kv = {.dtype = cache_dtype(*run_.model, layer),
                .layout = layer.ratio == 0  ? "window ring"
                          : layer.kv_source ? "blocks"
                                            : "blocks of its source layer",
                .page_size = kTokensPerBlock,
                .shape = cache_shape(run_, layer)};
    group.rope_fused = layer.fused;
    group.cuda_graph = run_.graphs->main ? "decode" : "none";
    return group;
  }

  // A token's share of what a block keeps for the group's layers.
  void count_cache(LayerGroup& group) const {
    std::vector<BlockPart> own;
    std::int64_t bytes = 0;
    for (const BlockPart& part : run_.kv->layout) {
      if (std::ranges::find(group.layers, part.layer) == group.layers.end()) continue;
      bytes += part.bytes;
      own.push_back(part);
    }
    group.kv_bytes_per_token = bytes / kTokensPerBlock;
    KvParts& parts = group.kv_parts;
    parts = block_parts(*run_.kv, own);
    for (std::int64_t* count :
         {&parts.values, &parts.data_bytes, &parts.scale_bytes, &parts.index_bytes}) {
      *count /= kTokensPerBlock;
    }
    parts.padding_bytes = 0;
    parts.padding_bytes = group.kv_bytes_per_token - bytes_of(parts);
  }

  bool check_kernels() {
    const std::optional<Fault> fault = first_kernel_refusal(run_, *machine_);
    if (!fault) return true;
    return refuse(*fault, Stage::kInnerKernel, "DI-KERNEL", Status::kError,
                  reason_of(*fault) +
                      " The engine finds this in its profile run, after it has "
                      "loaded the weights.");
  }

  // What start-up checks after the profile run, in its order.
  void check_run() {
    if (run_.fault) {
      refuse(*run_.fault, Stage::kAvailability, rule_id(*run_.fault), Status::kError,
             reason_of(*run_.fault));
      return;
    }
    const auto devices = check_engine_init(launch_.arguments, *variables_, false);
    const auto visible = visible_devices(*variables_, *machine_);
    const auto limits = check_scheduler_limits(launch_.arguments, *variables_);
    const auto rebalancing = check_rebalancing(*variables_);
    if (!visible) {
      refuse(visible.error(), Stage::kAvailability, "DI-VISIBLE-DEVICES-DIFFER", Status::kError,
             reason_of(visible.error()));
    } else if (!devices) {
      const bool assertion = devices.error().type == "AssertionError";
      refuse(devices.error(), Stage::kAvailability,
             assertion ? "DI-CONTEXT-PARALLEL-COMPLETION" : "DI-VISIBLE-DEVICES", Status::kError,
             assertion ? "AssertionError: context parallelism in a COMPLETION engine"
                       : reason_of(devices.error()));
    } else if (!rebalancing) {
      refuse(rebalancing.error(), Stage::kConstruction, rule_id(rebalancing.error()),
             Status::kError, reason_of(rebalancing.error()));
    } else if (!limits) {
      refuse(limits.error(), Stage::kConstruction, rule_id(limits.error()), Status::kError,
             reason_of(limits.error()));
    }
  }

  void finish() {
    for (const Step& step : out_.steps) {
      if (step.severity == Severity::kWarn) out_.warnings.push_back(step.reason);
    }
    std::ranges::stable_sort(out_.steps, {}, &Step::stage);
  }

  const Request& request_;
  Resolution out_;
  Launch launch_;
  std::optional<Machine> machine_;
  std::optional<Variables> variables_;
  StartUp run_;
};

}  // namespace

std::optional<Fault> first_kernel_refusal(const StartUp& run, const Machine& machine) {
  const auto call = [&](const LayerAttention& layer, bool prefill) {
    return check_kernel({.kernel = fmt::format("{}_{}", layer.fused ? "fused" : "sparse",
                                               prefill ? "prefill" : "decode"),
                         .heads = run.model->num_attention_heads},
                        machine)
        .fault;
  };
  for (const bool prefill : {true, false}) {
    for (const LayerAttention& layer : *run.layers) {
      if (layer.draft && prefill) continue;
      if (auto fault = call(layer, prefill)) return fault;
    }
  }
  return std::nullopt;
}

Resolution resolve(const Request& request) { return Walk(request).run(); }

}  // namespace kernelpath::engines::deepinfer
