// Source of names and defaults: llama.cpp 0c1e5709, common/arg.cpp, common/common.h,
// ggml/CMakeLists.txt.
#include "engines/llamacpp/arguments.h"

#include "base/text.h"
#include "engines/llamacpp/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr auto kSettings = std::to_array<SettingInfo>({
    {"n_ctx", "-c, --ctx-size", "0", "tokens of all sequences together; 0: the model's",
     "LLAMA_ARG_CTX_SIZE"},
    {"n_batch", "-b, --batch-size", "2048", "tokens of a logical batch", "LLAMA_ARG_BATCH"},
    {"n_ubatch", "-ub, --ubatch-size", "512", "tokens of a physical batch", "LLAMA_ARG_UBATCH"},
    {"n_parallel", "-np, --parallel", "1",
     "sequences at a time; -1: the server's choice, 4 in one buffer", "LLAMA_ARG_N_PARALLEL"},
    {"cache_type_k", "-ctk, --cache-type-k", "f16", "type of cached keys",
     "LLAMA_ARG_CACHE_TYPE_K"},
    {"cache_type_v", "-ctv, --cache-type-v", "f16", "type of cached values",
     "LLAMA_ARG_CACHE_TYPE_V"},
    {"flash_attn", "-fa, --flash-attn", "auto", "auto, on or off", "LLAMA_ARG_FLASH_ATTN"},
    {"kv_unified", "-kvu, --kv-unified", "false", "one buffer for all sequences",
     "LLAMA_ARG_KV_UNIFIED"},
    {"swa_full", "--swa-full", "false", "sliding layers keep every token", "LLAMA_ARG_SWA_FULL"},
    {"kv_offload", "-nkvo, --no-kv-offload", "true", "K and V lie with their layers",
     "LLAMA_ARG_KV_OFFLOAD"},
    {"n_gpu_layers", "-ngl, --n-gpu-layers", "auto",
     "layers on GPUs, the output layer too: a number, all, or auto (all that --fit allows)",
     "LLAMA_ARG_N_GPU_LAYERS"},
    {"split_mode", "-sm, --split-mode", "layer", "none, layer, row or tensor",
     "LLAMA_ARG_SPLIT_MODE"},
    {"tensor_split", "-ts, --tensor-split", "", "share of each GPU: 3,1; empty: by free memory",
     "LLAMA_ARG_TENSOR_SPLIT"},
    {"main_gpu", "-mg, --main-gpu", "0", "the GPU of split mode none", "LLAMA_ARG_MAIN_GPU"},
    {"devices", "-dev, --device", "", "names of the GPUs to use: CUDA0,CUDA1; empty: all",
     "LLAMA_ARG_DEVICE"},
    {"cpu_moe", "-cmoe, --cpu-moe", "false", "all experts stay on the CPU", "LLAMA_ARG_CPU_MOE"},
    {"n_cpu_moe", "-ncmoe, --n-cpu-moe", "0", "layers whose experts stay on the CPU",
     "LLAMA_ARG_N_CPU_MOE"},
    {"n_cpu_ffn", "-ncffn, --n-cpu-ffn", "0", "layers whose dense MLP stays on the CPU",
     "LLAMA_ARG_N_CPU_FFN"},
    {"fit_params", "-fit, --fit", "on", "what is left open shrinks until the model fits",
     "LLAMA_ARG_FIT"},
    {"speculative.types", "--spec-type", "none", "kinds of speculative decoding, between commas",
     "LLAMA_ARG_SPEC_TYPE"},
    {"speculative.draft.n_max", "--spec-draft-n-max", "3", "tokens to draft",
     "LLAMA_ARG_SPEC_DRAFT_N_MAX"},
    {"build.cuda", "CUDA toolkit of the build", "13", "12 also has kernels for Pascal and Volta"},
    {"build.fa_all_quants", "GGML_CUDA_FA_ALL_QUANTS", "false",
     "vector kernels for every pair of cache types"},
});

constexpr std::int64_t kAutomatic = -1;
constexpr std::int64_t kServerSlots = 4;   // tools/server/server.cpp
constexpr std::int64_t kMostDevices = 16;  // llama_max_devices()

