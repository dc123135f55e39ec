#include "base/assert.h"
#include "base/text.h"
#include "engines/answer_fields.h"
#include "engines/deepinfer/answer.h"
#include "engines/deepinfer/packages.h"
#include "engines/deepinfer/run_checks.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::deepinfer {
namespace {

// An object of flags that is allowed to be absent.
const json::Value& flags_of(const json::Value& in) {
  static const json::Value kNone = json::Value::object({});
  const json::Value* flags = in.find_non_null("flags");
  return flags != nullptr ? *flags : kNone;
}

template <class Value>
json::Value error_of(const Checked<Value>& checked) {
  return checked ? json::Value::null() : fault_value(checked.error());
}

Result<json::Value> answer_graph_sizes(const json::Value& in, const Question& /*question*/) {
  AnswerFields fields(flags_of(in), "/in/flags");
  const std::int64_t largest = fields.required_integer("max_size");
  const std::int64_t interval = fields.required_integer("interval");
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto sizes = graph_sizes(largest, interval, "graph_sizes");
  if (sizes) {
    std::vector<json::Value> items;
    for (const std::int64_t size : *sizes) items.push_back(json::Value::integer(size));
    out.add("sizes", json::Value::array(std::move(items)));
  }
  return out.add("error", error_of(sizes)).take();
}

Result<json::Value> answer_pad_heads(const json::Value& in, const Question& /*question*/) {
  AnswerFields fields(flags_of(in), "/in/flags");
  const std::int64_t heads = fields.required_integer("heads");
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto padded = padded_heads(heads, "pad_heads");
  if (padded) out.add("padded", *padded);
  return out.add("error", error_of(padded)).take();
}

Result<json::Value> answer_env(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  const std::string name = fields.required_text("name");
  KERNELPATH_CHECK_OK(fields.status());
  const auto all = variables();
  const auto row =
      std::ranges::find_if(all, [&](const VariableInfo& info) { return info.name == name; });
  if (row == all.end()) {
    std::vector<std::string_view> names;
    for (const VariableInfo& info : all) names.push_back(info.name);
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "deepinfer reads no such variable",
                 .where = "/in/name",
                 .value = shorten(name, 64),
                 .near_matches = near_matches(name, names)});
  }
  AnswerObject out;
  const auto value = question.variables.value(*row, "env");
  if (value) out.add("value", *value);
  return out.add("error", error_of(value)).take();
}

Result<json::Value> answer_eplb(const json::Value& in, const Question& question) {
  AnswerFields fields(flags_of(in), "/in/flags");
  const std::int64_t ranks = fields.sized_integer("expert_parallel_size", 1, 1);
  const std::int64_t routed = fields.required_integer("n_routed_experts");
  const std::string type = fields.text("engine_type", "NORMAL");
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto extra = question.variables.count("OVERRIDE_NUM_EXTRA_EXPERTS", "eplb");
  if (!extra) return out.add("error", error_of(extra)).take();
  const std::int64_t redundant = redundant_experts(routed, *extra, ranks);
  out.add("extra_experts", redundant);
  const auto interval = check_rebalancing(question.variables);
  if (!interval) return out.add("error", error_of(interval)).take();
  const std::int64_t physical = routed + redundant;
  // The redundant experts are copies of the first ones.
  constexpr std::int64_t kShown = 8;
  std::vector<json::Value> tail;
  for (std::int64_t i = 0; i < std::min(redundant, kShown); ++i) {
    tail.push_back(json::Value::integer(i % std::max<std::int64_t>(1, routed)));
  }
  std::optional<std::int64_t> first;
  if (*interval != 0) first = std::max<std::int64_t>(1, *interval / 4);
  return out.add("physical", physical)
      .add("local", physical / ranks)
      .add_integer("first_rearrange_after", first)
      .add("skip_on_prefill",
           type == "NORMAL" && !question.variables.flag("REARRANGE_AFTER_PREFILL_IN_NORMAL_ENGINE"))
      .add("map_tail", json::Value::array(std::move(tail)))
      .add_null("error")
      .take();
}

Result<json::Value> answer_sampling(const json::Value& in, const Question& /*question*/) {
  AnswerFields fields(flags_of(in), "/in/flags");
  SamplingParameters parameters;
  parameters.temperature = fields.number("temperature", parameters.temperature);
  parameters.top_p = fields.number("top_p", parameters.top_p);
  parameters.top_k = fields.integer("top_k", parameters.top_k);
  parameters.max_tokens = fields.integer("max_tokens", parameters.max_tokens);
  parameters.top_logprobs = fields.integer("top_logprobs", parameters.top_logprobs);
  const json::Value* seed = fields.raw("seq_seed");
  parameters.seed_is_integer = seed == nullptr || seed->is_null() || seed->is_integer();
  KERNELPATH_CHECK_OK(fields.status());
  AnswerObject out;
  const auto checked = check_sampling(parameters, flags_of(in));
  if (checked) {
    out.add("temperature", json::Value::number(checked->temperature))
        .add("top_p", json::Value::number(checked->top_p))
        .add("top_k", checked->top_k)
        .add("max_tokens", checked->max_tokens);
  }
  return out.add("error", error_of(checked)).take();
}

