#include "memory/weights.h"

#include "base/text.h"
#include "memory/geometry.h"
#include "memory/precision.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kernelpath::memory {
namespace {

struct Cost {
  Size parameters = 0;
  Size bytes = 0;
  Size rank_bytes = 0;
  Cost& operator+=(const Cost& other) {
    parameters += other.parameters;
    bytes += other.bytes;
    rank_bytes += other.rank_bytes;
    return *this;
  }
};

// A draft layer of EAGLE-3 reads the embedding and the target's state side by side.
bool is_eagle3(const config::ModelConfig& model) {
  return model.draft.has_draft_vocab_size && !model.draft.has_dflash_config &&
         model.layers.size() == 1;
}

constexpr Family kUnknownFamily{.model_type = "",
                                .qkv_bias = {.field = "attention_bias"},
                                .output_bias = {.field = "attention_bias"},
                                .mlp_bias = {.field = "mlp_bias"}};

// Adds up tensors over layers, parts and pipeline stages.
class Counter {
 public:
  Counter(const config::ModelConfig& model, const WeightOptions& options)
      : model_(model),
        options_(options),
        family_(find_family(model.text_model_type)),
        geometry_{.model = model,
                  .family = family_ != nullptr ? *family_ : kUnknownFamily,
                  .hidden = model.hidden_size.value_or(0),
                  .vocab = model.vocab_size.value_or(0),
                  .attention_input = model.hidden_size.value_or(0)},
        precision_(model.quantization, model.layers.size() + 1, ledger_.reasons) {
    if (is_eagle3(model)) {
      // A width that does not fit is met again, and reported, where it is multiplied.
      geometry_.attention_input = (Size(2) * geometry_.hidden).value();
    }
    ledger_.exact = ledger_.reasons.empty();
    stage_.resize(static_cast<std::size_t>(options.parallel.pp));
  }

  Result<WeightLedger> count() {
    find_dtype();
    add_outside(input_tensors(geometry_), 0);
    add_layers();
    add_outside(output_tensors(geometry_), stage_.size() - 1);
    copy_tied_embedding();
    add_mtp();
    add_outside(vision_tensors(geometry_), 0);
    explain();
    return finish();
  }

 private:
  void find_dtype();
  [[nodiscard]] Cost cost(const Tensor& tensor, const Format* format) const;
  [[nodiscard]] std::int64_t ways(const Tensor& tensor) const;
  void add(Part part, std::size_t stage, const Cost& cost);
  void add_outside(const std::vector<Tensor>& tensors, std::size_t stage);
  void add_layers();
  void copy_tied_embedding();
  void add_mtp();
  void explain();
  Result<WeightLedger> finish();
  void use_files(std::int64_t in_files);
  [[nodiscard]] Error overflow() const;

