// Source of names and defaults: llama.cpp 0c1e5709, common/arg.cpp, common/common.h,
// ggml/CMakeLists.txt.
#include "engines/llamacpp/arguments.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr auto kSettings = std::to_array<SettingInfo>({
    {"n_ctx", "-c, --ctx-size", "0", "tokens of all sequences together; 0: the model's"},
    {"n_batch", "-b, --batch-size", "2048", "tokens of a logical batch"},
    {"n_ubatch", "-ub, --ubatch-size", "512", "tokens of a physical batch"},
    {"n_parallel", "-np, --parallel", "1", "sequences at a time"},
    {"cache_type_k", "-ctk, --cache-type-k", "f16", "type of cached keys"},
    {"cache_type_v", "-ctv, --cache-type-v", "f16", "type of cached values"},
    {"flash_attn", "-fa, --flash-attn", "auto", "auto, on or off"},
    {"kv_unified", "-kvu, --kv-unified", "false", "one buffer for all sequences"},
    {"swa_full", "--swa-full", "false", "sliding layers keep every token"},
    {"kv_offload", "-nkvo, --no-kv-offload", "true", "K and V lie with their layers"},
    {"n_gpu_layers", "-ngl, --n-gpu-layers", "all", "layers on GPUs: a number or all"},
    {"split_mode", "-sm, --split-mode", "layer", "none, layer, row or tensor"},
    {"build.cuda", "CUDA toolkit of the build", "13", "12 also has kernels for Pascal and Volta"},
    {"build.fa_all_quants", "GGML_CUDA_FA_ALL_QUANTS", "false",
     "vector kernels for every pair of cache types"},
});

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// Values as text, with who set them.
class Values {
 public:
  Values() {
    for (const SettingInfo& row : kSettings) {
      values_.push_back({std::string(row.name), std::string(row.default_value), "engine default"});
    }
  }

  Result<void> set(std::string_view name, const std::string& value, std::string_view set_by) {
    Resolution::Option* option = find(name);
    if (option == nullptr) return fail(unknown(name, set_by));
    const bool stated = option->set_by != "engine default";
    if (stated && option->value != value) {
      return fail(Error{
          .code = ErrorCode::kUsageConflict,
          .message = fmt::format("llamacpp: {} is {} by {}", name, option->value, option->set_by),
          .where = std::string(set_by),
          .value = shorten(value, 64)});
    }
    option->value = value;
    option->set_by = set_by;
    return {};
  }

  [[nodiscard]] const Resolution::Option& get(std::string_view name) const {
    return *std::ranges::find(values_, name, &Resolution::Option::name);
  }

  [[nodiscard]] Error error(std::string_view name, std::string expected) const {
    const Resolution::Option& option = get(name);
    return {.code = ErrorCode::kUsage,
            .message = fmt::format("llamacpp: {} must be {}", name, expected),
            .where = option.set_by,
            .value = shorten(option.value, 64)};
  }

  [[nodiscard]] Result<std::int64_t> integer(std::string_view name) const {
    const std::string& text = get(name).value;
    std::int64_t out = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (status != std::errc() || end != text.data() + text.size() || out < 0 || out > kMost) {
      return fail(error(name, "a whole number of 0 or more that fits 32 bits"));
    }
    return out;
  }

  [[nodiscard]] Result<bool> flag(std::string_view name) const {
    const std::string& text = get(name).value;
    if (equal_ignoring_case(text, "true") || text == "1") return true;
    if (equal_ignoring_case(text, "false") || text == "0") return false;
    return fail(error(name, "true or false"));
  }

  [[nodiscard]] Result<std::size_t> choice(std::string_view name,
                                           std::span<const std::string_view> choices) const {
    const std::string& text = get(name).value;
    const auto found = std::ranges::find_if(
        choices, [&](std::string_view choice) { return equal_ignoring_case(choice, text); });
    if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
    const std::vector<std::string> words(choices.begin(), choices.end());
    Error out = error(name, fmt::format("one of {}", join_words(words, "or")));
    out.code = ErrorCode::kUsageUnknown;
    out.near_matches = near_matches(text, choices);
    return fail(std::move(out));
  }

  [[nodiscard]] std::vector<Resolution::Option> take() { return std::move(values_); }

 private:
  Resolution::Option* find(std::string_view name) {
    const auto found = std::ranges::find(values_, name, &Resolution::Option::name);
    return found == values_.end() ? nullptr : &*found;
  }

  static Error unknown(std::string_view name, std::string_view set_by) {
    std::vector<std::string_view> names;
    for (const SettingInfo& row : kSettings) names.push_back(row.name);
    return {.code = ErrorCode::kUsageUnknown,
            .message = "llamacpp has no setting of this name",
            .where = std::string(set_by),
            .value = shorten(name, 64),
            .hint = "llm-inspect --list settings --engine llamacpp prints them all",
            .near_matches = near_matches(name, names)};
  }

