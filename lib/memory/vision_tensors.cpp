#include "memory/geometry.h"

#include <algorithm>

namespace kernelpath::memory {
namespace {

std::int64_t vision_integer(const config::ModelConfig& model,
                            std::initializer_list<std::string_view> fields,
                            std::int64_t otherwise) {
  for (const std::string_view field : fields) {
    const auto found = std::find_if(model.vision_integers.begin(), model.vision_integers.end(),
                                    [&](const auto& member) { return member.first == field; });
    if (found != model.vision_integers.end()) return found->second;
  }
  return otherwise;
}

}  // namespace

// A plain ViT with biases, and a two-layer projector into the language model: an estimate, since
// towers differ in details that config.json does not state. Every rank holds it.
std::vector<Tensor> vision_tensors(const Geometry& geometry) {
  const config::ModelConfig& model = geometry.model;
  const std::int64_t depth =
      vision_integer(model, {"depth", "num_hidden_layers", "vt_num_hidden_layers", "layers"}, 0);
  const Size width =
      vision_integer(model, {"embed_dim", "hidden_size", "vt_hidden_size", "width"}, 0);
  if (depth <= 0 || width.value() <= 0) return {};
  const std::int64_t ratio = vision_integer(model, {"mlp_ratio"}, 4);
  const std::int64_t stated =
      vision_integer(model, {"intermediate_size", "vt_intermediate_size"}, 0);
  const Size inner = stated > 0 ? Size(stated) : width * ratio;
  const Size patch = vision_integer(model, {"patch_size", "spatial_patch_size"}, 14);
  const Size channels = vision_integer(model, {"in_channels", "in_chans", "num_channels"}, 3);
  const Size frames = vision_integer(model, {"temporal_patch_size"}, 1);
  const Size merge = vision_integer(model, {"spatial_merge_size"}, 1);
  std::vector<Tensor> out;
  const auto add = [&](std::string_view name, Size rows, Size columns, std::int64_t count) {
    out.push_back({.part = Part::kVision,
                   .name = name,
                   .rows = rows,
                   .columns = columns,
                   .storage = Storage::kPlain,
                   .bias = true,
                   .count = count});
  };
  add("patch_embed", width, channels * frames * patch * patch, 1);
  add("qkv", Size(3) * width, width, depth);
  add("proj", width, width, depth);
  add("fc1", inner, width, depth);
  add("fc2", width, inner, depth);
  add("norms", Size(2) * width, 1, depth);
  const Size merged = merge * merge * width;
  add("projector.0", merged, merged, 1);
  add("projector.1", geometry.hidden, merged, 1);
  return out;
}

}  // namespace kernelpath::memory
