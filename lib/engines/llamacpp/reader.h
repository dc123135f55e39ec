#pragma once

#include "engines/llamacpp/load_model.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// The state of reading one model's metadata. Rules of classes add to it.
struct Reader {
  const Metadata& metadata;
  const TensorNames& tensors;
  const ArchitectureRow& architecture;
  Hparams& hparams;
  std::vector<std::string> found = {};  // keys that were read, as the tables spell them
  std::string error = {};
  bool aborts = false;

  // "%s.block_count" → "llama.block_count".
  [[nodiscard]] std::string full_key(std::string_view key) const;
  [[nodiscard]] bool has_found(std::string_view key) const;
  [[nodiscard]] bool failed() const { return !error.empty(); }
  void fail_with(std::string message);
  // A GGML_ASSERT of the engine.
  void require(bool condition, std::string_view expression);
};

// Does one row of a table of reads; errors end up in the reader.
void read_row(Reader& reader, const ReadRow& row);

// What the shared code does with a member before it reads it, and when it has read it.
void before_base_row(Reader& reader, const ReadRow& row);
void after_base_row(Reader& reader, const ReadRow& row);

// What a class does beside reading: layers that keep a state, checks, members that follow from
// others.
void apply_class_rules(Reader& reader, std::string_view class_name);

// What the class's loader of tensors refuses by metadata alone.
void check_tensor_rules(Reader& reader, std::string_view class_name);

}  // namespace kernelpath::engines::llamacpp
