#include "config/load.h"

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "config/derive.h"
#include "config/gguf.h"
#include "config/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::config {
namespace {

// Warnings that --strict refuses: what engines read differently, or must not read at all.
constexpr std::array<std::string_view, 3> kStrictCodes = {
    "JSON-DUPLICATE-KEY", "INPUT-LINK-OUTSIDE", "CHECKPOINT-LINK-OUTSIDE"};

std::vector<std::string> sorted_keys(const json::Value& object) {
  std::vector<std::string> keys;
  keys.reserve(object.members().size());
  for (const json::Member& member : object.members()) keys.push_back(member.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Result<void> derive_all(Derivation& d) {
  KERNELPATH_CHECK_OK(derive_scope(d));
  d.out.present_fields = sorted_keys(*d.read.outer);
  d.out.present_text_fields = d.read.nested() ? sorted_keys(*d.read.text) : d.out.present_fields;
  for (const auto& step : {derive_identity, check_nest, derive_geometry, derive_attention_extras,
                           derive_moe, derive_rope, derive_layers, derive_linear_state,
                           derive_dtype, derive_quantization, derive_draft}) {
    KERNELPATH_CHECK_OK(step(d));
  }
  find_foreign_code(d);
  find_modalities(d);
  return check_products(d);
}

Result<void> refuse_strictly(const ModelConfig& model, const std::string& file) {
  for (const json::Warning& warning : model.warnings) {
    if (std::find(kStrictCodes.begin(), kStrictCodes.end(), warning.code) == kStrictCodes.end()) {
      continue;
    }
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("{} [{}]", warning.message, warning.code),
                      .file = file,
                      .where = warning.where,
                      .hint = "refused because of --strict"});
  }
  return {};
}

Result<ModelConfig> derive(const json::Value& root, const LoadOptions& options,
                           std::vector<json::Warning> warnings) {
  if (!root.is_object()) {
    return fail(Error{.code = ErrorCode::kConfigType, .message = "an object is needed"});
  }
  ModelConfig model;
  model.warnings = std::move(warnings);
  model.file = root;
  Derivation d{.read = {.outer = &root, .text = &root, .warnings = &model.warnings},
               .out = model,
               .partial = options.partial};
  KERNELPATH_CHECK_OK(derive_all(d));
  return model;
}

// --- files beside config.json --------------------------------------------------------------------

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

// A file beside config.json whose quantisation counts, and the member that holds it.
struct QuantFile {
  std::string_view name;
  std::string_view member;  // empty: the whole file
};
constexpr std::array<QuantFile, 2> kQuantFiles = {
    {{"hf_quant_config.json", "quantization"}, {"quant_config.json", ""}}};

Result<std::optional<Quantization>> read_quant_file(const std::string& folder,
                                                    const QuantFile& file,
                                                    std::vector<json::Warning>& warnings) {
  const std::string path = join_path(folder, file.name);
  if (!is_file(path)) return std::optional<Quantization>{};
  KERNELPATH_TRY(contents, read_file(path, kMaxConfigBytes));
  KERNELPATH_TRY(document, json::parse_object(std::move(contents.text), path));
  const json::Value* object =
      file.member.empty() ? &document.root : document.root.find_non_null(file.member);
  if (object == nullptr || !object->is_object()) return std::optional<Quantization>{};
  FieldReader reader;
  reader.outer = reader.text = &document.root;
  reader.warnings = &warnings;
  std::string pointer = fmt::format("{}:", file.name);
  if (!file.member.empty()) pointer += fmt::format("/{}", file.member);
  auto quant = read_quantization({object, std::move(pointer), OriginKind::kSibling}, reader);
  if (!quant) {
    Error error = quant.error();
    error.file = path;
    return fail(std::move(error));
  }
  return std::optional<Quantization>(std::move(*quant));
}

Result<void> read_quant_files(const std::string& folder, ModelConfig& model) {
  FieldReader reader;
  reader.warnings = &model.warnings;
  for (const QuantFile& file : kQuantFiles) {
    KERNELPATH_TRY(quant, read_quant_file(folder, file, model.warnings));
    if (!quant) continue;
    compare(model.quantization, *quant, reader);
    complete(model.quantization, *quant);
    if (file.name == kQuantFiles[0].name) model.sibling_quantization = std::move(*quant);
  }
  return {};
}

// Engines scale an FP8 cache by 1.0 where the checkpoint brings no scales.
void check_cache_scales(const checkpoint::Weights& weights, ModelConfig& model) {
  if (!weights.from_headers || model.quantization.kv_cache_dtype.value_or("") != "fp8") return;
  const bool scaled =
      std::any_of(weights.tensors.begin(), weights.tensors.end(), [](const auto& t) {
        return t.name.ends_with("k_scale") || t.name.ends_with("kv_scale") ||
               t.name.ends_with("kv_cache_scaling_factor");
      });
  if (scaled) return;
  model.warnings.push_back({"CONFIG-KV-SCALES", model.quantization.kv_cache_dtype.origin.where,
                            "an FP8 KV cache is stated, but no tensor holds its scales; engines "
                            "will use 1.0"});
}

Result<void> read_weight_files(const std::string& folder, const LoadOptions& options,
                               ModelConfig& model) {
  KERNELPATH_TRY(weights, checkpoint::read_weights(folder, {.strict = options.strict}));
  if (!weights) return {};
  const Origin origin{OriginKind::kSibling, weights->source,
                      weights->from_headers ? "sum over the headers" : "the index's own claim"};
  WeightFiles files;
  if (weights->total_bytes) files.total_bytes = {*weights->total_bytes, origin};
  files.tensor_count = {weights->tensor_count, origin};
  files.missing_shards = weights->missing_shards;
  files.from_headers = weights->from_headers;
  model.weights = std::move(files);
  for (json::Warning& warning : weights->warnings) model.warnings.push_back(std::move(warning));
  check_cache_scales(*weights, model);
  return {};
}

void warn_of_link(const FileContents& contents, const std::string& path, ModelConfig& model) {
  if (contents.outside_target.empty()) return;
  model.warnings.push_back({"INPUT-LINK-OUTSIDE", "",
                            fmt::format("{} is a link to {}, outside its folder", file_name(path),
                                        escape_for_terminal(contents.outside_target))});
}

struct Location {
  std::string folder;
  std::string path;  // of config.json
  std::string name;
};

Result<Location> locate(const std::string& path) {
  KERNELPATH_TRY(kind, path_kind(path));
  if (kind != PathKind::kFolder) return Location{parent_path(path), path, file_name(path)};
  constexpr std::array<std::string_view, 1> kNames = {"config.json"};
  KERNELPATH_TRY(config, find_in_folder(path, kNames));
  return Location{path, config, file_name(path)};
}

// "Llama-3.1-8B/config.json" is shown as "Llama-3.1-8B".
std::string shown_name(const Location& location) {
  if (location.name != "config.json") return location.name;
  const std::string folder = file_name(location.folder);
  return folder.empty() || folder == "." || folder == ".." ? location.name : folder;
}

Result<ModelConfig> load_text(std::string text, const std::string& path,
                              const LoadOptions& options) {
  std::string digest = sha256_hex(text);
  KERNELPATH_TRY(document,
                 json::parse_object(std::move(text), path, {.max_bytes = kMaxConfigBytes}));
  KERNELPATH_TRY(model, from_document(document, options));
  model.path = path;
  model.name = path;
  model.sha256 = std::move(digest);
  return std::move(model);
}

}  // namespace