  std::vector<Resolution::Option> values_;
};

// "auto" is the engine's own default.
Result<void> state_cache_type(const Deployment& deployment, Values& values) {
  if (!deployment.kv_dtype || equal_ignoring_case(*deployment.kv_dtype, "auto")) return {};
  KERNELPATH_CHECK_OK(values.set("cache_type_k", *deployment.kv_dtype, "--kv-cache-dtype"));
  return values.set("cache_type_v", *deployment.kv_dtype, "--kv-cache-dtype");
}

// The context of all sequences: --max-model-len is that of one.
Result<void> state_context(const Deployment& deployment, Values& values) {
  if (deployment.batch_size) {
    KERNELPATH_CHECK_OK(
        values.set("n_parallel", std::to_string(*deployment.batch_size), "--batch-size"));
  }
  if (!deployment.max_model_len) return {};
  KERNELPATH_TRY(sequences, values.integer("n_parallel"));
  const std::int64_t total =
      saturating_product({*deployment.max_model_len, std::max<std::int64_t>(1, sequences)});
  return values.set("n_ctx", std::to_string(total), "--max-model-len");
}

Result<Values> merge(const Deployment& deployment) {
  Values values;
  for (const auto& [name, value] : deployment.settings) {
    KERNELPATH_CHECK_OK(values.set(name, value, fmt::format("--set llamacpp.{}", name)));
  }
  if (deployment.backend) {
    KERNELPATH_CHECK_OK(values.set("flash_attn", to_lower(*deployment.backend), "--backend"));
  }
  KERNELPATH_CHECK_OK(state_cache_type(deployment, values));
  KERNELPATH_CHECK_OK(state_context(deployment, values));
  if (deployment.tp > 1) KERNELPATH_CHECK_OK(values.set("split_mode", "tensor", "--tp"));
  return values;
}

Result<const checkpoint::GgmlType*> cache_type(const Profile& profile, const Values& values,
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

Result<void> read_sizes(const Values& values, ContextParams& params) {
  KERNELPATH_TRY(n_ctx, values.integer("n_ctx"));
  KERNELPATH_TRY(n_batch, values.integer("n_batch"));
  KERNELPATH_TRY(n_ubatch, values.integer("n_ubatch"));
  KERNELPATH_TRY(n_parallel, values.integer("n_parallel"));
  params.n_ctx = n_ctx;
  params.n_batch = n_batch;
  params.n_ubatch = n_ubatch;
  params.n_seq_max = n_parallel;
  return {};
}

Result<void> read_modes(const Values& values, Arguments& out) {
  constexpr std::array<std::string_view, 3> kFlash = {"auto", "on", "off"};
  constexpr std::array<std::string_view, 4> kSplit = {"none", "layer", "row", "tensor"};
  constexpr std::array<std::string_view, 2> kCuda = {"12", "13"};
  KERNELPATH_TRY(flash, values.choice("flash_attn", kFlash));
  KERNELPATH_TRY(split, values.choice("split_mode", kSplit));
  KERNELPATH_TRY(cuda, values.choice("build.cuda", kCuda));
  KERNELPATH_TRY(kv_unified, values.flag("kv_unified"));
  KERNELPATH_TRY(swa_full, values.flag("swa_full"));
  KERNELPATH_TRY(kv_offload, values.flag("kv_offload"));
  KERNELPATH_TRY(all_quants, values.flag("build.fa_all_quants"));
  out.context.flash_attn = static_cast<FlashAttention>(flash);
  out.context.tensor_split = kSplit.at(split) == "tensor";
  out.context.kv_unified = kv_unified;
  out.context.swa_full = swa_full;
  out.kv_offload = kv_offload;
  out.build = cuda == 0 ? CudaBuild::cuda12() : CudaBuild::cuda13();
  out.build.all_kv_pairs = all_quants;
  return {};
}

}  // namespace

std::span<const SettingInfo> setting_table() { return kSettings; }

Result<Arguments> Arguments::read(const Profile& profile, const Deployment& deployment) {
  KERNELPATH_TRY(values, merge(deployment));
  Arguments out;
  KERNELPATH_CHECK_OK(read_sizes(values, out.context));
  KERNELPATH_CHECK_OK(read_modes(values, out));
  KERNELPATH_TRY(type_k, cache_type(profile, values, "cache_type_k"));
  KERNELPATH_TRY(type_v, cache_type(profile, values, "cache_type_v"));
  out.context.type_k = type_k;
  out.context.type_v = type_v;
  if (values.get("n_gpu_layers").value != "all") {
    KERNELPATH_TRY(layers, values.integer("n_gpu_layers"));
    out.on_devices = layers > 0;
  }
  out.flash_set_by = values.get("flash_attn").set_by;
  out.options = values.take();
  return out;
}

}  // namespace kernelpath::engines::llamacpp