  const config::ModelConfig& model_;
  const WeightOptions& options_;
  const Family* family_;
  Geometry geometry_;
  WeightLedger ledger_;
  Precision precision_;
  std::int64_t element_bytes_ = 2;
  std::array<Cost, kPartCount> parts_;
  std::vector<Size> stage_;
};

void Counter::find_dtype() {
  const std::string dtype = options_.dtype.value_or(model_.dtype.value_or(""));
  if (const auto bytes = dtype_bytes(dtype)) {
    element_bytes_ = *bytes;
    return;
  }
  ledger_.exact = false;
  ledger_.reasons.push_back(dtype.empty()
                                ? "no dtype is stated: 2 bytes an element are assumed"
                                : "dtype '" + dtype + "' is not known: 2 bytes an element");
}

// Over how many ranks a tensor's split dimension is divided.
std::int64_t Counter::ways(const Tensor& tensor) const {
  const Parallel& parallel = options_.parallel;
  if (tensor.split == Split::kNone) return 1;
  if (tensor.routed) return std::max<std::int64_t>(parallel.tp / parallel.ep, 1);
  const bool attention = tensor.part == Part::kAttention || tensor.part == Part::kIndexer ||
                         tensor.part == Part::kState;
  return attention && parallel.attention_dp ? 1 : parallel.tp;
}

// What one rank holds of `total` features in `units` pieces; a piece is never cut, so that more
// ranks than KV heads hold copies.
Size share(Size total, std::int64_t units, std::int64_t ways) {
  if (units <= 0 || !total.fits()) return ceil_div(total, ways);
  return Size(kernelpath::ceil_div(units, ways)) * (total.value() / units);
}

Cost Counter::cost(const Tensor& tensor, const Format* format) const {
  const std::int64_t element = tensor.storage == Storage::kFloat32 ? 4 : element_bytes_;
  const auto bytes = [&](Size rows, Size columns, Size count) {
    const Size weight =
        format != nullptr ? stored_bytes(*format, rows, columns) : rows * columns * element;
    const Size bias = tensor.bias ? rows * element_bytes_ : Size(0);
    return (weight + bias) * count;
  };
  const std::int64_t n = ways(tensor);
  const Size rows =
      tensor.split == Split::kRows ? share(tensor.rows, tensor.units, n) : tensor.rows;
  const Size columns =
      tensor.split == Split::kColumns ? share(tensor.columns, tensor.units, n) : tensor.columns;
  const Size count =
      tensor.routed ? ceil_div(tensor.count, options_.parallel.ep) : Size(tensor.count);
  const Size bias_parameters = tensor.bias ? tensor.rows : Size(0);
  return {.parameters = (tensor.rows * tensor.columns + bias_parameters) * tensor.count,
          .bytes = bytes(tensor.rows, tensor.columns, tensor.count),
          .rank_bytes = bytes(rows, columns, count)};
}

void Counter::add(Part part, std::size_t stage, const Cost& cost) {
  parts_[static_cast<std::size_t>(part)] += cost;
  stage_[stage] += cost.rank_bytes;
}

void Counter::add_outside(const std::vector<Tensor>& tensors, std::size_t stage) {
  for (const Tensor& tensor : tensors) {
    add(tensor.part, stage, cost(tensor, precision_.outside(tensor)));
  }
}

// Layers of equal shape cost the same unless the checkpoint treats one of them differently.
void Counter::add_layers() {
  struct Shape {
    LayerShape shape;
    std::vector<Tensor> tensors;
    std::vector<std::string> paths = {};
    std::vector<const Format*> formats = {};
    std::vector<Cost> costs = {};
  };
  std::vector<Shape> shapes;
  const std::size_t layers = model_.layers.size();
  const std::size_t stages = stage_.size();
  for (std::size_t index = 0, stage = 0, stage_end = 0; index < layers; ++index) {
    if (index == stage_end) {  // the first (layers mod stages) stages get one more
      if (index > 0) ++stage;
      stage_end += layers / stages + (stage < layers % stages ? 1 : 0);
    }
    const LayerShape shape = layer_shape(geometry_, index);
    auto known = std::find_if(shapes.begin(), shapes.end(),
                              [&](const Shape& other) { return other.shape == shape; });
    if (known == shapes.end()) {
      Shape fresh{.shape = shape, .tensors = layer_tensors(geometry_, shape)};
      for (const Tensor& tensor : fresh.tensors) {
        fresh.paths.push_back(tensor_path(tensor));
        fresh.formats.push_back(precision_.base(tensor, fresh.paths.back()));
        fresh.costs.push_back(cost(tensor, fresh.formats.back()));
      }
      known = shapes.insert(shapes.end(), std::move(fresh));
    }
    for (std::size_t i = 0; i < known->tensors.size(); ++i) {
      const Tensor& tensor = known->tensors[i];
      const Format* format =
          precision_.has_layer_rules()
              ? precision_.in_layer(tensor, known->paths[i], index, known->formats[i])
              : known->formats[i];
      add(tensor.part, stage, format == known->formats[i] ? known->costs[i] : cost(tensor, format));
    }
  }
}

void Counter::copy_tied_embedding() {
  if (stage_.size() == 1 || !is_tied(geometry_)) return;
  stage_.back() += parts_[static_cast<std::size_t>(Part::kEmbedding)].rank_bytes;
  ledger_.reasons.emplace_back("the tied embedding is held by the first and the last stage");
}

// Each MTP layer is one more decoder layer of the last one's shape. Embedding and output projection
// are shared with the model, also where a checkpoint holds copies of them.
void Counter::add_mtp() {
  const std::int64_t count = model_.draft.num_nextn_predict_layers.value_or(0);
  if (count <= 0 || model_.layers.empty()) return;
  std::vector<Tensor> tensors =
      layer_tensors(geometry_, layer_shape(geometry_, model_.layers.size() - 1));
  for (const Tensor& tensor : mtp_tensors(geometry_)) tensors.push_back(tensor);
  Cost one;
  for (const Tensor& tensor : tensors) {
    const std::string path = tensor_path(tensor);
    const Format* base = precision_.base(tensor, path);
    one += cost(tensor, precision_.in_layer(tensor, path, model_.layers.size(), base));
  }
  const Size n = count;
  const Cost all{
      .parameters = one.parameters * n, .bytes = one.bytes * n, .rank_bytes = one.rank_bytes * n};
  parts_[static_cast<std::size_t>(Part::kMtp)] += all;
  if (options_.load_mtp) stage_.back() += all.rank_bytes;
}

void Counter::explain() {
  const auto estimate = [&](std::string reason) {
    ledger_.exact = false;
    ledger_.reasons.push_back(std::move(reason));
  };
  if (family_ == nullptr) {
    estimate("the weight layout of model_type '" +
             escape_for_terminal(shorten(model_.text_model_type, 64)) +
             "' is not known: counted like Llama's");
  } else if (!family_->caveat.empty()) {
    estimate(std::string(family_->caveat));
  }
  const bool unknown_state =
      (family_ == nullptr || family_->state == StateKind::kUnknown) &&
      std::any_of(model_.layers.begin(), model_.layers.end(),
                  [](const config::Layer& layer) { return layer.has_state; });
  if (unknown_state) estimate("the weights of its linear or state-space layers are not counted");
  if (has_classifier(model_)) estimate("the classifier in place of lm_head is not counted");
  if (model_.is_encoder_decoder.value_or(false)) {
    estimate("encoder and cross attention are not counted");
  }
  if (model_.has_vision) estimate("the vision tower is counted as a plain ViT");
  if (model_.has_audio) estimate("the audio tower is not counted");
  if (model_.draft.has_draft_vocab_size || model_.draft.has_dflash_config) {
    estimate("a draft may take embedding or output projection from its target");
  }
  if (model_.draft.num_nextn_predict_layers.value_or(0) > 0) {
    ledger_.reasons.emplace_back(options_.load_mtp
                                     ? "MTP layers are loaded"
                                     : "MTP layers are not loaded without speculative decoding");
  }
}

Result<WeightLedger> Counter::finish() {
  const Cost& mtp = parts_[static_cast<std::size_t>(Part::kMtp)];
  Cost model;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (static_cast<Part>(i) != Part::kMtp) model += parts_[i];
  }
  const bool stages_fit =
      std::all_of(stage_.begin(), stage_.end(), [](const Size& bytes) { return bytes.fits(); });
  const Cost all = Cost(model) += mtp;
  if (!stages_fit || !all.parameters.fits() || !all.bytes.fits() || !all.rank_bytes.fits()) {
    return fail(overflow());
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Cost& cost = parts_[i];
    if (cost.parameters.value() == 0) continue;
    ledger_.items.push_back({.part = static_cast<Part>(i),
                             .parameters = cost.parameters.value(),
                             .bytes = cost.bytes.value(),
                             .rank_bytes = cost.rank_bytes.value()});
  }
  for (const Size& bytes : stage_) ledger_.stage_bytes.push_back(bytes.value());
  ledger_.parameters = model.parameters.value();
  ledger_.mtp_parameters = mtp.parameters.value();
  ledger_.bytes = (options_.load_mtp ? all : model).bytes.value();
  ledger_.source = "geometry";
  use_files(all.bytes.value());
  ledger_.rank_bytes = *std::max_element(ledger_.stage_bytes.begin(), ledger_.stage_bytes.end());
  return std::move(ledger_);
}

