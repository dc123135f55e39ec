// Numbers of the whole model, under all the names that files use for them.

#include "base/checked.h"
#include "config/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kernelpath::config {
namespace {

Result<void> read_layers(Derivation& d) {
  const std::string_view alias =
      d.read.family != nullptr ? d.read.family->alias("num_hidden_layers") : std::string_view();
  const Names names = {"num_decoder_layers",
                       "decoder_layers",
                       "num_hidden_layers",
                       "n_layer",
                       "n_layers",
                       "num_layers",
                       alias};
  Found found = d.read.find_stated(names);
  if (!found) {
    d.out.num_hidden_layers = layers_from_lists(d.read);
    if (d.out.num_hidden_layers) {
      if (*d.out.num_hidden_layers <= kMaxLayers) return {};
      return fail(Error{.code = ErrorCode::kConfigValue,
                        .message = fmt::format("{} layers are over the limit of {}",
                                               *d.out.num_hidden_layers, kMaxLayers),
                        .where = d.out.num_hidden_layers.origin.where});
    }
  }
  if (found.presence == Presence::kAbsent) found = d.read.find_default(names);
  if (!found && d.read.family != nullptr && d.read.family->fixed_count() > 0) {
    d.out.num_hidden_layers = {static_cast<std::int64_t>(d.read.family->fixed_count()),
                               {OriginKind::kDefault, {}, d.read.family->rule()}};
    return {};
  }
  KERNELPATH_TRY(layers, as_integer(d.read, found, {.min = 1, .max = kMaxLayers}));
  d.out.num_hidden_layers = layers;
  return {};
}

Result<void> read_widths(Derivation& d) {
  KERNELPATH_TRY(hidden, read_integer(d.read, {"hidden_size", "n_embd", "n_embed", "d_model"}));
  d.out.hidden_size = hidden;
  const std::string_view alias =
      d.read.family != nullptr ? d.read.family->alias("num_attention_heads") : std::string_view();
  KERNELPATH_TRY(heads, read_integer(d.read,
                                     {"decoder_attention_heads", "num_attention_heads", "n_head",
                                      "n_heads", alias},
                                     {.min = 1, .max = kMaxHeads}));
  d.out.num_attention_heads = heads;
  KERNELPATH_TRY(vocab, read_integer(d.read, {"vocab_size", "padded_vocab_size", "n_vocab"}));
  d.out.vocab_size = vocab;
  return {};
}

// A length beyond 64 bits is how tokenizers write "no limit".
bool no_limit(const json::Value& value) {
  return value.type() == json::Type::kBigInteger ||
         (value.type() == json::Type::kDouble && value.as_double() >= 9.2e18);
}

Result<void> read_context(Derivation& d) {
  const Found found = d.read.find({"max_position_embeddings", "max_target_positions", "n_positions",
                                   "max_seq_len", "max_sequence_length", "seq_length",
                                   "model_max_length", "context_length", "n_ctx"});
  if (found && no_limit(*found.value)) {
    d.read.warn("CONFIG-NO-LIMIT", found.origin.where,
                fmt::format("{} is read as \"no limit\"", found.value->brief()));
    d.out.max_position_embeddings.origin = found.origin;
    d.out.max_position_embeddings.origin.rule = "no limit";
    return {};
  }
  KERNELPATH_TRY(length, as_integer(d.read, found));
  d.out.max_position_embeddings = length;
  return {};
}

// One number, or one a layer: then the largest is the model's, and layers keep their own.
Result<void> read_intermediate(Derivation& d) {
  const Found found =
      d.read.find({"intermediate_size", "decoder_ffn_dim", "n_inner", "ffn_dim", "ffn_hidden_size",
                   "d_ff", "ff_intermediate_size", "ffn_config/ffn_hidden_size"});
  if (found && found.value->is_array()) {
    KERNELPATH_TRY(sizes, as_integers(d.read, found, {.min = 0}));
    if (sizes.empty()) return {};
    d.out.intermediate_size = {*std::max_element(sizes.begin(), sizes.end()), found.origin};
    d.out.intermediate_size.origin.rule = "largest of a list";
    return {};
  }
  KERNELPATH_TRY(size, as_integer(d.read, found, {.min = 0}));
  d.out.intermediate_size = size;
  if (size || !d.out.hidden_size || d.read.family == nullptr) return {};
  // GPT-2 and its kin: no number means four times the width.
  const bool four_times = d.read.family->has_field("n_inner") ||
                          d.read.family->has_field("ffn_hidden_size") ||
                          d.read.family->model_type() == "bloom";
  const auto product = checked_mul(*d.out.hidden_size, 4);
  if (four_times && product) d.out.intermediate_size = derived_integer(*product, "4 * hidden_size");
  return {};
}

Error heads_error(const std::string& where, std::int64_t heads, std::int64_t kv_heads,
                  bool multiple) {
  return Error{.code = ErrorCode::kConfigValue,
               .message = multiple
                              ? fmt::format("num_attention_heads {} is not a multiple of the {} "
                                            "key/value heads",
                                            heads, kv_heads)
                              : fmt::format("{} key/value heads are more than the {} attention "
                                            "heads",
                                            kv_heads, heads),
               .where = where,
               .value = std::to_string(kv_heads)};
}

Result<void> check_heads(const Derivation& d, std::int64_t kv_heads, const std::string& where) {
  if (!d.out.num_attention_heads) return {};
  const std::int64_t heads = *d.out.num_attention_heads;
  if (kv_heads > heads) return fail(heads_error(where, heads, kv_heads, false));
  if (heads % kv_heads != 0) return fail(heads_error(where, heads, kv_heads, true));
  return {};
}

// multi_query: one KV head for all, unless Falcon's newer layout has groups.
Result<IntField> read_multi_query(const Derivation& d) {
  KERNELPATH_TRY(groups, read_boolean(d.read, {"new_decoder_architecture"}));
  if (groups.value_or(false)) return IntField{};
  KERNELPATH_TRY(single, read_boolean(d.read, {"multi_query"}));
  if (!single.value_or(false)) return IntField{};
  Origin origin = single.origin;
  origin.rule = origin.rule.empty() ? "multi_query: one head for all"
                                    : origin.rule + ", multi_query: one head for all";
  return IntField{1, std::move(origin)};
}

Result<void> read_kv_list(Derivation& d, const Found& found) {
  KERNELPATH_TRY(list, as_integers(d.read, found, {.min = 0, .max = kMaxHeads}));
  if (list.empty()) return {};
  std::int64_t index = 0;
  for (const std::int64_t kv_heads : list) {
    if (kv_heads > 0) {  // 0: a layer without attention
      KERNELPATH_CHECK_OK(
          check_heads(d, kv_heads, fmt::format("{}/{}", found.origin.where, index)));
    }
    ++index;
  }
  d.out.num_key_value_heads_list = list;
  d.out.num_key_value_heads.origin = found.origin;
  return {};
}

Result<void> read_kv_heads(Derivation& d) {
  KERNELPATH_TRY(multi_query, read_multi_query(d));
  d.out.num_key_value_heads = multi_query;
  if (multi_query) return {};
  const Found found = d.read.find({"num_key_value_heads", "num_kv_heads", "n_head_kv",
                                   "multi_query_group_num", "attn_config/kv_n_heads"});
  if (found && found.value->is_array()) return read_kv_list(d, found);
  KERNELPATH_TRY(kv_heads, as_integer(d.read, found, {.min = 1, .max = kMaxHeads}));
  d.out.num_key_value_heads = kv_heads;
  if (kv_heads) {
    // The default of a family may not fit the heads that the file states: then it is not meant.
    if (found.presence == Presence::kStated || check_heads(d, *kv_heads, "")) {
      return check_heads(d, *kv_heads, found.origin.where);
    }
  }
  if (d.partial) {
    d.out.num_key_value_heads = {std::nullopt, found.origin};
    return {};
  }
  d.out.num_key_value_heads = d.out.num_attention_heads;
  if (d.out.num_attention_heads) {
    d.out.num_key_value_heads.origin = {
        OriginKind::kDefault, {}, "multi-head attention: num_attention_heads"};
  }
  return {};
}

Result<void> read_head_dim(Derivation& d) {
  if (!d.out.num_attention_heads && !d.partial) return {};
  const std::string_view alias =
      d.read.family != nullptr ? d.read.family->alias("head_dim") : std::string_view();
  const Found found = d.read.find({"head_dim", alias, "kv_channels", "d_kv", "attention_head_dim"});
  KERNELPATH_TRY(head_dim, as_integer(d.read, found, {.min = 1, .max = kMaxHeadDim}));
  d.out.head_dim = head_dim;
  const bool stated = found.presence == Presence::kStated && found.name == "head_dim";
  d.out.head_dim_is_explicit = {stated, stated ? found.origin : Origin{}};
  const auto& hidden = d.out.hidden_size;
  const auto& heads = d.out.num_attention_heads;
  if (found.presence == Presence::kDefault && hidden && heads && *hidden % *heads != 0) {
    d.read.warn("CONFIG-HEAD-DIM", d.read.text_pointer + "/head_dim",
                fmt::format("head_dim is missing and hidden_size {} is not a multiple of {} heads; "
                            "{} by the {}",
                            *hidden, *heads, *head_dim, d.read.family->rule()));
  }
  return {};
}

// Does the family's class itself set a width that its heads do not divide? Then its code divides
// and rounds down, and a file that does the same is not broken.
bool family_rounds_down(const Family* family) {
  if (family == nullptr) return false;
  const json::Value* hidden = family->default_of("hidden_size");
  const json::Value* heads = family->default_of("num_attention_heads");
  return hidden != nullptr && heads != nullptr && hidden->is_integer() && heads->is_integer() &&
         heads->as_integer() > 0 && hidden->as_integer() % heads->as_integer() != 0;
}

// head_dim where nobody states it. MLA models have their own sizes, see attention_extras.cpp.
Result<void> derive_head_dim(Derivation& d) {
  const auto& hidden = d.out.hidden_size;
  const auto& heads = d.out.num_attention_heads;
  if (d.out.head_dim || !hidden || !heads || d.partial) return {};
  if (d.read.find({"kv_lora_rank"}) && d.read.find({"qk_rope_head_dim"})) return {};
  if (*hidden % *heads != 0 && family_rounds_down(d.read.family) && *hidden > *heads) {
    d.out.head_dim =
        derived_integer(*hidden / *heads, "hidden_size / num_attention_heads, rounded down");
    d.read.warn("CONFIG-HEAD-DIM", d.read.text_pointer + "/head_dim",
                fmt::format("head_dim is missing and hidden_size {} is not a multiple of {} heads; "
                            "{} rounds down to {}",
                            *hidden, *heads, d.read.family->model_type(), *d.out.head_dim));
    return {};
  }
  if (*hidden % *heads != 0) {
    return fail(
        Error{.code = ErrorCode::kConfigValue,
              .message = fmt::format("head_dim is missing and hidden_size {} is not a multiple of "
                                     "num_attention_heads {}",
                                     *hidden, *heads),
              .where = d.read.text_pointer + "/hidden_size",
              .value = std::to_string(*hidden),
              .hint = "state head_dim"});
  }
  d.out.head_dim = derived_integer(*hidden / *heads, "hidden_size / num_attention_heads");
  return {};
}

// What a question about a model cannot do without. Recurrent families have no heads.
Result<void> require_geometry(const Derivation& d) {
  if (d.partial) return {};
  const auto missing = [&](std::string_view name) {
    return fail(missing_error(fmt::format("{}/{}", d.read.text_pointer, name),
                              fmt::format("{} is missing, and no default is known for it", name)));
  };
  if (!d.out.num_hidden_layers) return missing("num_hidden_layers");
  if (!d.out.hidden_size) return missing("hidden_size");
  const bool heads_optional =
      d.read.family != nullptr && !d.read.family->has_field("num_attention_heads");
  if (!d.out.num_attention_heads && !heads_optional) return missing("num_attention_heads");
  return {};
}

void warn_if_all_defaults(const Derivation& d) {
  const auto is_default = [](const IntField& field) {
    return field.origin.kind == OriginKind::kDefault;
  };
  if (!is_default(d.out.num_hidden_layers) || !is_default(d.out.hidden_size) ||
      !is_default(d.out.num_attention_heads)) {
    return;
  }
  d.read.warn("CONFIG-GEOMETRY-DEFAULT",
              d.read.text_pointer.empty() ? "/model_type" : d.read.text_pointer,
              fmt::format("layers, width and heads are not stated; the defaults of {} in {} count",
                          d.read.family->model_type(), defaults_source()));
}

}  // namespace