// "auto" is the engine's own default.
Result<void> state_cache_type(const Deployment& deployment, SettingValues& values) {
  if (!deployment.kv_dtype || equal_ignoring_case(*deployment.kv_dtype, "auto")) return {};
  KERNELPATH_CHECK_OK(values.set("cache_type_k", *deployment.kv_dtype, "--kv-cache-dtype"));
  return values.set("cache_type_v", *deployment.kv_dtype, "--kv-cache-dtype");
}

// The context of all sequences: --max-model-len is that of one.
Result<void> state_context(const Deployment& deployment, SettingValues& values) {
  if (deployment.batch_size) {
    KERNELPATH_CHECK_OK(
        values.set("n_parallel", std::to_string(*deployment.batch_size), "--batch-size"));
  }
  if (!deployment.max_model_len) return {};
  KERNELPATH_TRY(sequences, values.integer("n_parallel", kAutomatic));
  const std::int64_t slots = sequences == kAutomatic ? kServerSlots : sequences;
  const std::int64_t total =
      saturating_product({*deployment.max_model_len, std::max<std::int64_t>(1, slots)});
  return values.set("n_ctx", std::to_string(total), "--max-model-len");
}

// Tensor-parallel ranks are GPUs that split every layer, pipeline stages GPUs that split the model.
Result<void> state_ranks(const Deployment& deployment, SettingValues& values) {
  if (deployment.tp > 1 && deployment.pp > 1) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "llamacpp splits a model over GPUs in one way: by tensors (--tp) or by "
                            "layers (--pp)",
                 .where = "--pp",
                 .hint = "give one of the two"});
  }
  if (deployment.tp > 1) values.set_if_open("split_mode", "tensor", "--tp");
  if (deployment.pp > 1) values.set_if_open("split_mode", "layer", "--pp");
  return {};
}

Result<void> state_speculation(const Deployment& deployment, SettingValues& values) {
  struct Kind {
    std::string_view name;
    std::string_view type;
  };
  constexpr auto kKinds = std::to_array<Kind>({{"draft", "draft-simple"},
                                               {"eagle", "draft-eagle3"},
                                               {"eagle3", "draft-eagle3"},
                                               {"mtp", "draft-mtp"},
                                               {"ngram", "ngram-simple"}});
  if (deployment.speculative) {
    const auto* const kind = std::ranges::find(kKinds, *deployment.speculative, &Kind::name);
    const std::string type(kind == kKinds.end() ? *deployment.speculative : kind->type);
    KERNELPATH_CHECK_OK(values.set("speculative.types", type, "--speculative"));
  }
  if (!deployment.draft_tokens) return {};
  return values.set("speculative.draft.n_max", std::to_string(*deployment.draft_tokens),
                    "--draft-tokens");
}

void state_variables(const Environment& environment, SettingValues& values) {
  for (const SettingInfo& row : kSettings) {
    if (row.variable.empty()) continue;
    // Its presence alone turns an option off that has a negative.
    std::string negative(row.variable);
    negative.replace(0, std::string_view("LLAMA_ARG_").size(), "LLAMA_ARG_NO_");
    const bool has_negative = row.name == "kv_unified" || row.name == "kv_offload";
    if (has_negative && environment.variable(negative) != nullptr) {
      values.set_if_open(row.name, "false", negative);
    }
    const std::string* const text = environment.variable(row.variable);
    if (text != nullptr) values.set_if_open(row.name, *text, row.variable);
  }
}

Result<SettingValues> merge(const Deployment& deployment, const Environment& environment) {
  SettingValues values;
  for (const auto& [name, value] : deployment.settings) {
    KERNELPATH_CHECK_OK(values.set(name, value, fmt::format("--set llamacpp.{}", name)));
  }
  if (deployment.backend) {
    KERNELPATH_CHECK_OK(values.set("flash_attn", to_lower(*deployment.backend), "--backend"));
  }
  KERNELPATH_CHECK_OK(state_cache_type(deployment, values));
  KERNELPATH_CHECK_OK(state_context(deployment, values));
  KERNELPATH_CHECK_OK(state_ranks(deployment, values));
  KERNELPATH_CHECK_OK(state_speculation(deployment, values));
  state_variables(environment, values);
  return values;
}