Result<ModelConfig> from_document(const json::Document& document, const LoadOptions& options) {
  auto model = derive(document.root, options, document.warnings);
  if (!model) {
    Error error = model.error();
    error.file = document.file;
    return fail(std::move(error));
  }
  if (options.strict) KERNELPATH_CHECK_OK(refuse_strictly(*model, document.file));
  return model;
}

Result<ModelConfig> from_value(const json::Value& object, const LoadOptions& options) {
  return derive(object, options, {});
}

Result<ModelConfig> load_model(const std::string& path, const LoadOptions& options,
                               std::string_view stdin_text) {
  if (path == "-") return load_text(std::string(stdin_text), path, options);
  if (is_gguf_file(path)) return load_gguf(path, options);
  KERNELPATH_TRY(location, locate(path));
  KERNELPATH_TRY(contents, read_file(location.path, kMaxConfigBytes));
  KERNELPATH_TRY(model, load_text(std::move(contents.text), location.path, options));
  model.name = shown_name(location);
  warn_of_link(contents, location.path, model);
  if (options.read_siblings) {
    KERNELPATH_CHECK_OK(read_quant_files(location.folder, model));
    KERNELPATH_CHECK_OK(read_weight_files(location.folder, options, model));
  }
  if (options.strict) KERNELPATH_CHECK_OK(refuse_strictly(model, location.path));
  return std::move(model);
}

}  // namespace kernelpath::config
