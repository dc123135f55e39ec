#include "engines/vllm/answer_select.h"

#include "base/text.h"
#include "engines/answer_fields.h"
#include "engines/vllm/mla_prefill.h"
#include "engines/vllm/selector.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::vllm {
namespace {

using json::Value;

// The models of the recorded questions: which fields the rules can see.
struct RecordedModel {
  std::string_view name;
  std::optional<std::int64_t> nope;
  std::optional<std::int64_t> rope;
  std::optional<std::int64_t> value;
  std::optional<std::int64_t> kv_lora_rank;
  std::optional<std::int64_t> index_topk;
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
};

constexpr std::nullopt_t kNone = std::nullopt;
constexpr std::array kModels = {
    RecordedModel{"r1", 128, 64, 128, 512, kNone, 128, 1},
    RecordedModel{"v32", 128, 64, 128, 512, 2048, 128, 1},
    RecordedModel{"v32_topk1024", 128, 64, 128, 512, 1024, 128, 1},
    RecordedModel{"glm_dsa", 192, 64, 256, 512, 2048, 64, 1},
    RecordedModel{"mla64", 64, 64, 128, 256, kNone, 40, 1},
    RecordedModel{"mla96", 96, 32, 96, 256, kNone, 40, 1},
    RecordedModel{"gqa", kNone, kNone, kNone, kNone, kNone, 32, 8},
    RecordedModel{"mha", kNone, kNone, kNone, kNone, kNone, 16, 16},
    RecordedModel{"mqa", kNone, kNone, kNone, kNone, kNone, 8, 1},
    RecordedModel{"gqa_odd", kNone, kNone, kNone, kNone, kNone, 28, 3},
};

// What is missing on the machine of a recorded question.
struct RecordedProfile {
  std::string_view name;
  std::array<bool Packages::*, 2> missing;
};

constexpr std::array kProfiles = {
    RecordedProfile{"full", {nullptr, nullptr}},
    RecordedProfile{"no_flashinfer", {&Packages::flashinfer, nullptr}},
    RecordedProfile{"no_fa3", {&Packages::flash_attn_3, nullptr}},
    RecordedProfile{"no_fa4", {&Packages::flash_attn_4, nullptr}},
    RecordedProfile{"no_fa34", {&Packages::flash_attn_3, &Packages::flash_attn_4}},
    RecordedProfile{"no_flashmla", {&Packages::flashmla, nullptr}},
    RecordedProfile{"no_flashmla_ext", {&Packages::flashmla_extension, nullptr}},
    RecordedProfile{"no_tokenspeed", {&Packages::tokenspeed_mla, nullptr}},
    RecordedProfile{"no_trtllm_cubins", {&Packages::flashinfer_kernels, nullptr}},
    RecordedProfile{"no_sm120_sparse", {&Packages::flashinfer_sparse_sm120, nullptr}},
};

constexpr std::array<std::string_view, 3> kDtypes = {"bfloat16", "float16", "float32"};
constexpr std::array<std::string_view, 4> kAttentionTypes = {"decoder", "encoder", "encoder_only",
                                                             "encoder_decoder"};
// The recording says of a backend that cannot be imported no more than this, where it was asked for
// by name.
constexpr std::string_view kImportFailure = "<exception class>: <message>";

template <class Rows>
const typename Rows::value_type* find_row(const Rows& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void require_one_of(AnswerFields& fields, std::string_view name, std::string_view value,
                    std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  const std::vector<std::string> names(known.begin(), known.end());
  fields.refuse(name, "expected one of " + join(names, ", "));
}

Machine read_machine(AnswerFields& fields, const Profile& engine) {
  Machine machine;
  machine.capability = read_capability(fields);
  const std::string name = fields.text("profile", "full");
  const RecordedProfile* profile = find_row(kProfiles, name);
  if (profile == nullptr) {
    fields.refuse("profile", "no such profile of installed packages");
    return machine;
  }
  for (bool Packages::*const member : profile->missing) {
    if (member != nullptr) machine.packages.*member = false;
  }
  machine.packages.drop_dependents();
  // Since 0.33 the engine also wants ninja to compile, which the recording's machine did not have;
  // the recording claimed the sparse decode interface for SM120 all the same.
  if (engine.at_least(0, 33) && !machine.packages.flashinfer_kernels) {
    machine.packages.flashinfer_compiler = false;
    machine.packages.flashinfer_sm90_mla = false;
  }
  return machine;
}

std::optional<ModelFacts> read_model(AnswerFields& fields, const SelectorConfig& config) {
  const std::optional<std::string> name = fields.optional_text("model");
  if (!name) return std::nullopt;
  const RecordedModel* model = find_row(kModels, *name);
  if (model == nullptr) {
    fields.refuse("model", "no such model of the recorded questions");
    return std::nullopt;
  }
  return ModelFacts{.qk_nope_head_dim = model->nope,
                    .qk_rope_head_dim = model->rope,
                    .v_head_dim = model->value,
                    .kv_lora_rank = model->kv_lora_rank,
                    .index_topk = model->index_topk,
                    .index_topk_in_top_config = model->index_topk.has_value(),
                    .num_heads = model->num_heads,
                    .num_kv_heads = model->num_kv_heads,
                    .head_size = config.head_size,
                    .is_mm_prefix_lm = config.use_mm_prefix,
                    .rswa_window = fields.optional_integer("rswa_window")};
}

SelectorConfig read_config(AnswerFields& fields) {
  SelectorConfig config;
  config.head_size = fields.required_integer("head_size");
  config.dtype = fields.text("dtype", config.dtype);
  config.kv_dtype = fields.text("kv_cache_dtype", config.kv_dtype);
  config.block_size = fields.optional_integer("block_size");
  config.attention_type = fields.text("attn_type", config.attention_type);
  config.use_mla = fields.boolean("use_mla", false);
  config.use_sparse = fields.boolean("use_sparse", false);
  config.has_sink = fields.boolean("has_sink", false);
  config.use_mm_prefix = fields.boolean("use_mm_prefix", false);
  config.use_per_head_quant_scales = fields.boolean("use_per_head_quant_scales", false);
  config.use_non_causal = fields.boolean("use_non_causal", false);
  config.use_batch_invariant = fields.boolean("use_batch_invariant", false);
  config.use_kv_connector = fields.boolean("use_kv_connector", false);
  config.has_sliding_window = fields.boolean("has_sliding_window", false);
  config.use_rswa = fields.optional_integer("rswa_window").has_value();
  require_one_of(fields, "dtype", config.dtype, kDtypes);
  require_one_of(fields, "attn_type", config.attention_type, kAttentionTypes);
  if (config.head_size <= 0) fields.refuse("head_size", "must be positive");
  if (config.block_size && *config.block_size <= 0) {
    fields.refuse("block_size", "must be positive");
  }
  return config;
}

SelectorSettings read_settings(AnswerFields& fields, SelectorConfig& config) {
  SelectorSettings settings;
  settings.flash_attn_version = fields.optional_integer("flash_attn_version");
  settings.use_trtllm_attention = fields.optional_boolean("use_trtllm_attention");
  settings.batch_invariant = config.use_batch_invariant;
  settings.kv_connector = config.use_kv_connector;
  settings.dcp = fields.sized_integer("dcp", 1, 1);
  settings.pcp = fields.sized_integer("pcp", 1, 1);
  settings.model = read_model(fields, config);
  config.use_dcp = settings.dcp > 1;
  config.use_pcp = settings.pcp > 1;
  const auto version = settings.flash_attn_version;
  if (version && (*version < 2 || *version > 4)) {
    fields.refuse("flash_attn_version", "expected 2, 3 or 4");
  }
  return settings;
}

Value rejected_value(const Profile& profile, const Selection& selection) {
  std::vector<Value> rows;
  for (const Rejected& rejected : selection.rejected) {
    const bool placeholder =
        rejected.not_importable && !selection.automatic && profile.at_least(0, 33);
    rows.push_back(AnswerObject()
                       .add_text("backend", rejected.backend)
                       .add_texts("reasons", placeholder ? std::vector<std::string>{std::string(
                                                               kImportFailure)}
                                                         : rejected.reasons)
                       .take());
  }
  return Value::array(std::move(rows));
}

Value error_value(const Selection& selection) {
  if (!selection.error) return Value::null();
  return AnswerObject()
      .add_text("stage", selection.error->stage)
      .add_text("type", selection.error->type)
      .add_text("text", selection.error->text)
      .take();
}

// Until 0.32 a backend requires one layout, later it has a list.
void add_layouts(const Profile& profile, const Selection& selection, AnswerObject& out) {
  if (!selection.layouts) return;
  if (profile.at_least(0, 33)) {
    out.add_texts("layout", *selection.layouts);
  } else {
    out.add_text("layout", selection.layouts->front());
  }
}

Value selection_value(const Profile& profile, const Selection& selection, bool prefill) {
  AnswerObject out;
  out.add_text("backend", selection.backend)
      .add_text("class", selection.class_name)
      .add("error", error_value(selection))
      .add("rejected", rejected_value(profile, selection));
  add_layouts(profile, selection, out);
  // The recording of the prefill selector has no empty list.
  const bool listed = selection.automatic && (!prefill || !selection.valid.empty());
  if (listed) out.add_texts("valid", selection.valid);
  if (!selection.precluded.empty()) out.add_texts("precluded", selection.precluded);
  return out.take();
}

}  // namespace

hardware::Capability read_capability(AnswerFields& fields) {
  const auto capability = hardware::parse_capability(fields.required_text("cap"));
  if (capability) return *capability;
  fields.refuse("cap", capability.error().message);
  return {};
}

Result<Value> answer_select(const Profile& profile, const Value& in) {
  AnswerFields fields(in, "/in");
  KERNELPATH_CHECK_OK(fields.status());
  SelectorRequest request;
  request.config = read_config(fields);
  request.backend = fields.optional_text("backend");
  request.num_heads = fields.optional_integer("num_heads");
  const Machine machine = read_machine(fields, profile);
  const SelectorSettings settings = read_settings(fields, request.config);
  const bool prefill = fields.boolean("mla_prefill", false);
  const std::optional<std::string> prefill_backend = fields.optional_text("mla_prefill_backend");
  if (profile.find_kv_dtype(request.config.kv_dtype) == nullptr) {
    fields.refuse("kv_cache_dtype", "not a cache dtype of vLLM " + profile.version);
  }
  KERNELPATH_CHECK_OK(fields.status());
  const SelectorContext context{.profile = profile, .machine = machine, .settings = settings};
  const Selection selection =
      prefill ? select_mla_prefill(context, prefill_backend, request.config.dtype)
              : select_backend(context, request);
  return selection_value(profile, selection, prefill);
}

}  // namespace kernelpath::engines::vllm
