#include "engines/trtllm/resolve.h"

#include "base/text.h"
#include "engines/trtllm/arguments.h"
#include "engines/trtllm/attention_module.h"
#include "engines/trtllm/class_resolution.h"
#include "engines/trtllm/kv_dtype.h"
#include "engines/trtllm/layer_resolution.h"
#include "engines/trtllm/memory_resolution.h"
#include "engines/trtllm/model_config_rules.h"
#include "engines/trtllm/model_defaults.h"
#include "engines/trtllm/modeling_v2.h"
#include "engines/trtllm/rules_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

// The walk over one request. Each step returns false where the engine stops.
class Walk {
 public:
  Walk(const Request& request, const Profile& profile) : request_(request), profile_(profile) {
    out_.engine = "trtllm";
    out_.version = profile.version;
  }

  Resolution run() {
    if (read_arguments() && find_class() && check_device() && apply_model_defaults() &&
        build_model_config() && resolve_attention()) {
      out_.status = out_.fallback_rule.empty() ? Status::kOk : Status::kFallback;
    }
    fill_options();
    return std::move(out_);
  }

 private:
  bool stop(Status status, EngineError error) {
    out_.status = status;
    out_.error = std::move(error);
    return false;
  }

  bool read_arguments() {
    auto arguments = Arguments::read(request_.deployment);
    if (!arguments) {
      return stop(Status::kError, {.type = "ValueError",
                                   .code = "ARGUMENTS",
                                   .message = arguments.error().text(),
                                   .near_matches = arguments.error().near_matches});
    }
    arguments_ = std::move(*arguments);
    const auto mode = parse_modeling_v2(arguments_->text("modeling_v2").value_or("off"));
    if (!mode) {
      return stop(Status::kError, {.type = "ValueError",
                                   .code = "MODELING-V2-MODE",
                                   .message = mode.error().text(),
                                   .near_matches = mode.error().near_matches});
    }
    modeling_v2_ = *mode;
    note_unread_options();
    return true;
  }

  // Common options that other engines have and this one has not.
  void note_unread_options() {
    const Deployment& deployment = request_.deployment;
    const auto unread = std::to_array<std::pair<std::string_view, bool>>(
        {{"--quantization", deployment.quantization.has_value()},
         {"--dp", deployment.dp != 1},
         {"--dcp", deployment.dcp != 1},
         {"--draft-topk", deployment.draft_topk.has_value()}});
    for (const auto& [option, given] : unread) {
      if (!given) continue;
      append_engine_step({.rule = "TRT-ARG-UNREAD",
                          .stage = Stage::kFinalValue,
                          .verdict = Verdict::kSkipped,
                          .severity = Severity::kWarn,
                          .candidate = std::string(option),
                          .reason = fmt::format("{} has no effect here: no argument of the engine "
                                                "stands for it",
                                                option)},
                         out_.steps);
    }
  }

  [[nodiscard]] std::int64_t size_of(std::string_view name) const {
    return arguments_->integer(name).value_or(1);
  }

  bool find_class() {
    const ClassOptions options = {.mm_encoder_only = arguments_->flag("mm_encoder_only"),
                                  .modeling_v2 = modeling_v2_,
                                  .capability = request_.device.capability,
                                  .world_size = size_of("tensor_parallel_size") *
                                                size_of("pipeline_parallel_size") *
                                                size_of("context_parallel_size")};
    ClassResolution found =
        resolve_model_class(request_.model, options, request_.environment, profile_);
    out_.model_class = found.model_class;
    out_.model_module = found.module;
    std::move(found.steps.begin(), found.steps.end(), std::back_inserter(out_.steps));
    encoder_only_ = found.is_vision_encoder;
    if (found.error) return stop(Status::kUnsupported, std::move(*found.error));
    return true;
  }

  bool check_device() {
    const hardware::Device& device = request_.device;
    if (device.platform == hardware::Platform::kCuda && device.capability) return true;
    const std::string reason =
        fmt::format("the PyTorch backend needs an NVIDIA GPU, {} is none", device.id);
    append_engine_step({.rule = "TRT-DEVICE",
                        .stage = Stage::kAvailability,
                        .verdict = Verdict::kRejected,
                        .severity = Severity::kError,
                        .candidate = device.id,
                        .reason = reason},
                       out_.steps);
    return stop(Status::kUnsupported,
                {.type = "RuntimeError", .code = "DEVICE", .message = reason, .near_matches = {}});
  }

  bool apply_model_defaults() {
    std::vector<std::pair<std::string, std::string>> user;
    for (const ArgumentInfo& info : argument_table()) {
      if (!arguments_->set_by_user(info.name)) continue;
      user.emplace_back(info.name, arguments_->text(info.name).value_or(""));
    }
    const std::vector<MergedDefault> merged = merge_model_defaults(architecture(), user);
    append_steps(merged, out_.steps);
    for (const MergedDefault& row : merged) {
      if (row.from_model) arguments_->set_model_default(row.path, row.value);
    }
    out_.requested_backend = arguments_->text("attn_backend").value_or("");
    out_.requested_by = arguments_->set_by("attn_backend");
    append_engine_step(
        {.rule = "TRT-ARG-FINAL",
         .stage = Stage::kFinalValue,
         .verdict = Verdict::kApplied,
         .candidate = "attn_backend",
         .reason = fmt::format("{} ({})", out_.requested_backend, out_.requested_by)},
        out_.steps);
    return true;
  }

  [[nodiscard]] std::string architecture() const {
    return request_.model.architectures.empty() ? std::string()
                                                : request_.model.architectures.front();
  }

