#pragma once

#include "base/result.h"
#include "checkpoint/tensor_files.h"
#include "model/layers.h"
#include "model/model.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::model {

// One tensor that a model asks for, and what becomes of it.
struct Need {
  std::vector<std::string> names = {};       // the first that is there counts
  std::vector<std::int64_t> shape = {};      // in the file
  std::vector<std::string_view> types = {};  // as files spell them; which ones can be read
  // Those of `types` whose bytes `convert` leaves as they are.
  std::vector<std::string_view> direct_types = {};
  bool temporary = false;  // dropped when the model is complete
  // What of it is read, and what the functions below see as the tensor; nothing: all of it.
  std::optional<Split> kept = {};

  // Bytes that it takes in memory.
  std::function<std::int64_t(const checkpoint::StoredTensor&)> resident_bytes = {};
  // Tells its owner where the bytes will lie; called before they are read.
  std::function<void(const checkpoint::StoredTensor&, std::byte* place)> bind = {};
  // Makes the bytes in memory out of those of the file; empty: they are the same.
  std::function<void(const checkpoint::StoredTensor&, std::span<const std::byte> stored,
                     std::byte* place)>
      convert = {};
};

// Everything that `parameters` needs, with each projection's scheme. The needs point into
// `parameters`, which must stay where it is.
std::vector<Need> list_needs(Parameters& parameters);

// Tensors that published checkpoints carry and that inference does not need: scales of quantised
// activations, rotary frequencies, layers behind the last one.
bool may_stay_unread(std::string_view tensor, std::int64_t num_layers);

}  // namespace kernelpath::model
