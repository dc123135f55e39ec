#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace kernelpath::engines::trtllm {

// Keys under which attention modules register themselves, in the order of construction
// (attention.py 047098b7). The first module of an index gets the index, each
// further one the first free "<index>_0", "<index>_1", … A module without an index is "None".
class LayerTable {
 public:
  // `layer_index` as text ("31", or "None"). Returns the key.
  std::string add(std::string_view layer_index);

 private:
  std::set<std::string, std::less<>> keys_;
  std::map<std::string, std::size_t, std::less<>> next_suffix_;  // all suffixes before are taken
};

}  // namespace kernelpath::engines::trtllm