// a * b / c without an intermediate that does not fit; a result that does not is the largest
// number.
std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const long double exact =
      static_cast<long double>(a) * static_cast<long double>(b) / static_cast<long double>(c);
  return exact < static_cast<long double>(kMost) ? static_cast<std::int64_t>(exact) : kMost;
}

// The files' own total wins over geometry; what a rank holds is scaled to it.
// `in_files` is what a checkpoint has by geometry, with its MTP layers.
void Counter::use_files(std::int64_t in_files) {
  if (!model_.weights || in_files <= 0) return;
  const config::WeightFiles& files = *model_.weights;
  const std::int64_t total = files.total_bytes.value_or(0);
  if (total <= 0 || !files.missing_shards.empty()) return;
  for (std::int64_t& bytes : ledger_.stage_bytes) bytes = scaled(bytes, total, in_files);
  ledger_.bytes = total;
  ledger_.source = files.from_headers ? "safetensors headers" : "index";
}

// Names the largest factors: one of them is at fault.
Error Counter::overflow() const {
  struct Factor {
    std::string_view name;
    std::int64_t value = 0;
    std::string where = {};
  };
  std::vector<Factor> factors;
  const auto note = [&](std::string_view name, const config::IntField& field) {
    if (field) factors.push_back({name, *field, field.origin.where});
  };
  note("hidden_size", model_.hidden_size);
  note("vocab_size", model_.vocab_size);
  note("intermediate_size", model_.intermediate_size);
  note("num_attention_heads", model_.num_attention_heads);
  note("head_dim", model_.head_dim);
  note("num_hidden_layers", model_.num_hidden_layers);
  if (model_.moe) {
    note("num_experts", model_.moe->num_experts);
    note("moe_intermediate_size", model_.moe->moe_intermediate_size);
  }
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Factor& a, const Factor& b) { return a.value > b.value; });
  if (factors.size() > 4) factors.resize(4);
  std::vector<std::string> texts;
  texts.reserve(factors.size());
  for (const Factor& factor : factors) {
    texts.push_back(std::string(factor.name) + " " + std::to_string(factor.value));
  }
  return {.code = ErrorCode::kConfigOverflow,
          .message = "the size of the weights does not fit 64 bits; factors: " + join(texts, ", "),
          .where = factors.empty() ? "" : factors.front().where};
}

