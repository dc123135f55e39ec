#include "engines/deepinfer/answer.h"

#include "base/text.h"
#include "engines/answer_fields.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace kernelpath::engines::deepinfer {
namespace {

json::Value integers(std::span<const std::int64_t> numbers) {
  std::vector<json::Value> items;
  for (const std::int64_t number : numbers) items.push_back(json::Value::integer(number));
  return json::Value::array(std::move(items));
}

// A long list of sizes is summarised.
json::Value sizes_value(const std::optional<std::vector<std::int64_t>>& sizes) {
  constexpr std::size_t kShownWhole = 24;
  constexpr std::size_t kFirst = 8;
  constexpr std::size_t kLast = 4;
  if (!sizes) return json::Value::null();
  if (sizes->size() <= kShownWhole) return integers(*sizes);
  const std::span<const std::int64_t> all(*sizes);
  return AnswerObject()
      .add("count", static_cast<std::int64_t>(all.size()))
      .add("first", integers(all.first(kFirst)))
      .add("last", integers(all.last(kLast)))
      .add("sum", std::accumulate(all.begin(), all.end(), std::int64_t{0}))
      .take();
}

json::Value arguments_value(const StartUp& run) {
  return AnswerObject()
      .add("max_model_len", run.limits->max_model_len)
      .add("runtime_max_model_len", run.limits->runtime_model_len)
      .add("max_num_batched_tokens", run.limits->max_num_batched_tokens)
      .add_text("load_format", "auto")
      .add_text("dtype", "bfloat16")
      .add("block_size", kTokensPerBlock)
      .add("compressed_tokenizer", run.model->engram.compressed_tokenizer)
      .add("data_parallel_size", run.parallel->data)
      .add("context_parallel_size", run.parallel->context)
      .add("expert_parallel_size", run.parallel->expert)
      .add("engram_parallel_size", run.parallel->engram)
      .add("world_size", run.parallel->world)
      .add("data_parallel_rank", run.parallel->data_rank)
      .take();
}

json::Value layer_value(const LayerAttention& layer, std::int64_t first, std::int64_t last) {
  AnswerObject out;
  out.add("layers", integers(std::array{first, last}));
  out.add_text("role", layer.draft ? "draft" : "main");
  out.add("ratio", layer.ratio).add("sparse", layer.sparse).add("swa", true);
  out.add("fused", layer.fused);
  if (layer.ratio != 0) {
    out.add("kv_source", layer.kv_source)
        .add("index_source", layer.index_source)
        .add("index_k_source", layer.index_k_source);
  }
  if (!layer.indexer.empty()) {
    out.add_text("indexer", layer.indexer).add("index_chunk", layer.index_chunk);
  }
  if (!layer.draft) {
    out.add("yoco_consumer", layer.consumer).add_text("prefill", layer.prefill);
  }
  if (layer.padded_heads) out.add("padded_heads", *layer.padded_heads);
  out.add_text("decode", layer.decode);
  return out.take();
}

json::Value layers_value(const std::vector<LayerAttention>& layers) {
  std::vector<json::Value> groups;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[first]) ++last;
    groups.push_back(layer_value(layers[first], static_cast<std::int64_t>(first),
                                 static_cast<std::int64_t>(last)));
    first = last + 1;
  }
  return json::Value::array(std::move(groups));
}

json::Value truncation_value(const Truncation& truncation) {
  return AnswerObject()
      .add_text("mode", truncation.mode)
      .add("n_prefill_layer", truncation.boundary_layer)
      .add_integer("boundary", truncation.boundary)
      .add("targets_in_consumer", truncation.targets_in_consumer)
      .take();
}

