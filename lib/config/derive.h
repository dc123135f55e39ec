#pragma once

#include "base/result.h"
#include "config/fields.h"
#include "config/model_config.h"

namespace kernelpath::config {

// Reading one config.json: the steps below run in this order, each fills its part of `out`.
struct Derivation {
  FieldReader read;
  ModelConfig& out;
  bool partial = false;  // a fragment: nothing is required
};

inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxHeadDim = 65'536;
inline constexpr std::int64_t kMaxHeads = 1'048'576;

// Finds the language model inside the file (text_config and its kin) and the family whose defaults
// count. Errors: a nest that is neither object nor null, names that are no names.
Result<void> derive_scope(Derivation& d);
// Warns where the file as a whole and its language model disagree.
Result<void> check_nest(Derivation& d);

// architectures and model_type; what stands in for them.
Result<void> derive_identity(Derivation& d);
// Warns about fields that make other tools run code. Nothing is run, fetched or followed.
void find_foreign_code(Derivation& d);

// Numbers of the whole model: layers, widths, heads, vocabulary, context.
Result<void> derive_geometry(Derivation& d);
// Checked products of those numbers. Error: kConfigOverflow, naming the factors.
Result<void> check_products(const Derivation& d);
// MLA ranks, indexer and compressor fields, sinks, soft cap.
Result<void> derive_attention_extras(Derivation& d);
Result<void> derive_moe(Derivation& d);
// The kind of every layer and what differs by layer. Needs the steps above.
Result<void> derive_layers(Derivation& d);
// Sizes of recurrent state, for models whose layers keep one.
Result<void> derive_linear_state(Derivation& d);
Result<void> derive_rope(Derivation& d);
Result<void> derive_dtype(Derivation& d);
Result<void> derive_quantization(Derivation& d);
Result<void> derive_draft(Derivation& d);
// Vision and audio towers, and the integers that the weight ledger asks for.
void find_modalities(Derivation& d);

// The number of layers that the file's own lists give, where num_hidden_layers is absent.
IntField layers_from_lists(const FieldReader& read);

}  // namespace kernelpath::config