Result<void> derive_geometry(Derivation& d) {
  KERNELPATH_TRY(encoder_decoder, as_boolean(d.read.find_outer({"is_encoder_decoder"})));
  d.out.is_encoder_decoder = encoder_decoder;
  if (!encoder_decoder) {
    KERNELPATH_TRY(by_family, as_boolean(d.read.find_default({"is_encoder_decoder"})));
    d.out.is_encoder_decoder = by_family;
  }
  KERNELPATH_CHECK_OK(read_layers(d));
  KERNELPATH_CHECK_OK(read_widths(d));
  KERNELPATH_CHECK_OK(read_context(d));
  KERNELPATH_CHECK_OK(read_intermediate(d));
  KERNELPATH_CHECK_OK(require_geometry(d));
  KERNELPATH_CHECK_OK(read_kv_heads(d));
  KERNELPATH_CHECK_OK(read_head_dim(d));
  KERNELPATH_CHECK_OK(derive_head_dim(d));
  // Each of its layers is two attentions with a dense block between them, and a shortcut's experts.
  const bool longcat = d.read.family != nullptr && d.read.family->model_type() == "longcat_flash";
  d.out.attentions_per_layer = longcat ? 2 : 1;
  KERNELPATH_TRY(tied, as_boolean(d.read.find_stated({"tie_word_embeddings"})));
  d.out.tie_word_embeddings = tied;
  if (!tied) {
    KERNELPATH_TRY(outer, as_boolean(d.read.find_outer({"tie_word_embeddings"})));
    KERNELPATH_TRY(by_family, as_boolean(d.read.find_default({"tie_word_embeddings"})));
    d.out.tie_word_embeddings = outer ? outer : by_family;
  }
  warn_if_all_defaults(d);
  return {};
}

