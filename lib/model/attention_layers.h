#pragma once

#include "attention/layers.h"
#include "attention/metadata.h"
#include "attention/selector.h"
#include "base/result.h"
#include "model/model.h"
#include "model/spec.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kernelpath::model {

// One layer's attention, by the name of its module.
struct AttentionLayer {
  std::string name;
  std::variant<attention::Attention, attention::MlaAttention> attention;
  std::size_t kind = 0;  // which metadata of a step it reads

  [[nodiscard]] const attention::BackendRow& backend() const;
};

// Layers by name, which does not keep them alive: who holds a name may look whether its layer is
// still there.
class LayerTable {
 public:
  // Returns the name that the layer got: a name that a living layer has gets a suffix (".1").
  std::string add(const std::string& name, const std::shared_ptr<const AttentionLayer>& layer);
  // Null if there is no such layer, or no longer.
  [[nodiscard]] std::shared_ptr<const AttentionLayer> find(std::string_view name) const;
  // Names of the layers that are there, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::map<std::string, std::weak_ptr<const AttentionLayer>, std::less<>> layers_;
};

// The attention of all layers of a decoder, and what a step's metadata are for each kind of them.
class AttentionLayers {
 public:
  // Errors: those of attention::select; kUnavailable, with every reason, where no backend can.
  static Result<AttentionLayers> make(const DecoderSpec& spec, const AttentionOptions& options);

  // Builds the metadata of a step, one of each kind of layers. Errors: those of MetadataBuilder.
  Result<void> begin(const attention::CommonMetadata& common);

  // Null for layers without attention.
  [[nodiscard]] const AttentionLayer* layer(std::size_t number) const {
    return layers_[number].get();
  }
  [[nodiscard]] const attention::StepMetadata& metadata(const AttentionLayer& layer) const {
    return metadata_[layer.kind];
  }
  [[nodiscard]] const LayerTable& table() const { return table_; }

 private:
  struct Kind {
    attention::Geometry geometry;
    const attention::BackendRow* backend = nullptr;
    attention::MetadataBuilder builder;
  };

  Result<void> add_layer(const DecoderSpec& spec, std::size_t number,
                         const AttentionOptions& options, attention::Selector& selector);
  std::size_t kind_of(const attention::Geometry& geometry, const attention::BackendRow& backend,
                      const attention::MetadataBuilder& builder);

  std::vector<std::shared_ptr<const AttentionLayer>> layers_;
  std::vector<Kind> kinds_;
  std::vector<attention::StepMetadata> metadata_;
  LayerTable table_;
};

}  // namespace kernelpath::model
