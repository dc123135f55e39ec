#include "checkpoint/tensor_files.h"
#include "config/gguf_words.h"
#include "model/attention_layers.h"
#include "model/classes.h"
#include "model/decoder.h"
#include "model/gguf_model.h"
#include "model/model.h"
#include "model/quantization.h"
#include "model/shard.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

namespace kernelpath::model {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorFiles;

// What a GGUF file says about rotary embedding in tensors and not in its metadata.
Result<void> add_gguf_rope(const TensorFiles& files, std::string_view architecture,
                           DecoderSpec& spec) {
  spec.interleaved_rope = config::gguf_pairs_are_neighbours(architecture);
  const StoredTensor* const factors = files.find("rope_freqs.weight");
  if (factors == nullptr || spec.ropes.empty()) return {};
  const std::int64_t pairs = spec.ropes[0].dims / 2;
  if (factors->type != "f32" || factors->shape != std::vector<std::int64_t>{pairs}) {
    return fail(Error{.code = ErrorCode::kCheckpoint,
                      .message = fmt::format("must be {} values of type f32", pairs),
                      .file = files.files()[factors->file],
                      .where = factors->name});
  }
  std::vector<float> values(static_cast<std::size_t>(pairs));
  KERNELPATH_CHECK_OK(files.read(*factors, 0, std::as_writable_bytes(std::span(values))));
  spec.ropes[0].frequency_factors.assign(values.begin(), values.end());
  return {};
}

// Layers without data, each projection with its scheme and with what this rank keeps of it.
Result<Parameters> empty_layers(const DecoderSpec& spec, const QuantizationPlan& plan,
                                const comm::Placement& ranks) {
  Parameters out = make_parameters(spec);
  for_each_linear(out, [&](Linear& linear) {
    if (linear.quantizable) linear.scheme = plan.scheme_of(linear.module);
  });
  for_each_stacked(out, [&](StackedLinear& stacked) {
    stacked.scheme = plan.stacked_scheme_of(stacked.module);
  });
  KERNELPATH_CHECK_OK(shard_parameters(out, spec, ranks));
  return out;
}

// Pointers into a configuration, with the file that they point into.
template <class T>
Result<T> in_file(Result<T> read, const config::ModelConfig& config) {
  if (!read && read.error().file.empty() && read.error().where.starts_with('/')) {
    read.error().file = config.path;
  }
  return read;
}

}  // namespace

Result<std::unique_ptr<Model>> build(const config::ModelConfig& config, const std::string& folder,
                                     kernels::Executor& executor, const BuildOptions& options) {
  std::optional<config::ModelConfig> translated;
  if (config.gguf) {
    KERNELPATH_TRY(words, config::config_of_gguf(config));
    translated = std::move(words);
  }
  const config::ModelConfig& own = translated ? *translated : config;
  KERNELPATH_TRY(family, family_of(own, options.class_name));
  KERNELPATH_TRY(spec, in_file(make_spec(own, *family), config));
  KERNELPATH_TRY(plan, in_file(QuantizationPlan::make(own.quantization), config));
  KERNELPATH_TRY(parameters, empty_layers(spec, plan, options.ranks));
  KERNELPATH_TRY(attention,
                 AttentionLayers::make(spec_of_rank(spec, options.ranks.tp), options.attention));
  const auto make_decoder = [&] {
    return std::make_unique<Decoder>(Decoder::Parts{.spec = spec_of_rank(spec, options.ranks.tp),
                                                    .parameters = std::move(parameters),
                                                    .attention = std::move(attention),
                                                    .ranks = options.ranks},
                                     executor);
  };
  auto files = TensorFiles::open(folder);
  if (!files) {
    // Shapes are there without any file; a broken file is an error all the same.
    const bool absent = files.error().code == ErrorCode::kInputMissing;
    if (!options.shape_only || !absent) return fail(files.error());
    return make_decoder();
  }
  if (config.gguf) {
    KERNELPATH_CHECK_OK(add_gguf_rope(*files, config.model_type.value_or(""), spec));
    files->rename(name_of_gguf_tensor);
  }
  auto decoder = make_decoder();
  KERNELPATH_CHECK_OK(options.shape_only ? decoder->measure(*files, options.load_threads)
                                         : decoder->load(*files, options.load_threads));
  return std::unique_ptr<Model>(std::move(decoder));
}

}  // namespace kernelpath::model