Result<const checkpoint::GgmlType*> cache_type(const Profile& profile, const SettingValues& values,
                                               std::string_view name) {
  const std::string& text = values.get(name).value;
  const checkpoint::GgmlType* type = checkpoint::find_ggml_type(text);
  if (type != nullptr && profile.is_cache_type(text)) return type;
  const std::vector<std::string_view> known(profile.cache_types.begin(), profile.cache_types.end());
  Error error = values.error(name, join_words(profile.cache_types, "or"));
  error.code = ErrorCode::kUsageUnknown;
  error.message = fmt::format("Unsupported cache type: {}; llamacpp has {}", shorten(text, 32),
                              join_words(profile.cache_types));
  error.near_matches = near_matches(text, known);
  return fail(std::move(error));
}

Result<void> read_sizes(const SettingValues& values, ContextParams& params) {
  KERNELPATH_TRY(n_ctx, values.integer("n_ctx"));
  KERNELPATH_TRY(n_batch, values.integer("n_batch"));
  KERNELPATH_TRY(n_ubatch, values.integer("n_ubatch"));
  KERNELPATH_TRY(n_parallel, values.integer("n_parallel", kAutomatic));
  KERNELPATH_TRY(kv_unified, values.flag("kv_unified"));
  KERNELPATH_TRY(drafted, values.integer("speculative.draft.n_max"));
  params.n_ctx = n_ctx;
  params.n_batch = n_batch;
  params.n_ubatch = n_ubatch;
  params.n_seq_max = n_parallel == kAutomatic ? kServerSlots : n_parallel;
  params.kv_unified = kv_unified || n_parallel == kAutomatic;
  // Source: common/common.h, need_n_rs_seq: drafts that may be rejected need earlier states.
  constexpr auto kRollingBack = std::to_array<std::string_view>(
      {"draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark"});
  const std::vector<std::string> types = values.list("speculative.types");
  const bool rolls_back = std::ranges::any_of(types, [&](const std::string& type) {
    return std::ranges::find(kRollingBack, type) != kRollingBack.end();
  });
  params.n_rs_seq = rolls_back ? drafted : 0;
  return {};
}

// Devices that are named, or counted by something else that the user gives.
std::int64_t count_devices(const SettingValues& values, const Deployment& deployment,
                           const Environment& environment) {
  const auto size = [](const std::vector<std::string>& list) {
    return static_cast<std::int64_t>(list.size());
  };
  const std::vector<std::string> named = values.list("devices");
  if (!named.empty()) return named.front() == "none" ? 0 : size(named);
  if (deployment.tp > 1) return deployment.tp;
  if (deployment.pp > 1) return deployment.pp;
  if (const std::string* const visible = environment.variable("CUDA_VISIBLE_DEVICES")) {
    std::vector<std::string> ids = split(*visible, ',');
    std::erase_if(ids, [](const std::string& id) { return id.empty() || id.starts_with('-'); });
    return size(ids);
  }
  return std::max<std::int64_t>(1, size(values.list("tensor_split")));
}

Result<void> read_split(const SettingValues& values, SplitParams& out) {
  constexpr std::array<std::string_view, 4> kModes = {"none", "layer", "row", "tensor"};
  KERNELPATH_TRY(mode, values.choice("split_mode", kModes));
  KERNELPATH_TRY(shares, values.numbers("tensor_split"));
  KERNELPATH_TRY(main_gpu, values.integer("main_gpu", kAutomatic));
  out.mode = static_cast<SplitMode>(mode);
  out.shares = std::move(shares);
  out.main_gpu = main_gpu;
  const std::string layers = to_lower(values.get("n_gpu_layers").value);
  if (layers == "all" || layers == "auto") return {};
  // Negative numbers are auto (-1) or all.
  KERNELPATH_TRY(count, values.integer("n_gpu_layers", std::numeric_limits<std::int32_t>::min()));
  if (count >= 0) out.n_gpu_layers = count;
  return {};
}