void add_kv(AnswerObject& out, const KvCache& kv) {
  std::vector<json::Value> layout;
  for (const BlockPart& part : kv.layout) {
    layout.push_back(integers(std::array{part.layer, part.offset, part.bytes}));
  }
  out.add("block_size", kv.block_size)
      .add("bytes_per_block", kv.bytes_per_block)
      .add("layout", json::Value::array(std::move(layout)))
      .add("padding", kv.padding)
      .add("main_bytes_per_token", kv.main_bytes_per_token)
      .add("index_bytes_per_token", kv.index_bytes_per_token)
      .add("swa_bytes_per_token", kv.swa_bytes_per_token)
      .add("num_state_slots", kv.num_state_slots)
      .add("state_bytes_per_slot", kv.state_bytes_per_slot)
      .add("state_to_disk", kv.state_to_disk)
      .add("state_bytes_inference", kv.state_bytes_inference)
      .add("swa_layers_stored", kv.swa_layers_stored)
      .add("swa_layers_dropped", kv.swa_layers_dropped)
      .add("swa_tokens_per_slot", kv.swa_tokens_per_slot)
      .add("swa_tokens_inference", kv.swa_tokens_inference)
      .add("swa_bytes_per_layer", kv.swa_bytes_per_layer)
      .add("compress_state_bytes", kv.compress_state_bytes);
}

void add_configuration(AnswerObject& out, const StartUp& run) {
  const RegisteredModel& model = registered_model();
  out.add_text("architecture", model.architecture)
      .add("args", arguments_value(run))
      .add_text("model_class", model.class_name)
      .add_text("model_module", model.module)
      .add("multimodal", *run.multimodal);
  if (!run.graphs) return;
  out.add("cuda_graph", AnswerObject()
                            .add("main", run.graphs->main)
                            .add("draft", run.graphs->draft)
                            .add("main_sizes", sizes_value(run.graphs->main_sizes))
                            .add("draft_sizes", sizes_value(run.graphs->draft_sizes))
                            .take());
  if (!run.experts) return;
  out.add("moe", AnswerObject()
                     .add("routed", run.experts->routed)
                     .add("redundant", run.experts->redundant)
                     .add("draft_routed", run.experts->draft_routed)
                     .add("draft_redundant", run.experts->draft_redundant)
                     .take());
  out.add("max_num_decoding_tokens", run.limits->max_num_decoding_tokens)
      .add("max_num_prefilling_tokens", run.limits->max_num_batched_tokens / run.parallel->context);
}

json::Value start_up_value(const StartUp& run) {
  AnswerObject out;
  if (run.overlap_scheduling) {
    out.add("zero_overhead_scheduling", *run.overlap_scheduling)
        .add("multimodal_pool", *run.multimodal_pool);
  }
  if (run.limits) add_configuration(out, run);
  if (run.layers) out.add("layers", layers_value(*run.layers));
  if (run.truncation) out.add("yoco", truncation_value(*run.truncation));
  if (run.blocks_per_sequence) {
    out.add("max_num_blocks_per_seq", *run.blocks_per_sequence)
        .add("swa_block_size", run.window_ring->stored);
  }
  if (run.kv) {
    AnswerObject kv;
    add_kv(kv, *run.kv);
    out.add("kv", kv.take());
  }
  if (run.bf16_tflops) out.add("bf16_tflops", *run.bf16_tflops);
  out.add("error", fault_value(run.fault));
  return out.take();
}

// The cache for a block size of the caller's choice.
Result<json::Value> answer_kv_size(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  const std::int64_t block_size = fields.sized_integer("block_size", kTokensPerBlock, 1);
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto size = [&]() -> Checked<KvCache> {
    KERNELPATH_TRY(model, read_model(question.config, question.folder));
    KERNELPATH_TRY(topology, build_topology(model, question.variables));
    return size_kv_cache(model, topology, question.arguments, question.variables, block_size);
  };
  const auto kv = size();
  if (kv) add_kv(out, *kv);
  out.add("error", kv ? json::Value::null() : fault_value(kv.error()));
  return out.take();
}

Result<json::Value> answer_init_cache(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  const std::int64_t blocks = fields.required_integer("num_gpu_blocks");
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto check = [&]() -> Checked<std::int64_t> {
    KERNELPATH_TRY(limits, resolve_limits(question.arguments, question.variables));
    KERNELPATH_CHECK_OK(check_block_count(blocks, limits));
    return limits.runtime_model_len;
  };
  const auto length = check();
  if (length) out.add("runtime_max_model_len", *length);
  out.add("error", length ? json::Value::null() : fault_value(length.error()));
  return out.take();
}

