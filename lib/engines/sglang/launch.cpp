#include "engines/sglang/launch.h"

#include "base/text.h"
#include "engines/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

// Fields whose changes are no part of a report: paths, seeds, ports, sizes that follow from others.
constexpr std::array<std::string_view, 30> kQuietFields = {
    "_radix_eviction_policy_explicitly_set",
    "_speculative_draft_quantization_explicitly_set",
    "_swa_full_tokens_ratio_explicitly_set",
    "cuda_graph_backend_prefill",
    "cuda_graph_max_bs_prefill",
    "dcp_comm_backend",
    "deepep_mode",
    "device",
    "disable_aiter_allreduce_fusion_in_prefill",
    "disaggregation_decode_extra_slots",
    "disaggregation_ib_device",
    "enable_dp_attention",
    "enable_flashinfer_allreduce_fusion",
    "enable_tp_lm_head_all_to_all",
    "encoder_transfer_backend",
    "grpc_worker_threads",
    "hicache_ratio",
    "mem_fraction_static",
    "mm_feature_transport",
    "mm_process_config",
    "random_seed",
    "schedule_conservativeness",
    "served_model_name",
    "speculative_draft_model_quantization",
    "speculative_draft_model_revision",
    "speculative_moe_a2a_backend",
    "speculative_moe_runner_backend",
    "tokenizer_path",
    "torch_compile_max_bs",
    "triton_attention_num_kv_splits"};

bool quiet(std::string_view field) {
  return std::binary_search(kQuietFields.begin(), kQuietFields.end(), field);
}

// A rule may decide a field twice: the place is that of the first, the value that of the last.
void keep_last_of_each(Declaration& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (std::size_t j = fields.size() - 1; j > i; --j) {
      if (fields[j].first != fields[i].first) continue;
      fields[i].second = fields[j].second;
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(j));
      break;
    }
  }
}

bool is_false(std::string_view text) {
  const std::string lower = to_lower(text);
  return lower.empty() || lower == "0" || lower == "false" || lower == "no" || lower == "off" ||
         lower == "n" || lower == "f";
}

}  // namespace

Launch::Launch(const Profile& profile, Input input)
    : profile_(&profile), input_(std::move(input)), arguments_(profile, input_.arguments) {
  graph_.prefill = default_prefill_graph();
}

const std::string* Launch::variable_text(std::string_view name) const {
  const auto found = std::find_if(input_.variables.begin(), input_.variables.end(),
                                  [&](const auto& row) { return row.first == name; });
  return found == input_.variables.end() ? nullptr : &found->second;
}

bool Launch::variable(std::string_view name) const {
  const std::string* found = variable_text(name);
  return found != nullptr && !is_false(*found);
}

std::string Launch::prefill_backend() const {
  std::string own = text("prefill_attention_backend");
  return own.empty() ? text("attention_backend") : own;
}

std::string Launch::decode_backend() const {
  std::string own = text("decode_attention_backend");
  return own.empty() ? text("attention_backend") : own;
}

bool Launch::no_backend_set() const {
  return unset("attention_backend") && unset("prefill_attention_backend") &&
         unset("decode_attention_backend");
}

bool Launch::extra_buffer() const {
  const std::string strategy = text("mamba_radix_cache_strategy");
  return !flag("disable_radix_cache") &&
         (strategy == "extra_buffer" || strategy == "extra_buffer_lazy");
}

void Launch::declare(std::string_view rule, Declaration fields) {
  keep_last_of_each(fields);
  Event event{.rule = std::string(rule), .kind = Event::Kind::kSet, .text = {}, .changes = {}};
  for (auto& [name, value] : fields) {
    const json::Value before = arguments_.value(name);
    arguments_.declare(rule, name, value);
    if (before == value && before.type() == value.type()) continue;
    if (quiet(name)) continue;
    event.changes.push_back({.field = name, .before = before, .after = std::move(value)});
  }
  if (!event.changes.empty()) events_.push_back(std::move(event));
}

void Launch::info(std::string_view rule, std::string text) {
  events_.push_back({.rule = std::string(rule),
                     .kind = Event::Kind::kInfo,
                     .text = std::move(text),
                     .changes = {}});
}

void Launch::warn(std::string_view rule, std::string text) {
  events_.push_back({.rule = std::string(rule),
                     .kind = Event::Kind::kWarning,
                     .text = std::move(text),
                     .changes = {}});
}

void Launch::refuse(std::string_view stage, std::string_view type, std::string_view rule,
                    std::string text) {
  if (refusal_) return;  // the first one ends the process
  refusal_ = Refusal{.stage = std::string(stage),
                     .type = std::string(type),
                     .rule = std::string(rule),
                     .text = std::move(text)};
}

std::string Launch::default_prefill_graph() const {
  return input_.platform.cuda() ? "breakable" : "disabled";
}

json::Value Launch::graph_value() const {
  return json::Value::object(
      {{.key = "decode", .value = json::Value::string(graph_.decode), .key_offset = 0},
       {.key = "prefill", .value = json::Value::string(graph_.prefill), .key_offset = 0}});
}

void Launch::record_graph(std::string_view rule, const json::Value& before) {
  json::Value after = graph_value();
  if (before == after) return;
  events_.push_back(
      {.rule = std::string(rule),
       .kind = Event::Kind::kSet,
       .text = {},
       .changes = {{.field = "cuda_graph_config", .before = before, .after = std::move(after)}}});
}

void Launch::set_graph(std::string_view rule, GraphPhase phase, std::string_view backend) {
  const json::Value before = graph_value();
  (phase == GraphPhase::kDecode ? graph_.decode : graph_.prefill) = std::string(backend);
  record_graph(rule, before);
}

void Launch::disable_graphs(std::string_view rule) {
  set_graph(rule, GraphPhase::kDecode, "disabled");
  set_graph(rule, GraphPhase::kPrefill, "disabled");
}

std::string python_list(std::span<const std::string> names) { return engines::python_list(names); }

std::string python_repr(std::string_view text) {
  return text.empty() ? "None" : engines::python_repr(text);
}

std::string python_none(std::optional<std::int64_t> value) {
  return engines::python_integer(value);
}

}  // namespace kernelpath::engines::sglang