Result<void> read_overrides(const SettingValues& values, SplitParams& out) {
  KERNELPATH_TRY(all, values.flag("cpu_moe"));
  KERNELPATH_TRY(experts, values.integer("n_cpu_moe"));
  KERNELPATH_TRY(dense, values.integer("n_cpu_ffn"));
  out.host_experts = all ? std::numeric_limits<std::int32_t>::max() : experts;
  out.host_mlps = dense;
  return {};
}

Result<void> read_modes(const SettingValues& values, Arguments& out) {
  constexpr std::array<std::string_view, 3> kFlash = {"auto", "on", "off"};
  constexpr std::array<std::string_view, 2> kCuda = {"12", "13"};
  KERNELPATH_TRY(flash, values.choice("flash_attn", kFlash));
  KERNELPATH_TRY(cuda, values.choice("build.cuda", kCuda));
  KERNELPATH_TRY(swa_full, values.flag("swa_full"));
  KERNELPATH_TRY(kv_offload, values.flag("kv_offload"));
  KERNELPATH_TRY(all_quants, values.flag("build.fa_all_quants"));
  out.context.flash_attn = static_cast<FlashAttention>(flash);
  out.context.tensor_split = out.split.mode == SplitMode::kTensor;
  out.context.swa_full = swa_full;
  out.kv_offload = kv_offload;
  out.build = cuda == 0 ? CudaBuild::cuda12() : CudaBuild::cuda13();
  out.build.all_kv_pairs = all_quants;
  return {};
}

// Source: common/fit.cpp: what the user states is left alone, and so is a split by rows, tensors or
// shares. An explicit context of 0 asks for all of it.
Result<void> read_fit(const SettingValues& values, Arguments& out) {
  constexpr std::array<std::string_view, 2> kSwitch = {"on", "off"};
  KERNELPATH_TRY(off, values.choice("fit_params", kSwitch));
  const bool fits = off == 0 && out.split.mode != SplitMode::kTensor;
  const std::string layers = to_lower(values.get("n_gpu_layers").value);
  const bool own_layers = (layers == "auto" || layers == "-1") && !out.split.overrides();
  out.fits_context = fits && !values.is_stated("n_ctx");
  out.fits_layers =
      fits && own_layers && out.split.mode != SplitMode::kRow && out.split.shares.empty();
  return {};
}

// Words of a switch in the engine's own spelling of them.
void spell_switches(SettingValues& values) {
  for (const std::string_view name : {"flash_attn", "fit_params"}) {
    if (!values.is_stated(name)) continue;
    const Resolution::Option option = values.get(name);
    values.respell(name, switch_word(option.value));
  }
}

}  // namespace

std::span<const SettingInfo> setting_table() { return kSettings; }

bool is_flash_word(std::string_view backend) {
  const std::string word = to_lower(backend);
  return word == "auto" || word == "on" || word == "off";
}

Result<Arguments> Arguments::read(const Profile& profile, const Deployment& deployment,
                                  const Environment& environment) {
  KERNELPATH_TRY(values, merge(deployment, environment));
  spell_switches(values);
  Arguments out;
  KERNELPATH_CHECK_OK(read_sizes(values, out.context));
  KERNELPATH_CHECK_OK(read_split(values, out.split));
  out.split.devices = count_devices(values, deployment, environment);
  if (out.split.devices > kMostDevices) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("llamacpp uses at most {} GPUs", kMostDevices),
                 .where = deployment.tp > 1 ? "--tp" : "devices",
                 .value = std::to_string(out.split.devices)});
  }
  KERNELPATH_CHECK_OK(read_overrides(values, out.split));
  KERNELPATH_CHECK_OK(read_modes(values, out));
  KERNELPATH_CHECK_OK(read_fit(values, out));
  KERNELPATH_TRY(type_k, cache_type(profile, values, "cache_type_k"));
  KERNELPATH_TRY(type_v, cache_type(profile, values, "cache_type_v"));
  out.context.type_k = type_k;
  out.context.type_v = type_v;
  const bool no_main = out.split.mode == SplitMode::kNone && out.split.main_gpu < 0;
  out.on_devices = out.split.n_gpu_layers != 0 && out.split.devices > 0 && !no_main;
  out.flash_set_by = values.get("flash_attn").set_by;
  out.options = values.take();
  return out;
}

}  // namespace kernelpath::engines::llamacpp