Error conflict(std::string message) {
  return {.code = ErrorCode::kUsageConflict, .message = std::move(message)};
}

Result<void> check_parallel(const config::ModelConfig& model, const Parallel& parallel) {
  if (parallel.tp < 1 || parallel.pp < 1 || parallel.ep < 1) {
    return fail(Error{.code = ErrorCode::kUsage, .message = "a parallel size must be 1 or more"});
  }
  if (parallel.pp > static_cast<std::int64_t>(model.layers.size())) {
    return fail(conflict(std::to_string(parallel.pp) + " pipeline stages for " +
                         std::to_string(model.layers.size()) + " layers"));
  }
  const std::int64_t experts = model.moe ? model.moe->num_experts.value_or(1) : 1;
  if (parallel.ep > std::max<std::int64_t>(experts, 1)) {
    return fail(conflict(std::to_string(parallel.ep) + " expert-parallel ranks for " +
                         std::to_string(experts) + " experts"));
  }
  return {};
}

}  // namespace

std::string_view part_name(Part part) {
  constexpr std::array<std::string_view, kPartCount> kNames = {
      "embedding",      "attention", "indexer", "state", "mlp",    "router", "experts",
      "shared experts", "norm",      "lm_head", "draft", "vision", "mtp"};
  return kNames[static_cast<std::size_t>(part)];
}

Result<WeightLedger> count_weights(const config::ModelConfig& model, const WeightOptions& options) {
  if (model.layers.empty() || !model.hidden_size || !model.vocab_size) {
    return fail(Error{.code = ErrorCode::kConfigMissing,
                      .message = "the weights cannot be counted without " +
                                 std::string(model.layers.empty() ? "layers"
                                             : !model.hidden_size ? "hidden_size"
                                                                  : "vocab_size")});
  }
  KERNELPATH_CHECK_OK(check_parallel(model, options.parallel));
  return Counter(model, options).count();
}

}  // namespace kernelpath::memory
