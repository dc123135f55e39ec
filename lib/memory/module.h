#pragma once

#include "memory/geometry.h"

#include <string_view>
#include <vector>

namespace kernelpath::memory {

// Collects the tensors of one module.
class Module {
 public:
  Module(Part part, std::string_view name, std::vector<Tensor>& out)
      : part_(part), name_(name), out_(out) {}

  // A column-parallel projection whose output is `units` heads of `width` values.
  void heads(std::string_view name, std::int64_t units, Size width, Size input, bool bias) {
    out_.push_back({.part = part_,
                    .module = name_,
                    .name = name,
                    .rows = Size(units) * width,
                    .columns = input,
                    .split = Split::kRows,
                    .units = units,
                    .bias = bias});
  }
  // A row-parallel projection that reads `units` heads of `width` values.
  void output(std::string_view name, Size rows, std::int64_t units, Size width, bool bias) {
    out_.push_back({.part = part_,
                    .module = name_,
                    .name = name,
                    .rows = rows,
                    .columns = Size(units) * width,
                    .split = Split::kColumns,
                    .units = units,
                    .bias = bias});
  }
  void replicated(std::string_view name, Size rows, Size columns, bool bias = false) {
    out_.push_back({.part = part_,
                    .module = name_,
                    .name = name,
                    .rows = rows,
                    .columns = columns,
                    .bias = bias});
  }
  // `units` pieces of `width` channels, not quantised: a depthwise convolution.
  void channels(std::string_view name, std::int64_t units, Size width, Size columns,
                bool bias = false) {
    out_.push_back({.part = part_,
                    .module = name_,
                    .name = name,
                    .rows = Size(units) * width,
                    .columns = columns,
                    .split = Split::kRows,
                    .units = units,
                    .storage = Storage::kPlain,
                    .bias = bias});
  }
  // The same at float32: a state's vectors.
  void state_channels(std::string_view name, std::int64_t units, Size width, Size columns) {
    channels(name, units, width, columns);
    out_.back().storage = Storage::kFloat32;
  }
  // A norm's or another small vector that stays at the dtype.
  void vector(std::string_view name, Size length, std::int64_t units = 0, bool bias = false) {
    out_.push_back({.part = part_,
                    .module = name_,
                    .name = name,
                    .rows = length,
                    .split = units > 0 ? Split::kRows : Split::kNone,
                    .units = units,
                    .storage = Storage::kPlain,
                    .bias = bias});
  }

 private:
  Part part_;
  std::string_view name_;
  std::vector<Tensor>& out_;
};

}  // namespace kernelpath::memory