  [[nodiscard]] std::optional<SparseOptions> sparse_options() const {
    const auto algorithm = arguments_->text("sparse_attention_config.algorithm");
    if (!algorithm) return std::nullopt;
    SparseOptions out;
    out.algorithm = *algorithm;
    return out;
  }

  bool build_model_config() {
    const bool mtp = arguments_->text("speculative_config.decoding_type") == "MTP";
    const ModelConfigDecision decision = model_config_post_init(
        request_.model,
        {.sparse = sparse_options(),
         .mtp_layers = mtp ? request_.model.draft.num_nextn_predict_layers.value_or(0) : 0,
         .max_num_tokens = arguments_->integer("max_num_tokens").value_or(8192),
         .dp_size = arguments_->flag("enable_attention_dp") ? size_of("tensor_parallel_size") : 1,
         .moe_max_num_tokens = std::nullopt,
         .mm_encoder_only = encoder_only_});
    append_steps(decision, out_.steps);
    if (decision.error) return stop(Status::kError, *decision.error);
    sparse_ = decision.sparse;
    const std::string asked = arguments_->text("dtype").value_or("auto");
    const auto type = parse_data_type(to_lower(asked == "auto" ? decision.dtype : asked));
    if (!type) {
      return stop(Status::kError, {.type = "ValueError",
                                   .code = "DTYPE",
                                   .message = fmt::format("{} is no dtype of activations", asked),
                                   .near_matches = {}});
    }
    dtype_ = *type;
    infer_length();
    return true;
  }

  void infer_length() {
    const MaxSeqLenDecision inferred = infer_max_seq_len(request_.model);
    append_steps(inferred, out_.steps);
    max_seq_len_ = inferred.max_seq_len;
    if (architecture().rfind("Llama4", 0) == 0) {
      const Llama4SeqLenDecision llama4 =
          llama4_inferred_max_seq_len(out_.requested_backend, inferred.max_seq_len);
      append_steps(llama4, out_.steps);
      max_seq_len_ = llama4.inferred_max_seq_len;
    }
    const auto stated = arguments_->integer("max_seq_len");
    if (stated) note_length_over_model(*stated);
    if (stated) max_seq_len_ = *stated;
    append_engine_step(
        {.rule = "TRT-ARG-FINAL",
         .stage = Stage::kFinalValue,
         .verdict = Verdict::kApplied,
         .candidate = "max_seq_len",
         .reason = fmt::format("{} ({})", max_seq_len_,
                               stated ? arguments_->set_by("max_seq_len") : "inferred")},
        out_.steps);
  }

  // max_seq_len_ is what was inferred; a model without a length has none to exceed.
  void note_length_over_model(std::int64_t stated) {
    if (!request_.model.max_position_embeddings || stated <= max_seq_len_) return;
    append_engine_step(
        {.rule = "TRT-SEQ-OVER-MODEL",
         .stage = Stage::kFinalValue,
         .verdict = Verdict::kNoted,
         .severity = Severity::kWarn,
         .candidate = "max_seq_len",
         .reason = fmt::format("max_seq_len {} is more than the model's {}", stated, max_seq_len_)},
        out_.steps);
  }

  bool resolve_attention() {
    const KvDtypeDecision kv = kv_cache_dtype(request_.model, *arguments_, dtype_);
    append_steps(kv, out_.steps);
    if (kv.error) return stop(Status::kError, *kv.error);
    // A vision encoder has no text layers to resolve.
    if (encoder_only_) return true;
    const LayerContext context = {.request = request_,
                                  .arguments = *arguments_,
                                  .architecture = architecture(),
                                  .backend = out_.requested_backend,
                                  .sparse = sparse_,
                                  .dtype = dtype_,
                                  .kv_dtype = kv.type,
                                  .kv_dtype_asked = kv.asked,
                                  .max_seq_len = max_seq_len_,
                                  .max_seq_len_stated = arguments_->set_by_user("max_seq_len")};
    LayerResolution layers = resolve_layers(context, out_.steps);
    out_.selected_backend = layers.selected_backend;
    out_.backend_class = layers.backend_class;
    if (layers.fell_back) {
      out_.fallback_rule = "TRT-ATTN-FALLBACK";
      out_.fallback_reason = layers.fallback_reason;
    }
    out_.layers = std::move(layers.groups);
    if (layers.error) return stop(Status::kError, std::move(*layers.error));
    out_.memory = resolve_memory(context, out_.layers, out_.steps);
    return true;
  }

  void fill_options() {
    if (!arguments_) return;
    const auto values = arguments_->values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string text = values[i].text.empty() ? "null" : values[i].text;
      out_.options.push_back({std::string(argument_table()[i].name), text, values[i].set_by});
    }
    for (const Step& step : out_.steps) {
      // What does not fit is no refusal of the engine yet; nobody should have to ask --why for it.
      const bool too_large = step.severity == Severity::kError && step.stage == Stage::kMemory;
      if (step.severity == Severity::kWarn || too_large) out_.warnings.push_back(step.reason);
    }
  }

  const Request& request_;
  const Profile& profile_;
  Resolution out_;
  std::optional<Arguments> arguments_;
  ModelingV2Mode modeling_v2_ = ModelingV2Mode::kOff;
  std::optional<SparseSettings> sparse_;
  DataType dtype_ = DataType::kBf16;
  std::int64_t max_seq_len_ = 0;
  bool encoder_only_ = false;
};

}  // namespace

Resolution resolve(const Request& request, const Profile& profile) {
  return Walk(request, profile).run();
}

}  // namespace kernelpath::engines::trtllm