constexpr std::array kWholeOps =
    std::to_array<std::string_view>({"resolve", "llm", "kv_size", "init_cache"});

Result<Machine> read_machine(AnswerFields& fields) {
  Machine machine;
  const std::string platform = fields.text("platform", "cuda");
  if (platform != "cuda" && platform != "ascend") {
    fields.refuse("platform", "must be cuda or ascend");
  }
  machine.platform = platform == "ascend" ? Platform::kAscend : Platform::kCuda;
  machine.sm = fields.optional_sm("sm");
  const std::string cpu = fields.text("machine", "x86_64");
  machine.arm_cpu = cpu == "aarch64" || cpu == "arm64";
  KERNELPATH_CHECK_OK(fields.status());
  return machine;
}

// A null value stands for a variable that is not set.
Result<TextPairs> read_environment(const json::Value& in) {
  TextPairs out;
  const json::Value* environment = in.find_non_null("env");
  if (environment == nullptr) return out;
  AnswerFields fields(*environment, "/in/env");
  if (!environment->is_object()) fields.refuse("", "must be an object of texts");
  KERNELPATH_CHECK_OK(fields.status());
  for (const json::Member& member : environment->members()) {
    const std::optional<std::string> value = fields.optional_text(member.key);
    KERNELPATH_CHECK_OK(fields.status());
    if (value) out.emplace_back(member.key, *value);
  }
  return out;
}

}  // namespace

std::span<const std::string_view> ops() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all(kWholeOps.begin(), kWholeOps.end());
    const auto parts = part_ops();
    all.insert(all.end(), parts.begin(), parts.end());
    return all;
  }();
  return kAll;
}

json::Value fault_value(const std::optional<Fault>& fault) {
  if (!fault) return json::Value::null();
  AnswerObject out;
  out.add("stage", json::Value::string(fault->stage))
      .add("type", json::Value::string(fault->type))
      .add("text", json::Value::string(fault->text));
  if (!fault->rule.empty()) out.add_text("rule", fault->rule);
  return out.take();
}

Result<Question> read_question(const json::Value& in) {
  AnswerFields fields(in, "/in");
  Question question;
  KERNELPATH_TRY(machine, read_machine(fields));
  question.machine = machine;
  const json::Value* config = in.find_non_null("config");
  if (config != nullptr && !config->is_object()) fields.refuse("config", "must be an object");
  KERNELPATH_CHECK_OK(fields.status());
  question.config = config;
  KERNELPATH_TRY(environment, read_environment(in));
  question.variables = Variables(environment, machine.platform == Platform::kAscend);
  return question;
}

Result<json::Value> answer(const json::Value& in) {
  AnswerFields fields(in, "/in");
  const std::string op = fields.text("op", "resolve");
  KERNELPATH_CHECK_OK(fields.status());
  KERNELPATH_TRY(question, read_question(in));
  const auto parts = part_ops();
  if (std::ranges::find(parts, op) != parts.end()) return answer_part(op, in, question);
  if (std::ranges::find(kWholeOps, op) == kWholeOps.end()) {
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "deepinfer answers no such op",
                 .where = "/in/op",
                 .value = shorten(op, 64),
                 .near_matches = near_matches(op, ops())});
  }
  const json::Value none = json::Value::object({});
  const json::Value* flags = in.find_non_null("flags");
  KERNELPATH_TRY(arguments, read_arguments(flags != nullptr ? *flags : none, "/in/flags"));
  question.arguments = arguments;
  if (op == "kv_size") return answer_kv_size(in, question);
  if (op == "init_cache") return answer_init_cache(in, question);
  // The offline class differs in defaults that decide nothing during start-up's Python rules.
  return start_up_value(start_up(question));
}

}  // namespace kernelpath::engines::deepinfer