Result<void> check_products(const Derivation& d) {
  struct Factor {
    std::string_view name;
    std::int64_t value;
  };
  const auto factor = [](std::string_view name, const IntField& field) {
    return Factor{name, field.value_or(1)};
  };
  const Factor layers = factor("num_hidden_layers", d.out.num_hidden_layers);
  const Factor hidden = factor("hidden_size", d.out.hidden_size);
  const Factor heads = factor("num_attention_heads", d.out.num_attention_heads);
  const Factor head_dim = factor("head_dim", d.out.head_dim);
  const Factor inner = factor("intermediate_size", d.out.intermediate_size);
  const Factor experts = factor("num_experts", d.out.moe ? d.out.moe->num_experts : IntField{});
  const Factor expert_inner =
      factor("moe_intermediate_size", d.out.moe ? d.out.moe->moe_intermediate_size : IntField{});
  const Factor vocab = factor("vocab_size", d.out.vocab_size);
  const Factor bytes = {"bytes", 8};
  const std::vector<std::vector<Factor>> products = {
      {hidden, layers, bytes},
      {vocab, hidden, bytes},
      {heads, head_dim, hidden, layers, bytes},
      {inner, hidden, layers, bytes},
      {experts, expert_inner, hidden, layers, bytes},
  };
  for (const auto& product : products) {
    std::optional<std::int64_t> total = 1;
    std::string shown;
    for (const Factor& f : product) {
      if (total) total = checked_mul(*total, f.value);
      if (f.name != "bytes")
        shown += fmt::format("{}{} {}", shown.empty() ? "" : " * ", f.name, f.value);
    }
    if (total) continue;
    return fail(Error{.code = ErrorCode::kConfigOverflow,
                      .message = fmt::format("{} does not fit 64 bits", shown),
                      .where = fmt::format("{}/{}", d.read.text_pointer, product[0].name)});
  }
  return {};
}

}  // namespace kernelpath::config
