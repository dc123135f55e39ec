#include "engines/trtllm/layer_table.h"

namespace kernelpath::engines::trtllm {

std::string LayerTable::add(std::string_view layer_index) {
  std::string key(layer_index);
  if (keys_.insert(key).second) return key;
  // Keys never leave the table, so the search goes on where it ended: linear in the whole model.
  std::size_t& suffix = next_suffix_[key];
  while (true) {
    std::string suffixed = key + "_" + std::to_string(suffix++);
    if (keys_.insert(suffixed).second) return suffixed;
  }
}

}  // namespace kernelpath::engines::trtllm
