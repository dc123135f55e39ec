// Any bytes as config.json: a description or an error with a place, in every mode of reading; what
// is described keeps its own rules, and every value of it can be shown.
#include "base/assert.h"
#include "config/load.h"
#include "config/show.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using kernelpath::ErrorCode;
using kernelpath::config::Layer;
using kernelpath::config::ModelConfig;

void check_layers(const ModelConfig& model) {
  KERNELPATH_ASSERT(static_cast<std::int64_t>(model.layers.size()) ==
                    model.num_hidden_layers.value_or(0));
  for (const Layer& layer : model.layers) {
    KERNELPATH_ASSERT(layer.num_attention_heads >= 0 && layer.num_key_value_heads >= 0);
    KERNELPATH_ASSERT(layer.head_dim >= 0 && layer.v_head_dim >= 0);
    KERNELPATH_ASSERT(!layer.window || *layer.window > 0);
  }
}

void check_model(const ModelConfig& model, bool partial) {
  check_layers(model);
  KERNELPATH_ASSERT(std::is_sorted(model.present_fields.begin(), model.present_fields.end()));
  KERNELPATH_ASSERT(!kernelpath::config::attention_summary(model).empty());
  for (const auto& shown : kernelpath::config::show_values(model, "all")) {
    KERNELPATH_ASSERT(!shown.value.empty() && !shown.origin.empty());
  }
  if (partial) return;
  KERNELPATH_ASSERT(model.num_hidden_layers && *model.num_hidden_layers > 0);
  KERNELPATH_ASSERT(model.hidden_size && *model.hidden_size > 0);
  KERNELPATH_ASSERT(!model.architectures.empty() || model.inferred_architecture);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = kernelpath::json::parse_object(text, "fuzz");
  if (!document) return 0;
  for (const bool strict : {false, true}) {
    for (const bool partial : {false, true}) {
      const auto model =
          kernelpath::config::from_document(*document, {.strict = strict, .partial = partial});
      if (model) {
        check_model(*model, partial);
      } else {
        KERNELPATH_ASSERT(model.error().code != ErrorCode::kInternal);
        KERNELPATH_ASSERT(!model.error().message.empty() && model.error().file == "fuzz");
      }
    }
  }
  return 0;
}
