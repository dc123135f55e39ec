#include "memory/division.h"

#include "memory/geometry.h"
#include "memory/precision.h"

#include <algorithm>
#include <string_view>

namespace kernelpath::memory {
namespace {

constexpr Family kAnyFamily{};

class Judge {
 public:
  Judge(const config::ModelConfig& model, std::int64_t ranks)
      : model_(model),
        ranks_(ranks),
        family_(find_family(model.text_model_type)),
        geometry_{.model = model,
                  .family = family_ != nullptr ? *family_ : kAnyFamily,
                  .hidden = model.hidden_size.value_or(0),
                  .vocab = model.vocab_size.value_or(0),
                  .attention_input = model.hidden_size.value_or(0)},
        precision_(model.quantization, model.layers.size() + 1, reasons_) {}

  std::vector<std::string> run() {
    std::vector<LayerShape> seen;
    for (std::size_t index = 0; index < model_.layers.size(); ++index) {
      const LayerShape shape = layer_shape(geometry_, index);
      const bool known =
          std::ranges::any_of(seen, [&](const LayerShape& other) { return other == shape; });
      if (known && !precision_.has_layer_rules()) continue;
      for (const Tensor& tensor : layer_tensors(geometry_, shape)) judge(tensor, index);
      if (!known) seen.push_back(shape);
    }
    return std::move(faults_);
  }

 private:
  void judge(const Tensor& tensor, std::size_t layer) {
    if (tensor.split == Split::kNone) return;
    const bool rows = tensor.split == Split::kRows;
    const Size size = rows ? tensor.rows : tensor.columns;
    if (!size.fits() || size.value() <= 0) return;
    const std::string path = tensor_path(tensor);
    const std::string_view what = rows ? "rows" : "columns";
    if (tensor.units == 0 && size.value() % ranks_ != 0) {
      return add(path + ": " + std::to_string(size.value()) + " " + std::string(what) +
                 " cannot be divided by " + std::to_string(ranks_));
    }
    const Format* const format =
        precision_.in_layer(tensor, path, layer, precision_.base(tensor, path));
    if (format == nullptr) return;
    const std::int64_t block =
        rows ? format->block_rows : std::max(format->block_columns, format->group_columns);
    const std::int64_t part = part_of(size.value(), tensor.units);
    if (block <= 1 || part % block == 0 || part == size.value()) return;
    add(path + ": " + std::to_string(part) + " of " + std::to_string(size.value()) + " " +
        std::string(what) + " a rank cut its blocks of " + std::to_string(block));
  }

  // What a rank holds: whole units, copies where there are fewer of them than ranks.
  [[nodiscard]] std::int64_t part_of(std::int64_t size, std::int64_t units) const {
    if (units <= 0) return size / ranks_;
    return std::max<std::int64_t>(units / ranks_, 1) * (size / units);
  }

  void add(std::string fault) {
    if (std::ranges::find(faults_, fault) == faults_.end()) faults_.push_back(std::move(fault));
  }

  const config::ModelConfig& model_;
  std::int64_t ranks_;
  const Family* family_;
  Geometry geometry_;
  std::vector<std::string> reasons_;
  Precision precision_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> division_faults(const config::ModelConfig& model, std::int64_t ranks) {
  if (ranks <= 1) return {};
  return Judge(model, ranks).run();
}

}  // namespace kernelpath::memory