Result<json::Value> answer_tokenizer(const json::Value& /*in*/, const Question& question) {
  return AnswerObject()
      .add("error", error_of(check_tokenizer(question.config, question.folder, {})))
      .take();
}

Result<json::Value> answer_weights(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  WeightIndex index;
  const json::Value* map = in.find_non_null("index");
  if (map != nullptr) {
    index.found = true;
    if (!map->is_object()) fields.refuse("index", "must be an object");
    KERNELPATH_CHECK_OK(fields.status());
    AnswerFields tensors(*map, "/in/index");
    for (const json::Member& member : map->members()) {
      index.shard_of.emplace_back(member.key, tensors.required_text(member.key));
    }
    KERNELPATH_CHECK_OK(tensors.status());
  }
  index.shards_present = fields.text_list("shards_present");
  KERNELPATH_CHECK_OK(fields.status());
  return AnswerObject().add("error", error_of(check_weight_index(index, question.folder))).take();
}

Result<json::Value> answer_platform(const json::Value& /*in*/, const Question& question) {
  const bool ascend = question.machine.platform == Platform::kAscend;
  AnswerObject out;
  const auto visible = visible_devices(question.variables, question.machine);
  if (visible) {
    out.add_text("backend", ascend ? "hccl" : "nccl")
        .add_text("ops", ascend ? "asc" : "cuda")
        .add_text("sf", ascend ? "int16" : "int32")
        .add_text("cuda_visible", *visible);
  }
  return out.add("error", error_of(visible)).take();
}

Result<json::Value> answer_missing_package(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  const std::string package = fields.required_text("package");
  KERNELPATH_CHECK_OK(fields.status());
  return AnswerObject()
      .add("error", fault_value(missing_package(package, question.machine.platform)))
      .take();
}

Result<json::Value> answer_kernel_check(const json::Value& in, const Question& question) {
  AnswerFields fields(in, "/in");
  KernelQuestion kernel;
  kernel.kernel = fields.required_text("kernel");
  kernel.heads = fields.integer("heads", 64);
  kernel.topk = fields.optional_integer("topk");
  kernel.kv_bytes_per_token = fields.optional_integer("kv_bytes_per_token");
  KERNELPATH_CHECK_OK(fields.status());
  const KernelAnswer checked = check_kernel(kernel, question.machine);
  AnswerObject out;
  out.add("error", fault_value(checked.fault));
  if (!checked.implementation.empty()) out.add_text("impl", checked.implementation);
  if (checked.padded_heads) out.add("padded_heads", *checked.padded_heads);
  return out.take();
}

Result<json::Value> answer_scheduler(const json::Value& in, const Question& question) {
  KERNELPATH_TRY(arguments, read_arguments(flags_of(in), "/in/flags"));
  AnswerObject out;
  const auto limit = check_scheduler_limits(arguments, question.variables);
  if (limit) out.add("prefill_max_sum_seqlen_k", *limit);
  return out.add("error", error_of(limit)).take();
}

Result<json::Value> answer_engine_init(const json::Value& in, const Question& question) {
  KERNELPATH_TRY(arguments, read_arguments(flags_of(in), "/in/flags"));
  const json::Value* environment = in.find_non_null("env");
  const json::Value* visible =
      environment != nullptr ? environment->find("CUDA_VISIBLE_DEVICES") : nullptr;
  const bool unset = visible != nullptr && visible->is_null();
  return AnswerObject()
      .add("error", error_of(check_engine_init(arguments, question.variables, unset)))
      .take();
}

struct PartOp {
  std::string_view name;
  Result<json::Value> (*answer)(const json::Value&, const Question&);
};
constexpr std::array kPartOps = std::to_array<PartOp>({
    {"graph_sizes", answer_graph_sizes},
    {"pad_heads", answer_pad_heads},
    {"env", answer_env},
    {"eplb", answer_eplb},
    {"sampling", answer_sampling},
    {"tokenizer", answer_tokenizer},
    {"weights", answer_weights},
    {"platform", answer_platform},
    {"missing_package", answer_missing_package},
    {"kernel_check", answer_kernel_check},
    {"scheduler", answer_scheduler},
    {"engine_init", answer_engine_init},
});

}  // namespace

std::span<const std::string_view> part_ops() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    names.reserve(kPartOps.size());
    for (const PartOp& op : kPartOps) names.push_back(op.name);
    return names;
  }();
  return kNames;
}

Result<json::Value> answer_part(std::string_view op, const json::Value& in,
                                const Question& question) {
  const auto* const row =
      std::ranges::find_if(kPartOps, [&](const PartOp& part) { return part.name == op; });
  KERNELPATH_ASSERT(row != kPartOps.end());
  return row->answer(in, question);
}

}  // namespace kernelpath::engines::deepinfer
