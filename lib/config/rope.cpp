// Rotary position embedding: rope_parameters, rope_scaling, and the fields beside them.

#include "base/text.h"
#include "config/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kernelpath::config {
namespace {

// Types that engines know, with the name used from here on.
struct RopeType {
  std::string_view written;
  std::string_view normal;
  bool needs_factor;
};
constexpr std::array<RopeType, 13> kRopeTypes = {{{"default", "default", false},
                                                  {"linear", "linear", true},
                                                  {"dynamic", "dynamic", false},
                                                  {"yarn", "yarn", true},
                                                  {"deepseek_yarn", "yarn", true},
                                                  {"longrope", "longrope", false},
                                                  {"su", "longrope", false},
                                                  {"llama3", "llama3", true},
                                                  {"mrope", "mrope", false},
                                                  {"proportional", "proportional", false},
                                                  {"ntk", "ntk", false},
                                                  {"axial", "axial", false},
                                                  {"none", "none", false}}};

const RopeType* find_rope_type(std::string_view name) {
  const auto* const found =
      std::find_if(kRopeTypes.begin(), kRopeTypes.end(),
                   [&](const RopeType& type) { return type.written == name; });
  return found == kRopeTypes.end() ? nullptr : &*found;
}

// One object of RoPE parameters and where it stands; `value` is null where the file has none.
struct Parameters {
  const json::Value* value = nullptr;
  std::string pointer;
  bool by_family = false;

  [[nodiscard]] const json::Value* find(std::string_view name) const {
    return value == nullptr ? nullptr : value->find_non_null(name);
  }
};

struct RopeSource {
  Parameters main;   // of layers that attend to everything
  Parameters local;  // of sliding layers, where they have their own
};

Result<Parameters> read_object(const FieldReader& read) {
  const Found newer = read.find_stated({"rope_parameters"});
  const Found older = read.find_stated({"rope_scaling"});
  if (newer && older) {
    read.warn("CONFIG-ROPE-BOTH", newer.origin.where,
              "both rope_parameters and rope_scaling are given; rope_parameters counts");
  }
  const Found& found = newer ? newer : older;
  if (!found) return Parameters{};
  if (!found.value->is_object()) {
    return fail(type_error(*found.value, found.origin.where, "an object"));
  }
  return Parameters{found.value, found.origin.where, false};
}

Parameters member_of(const Parameters& all, std::string_view name) {
  const json::Value* value = all.find(name);
  if (value == nullptr || !value->is_object()) return {};
  return {value, fmt::format("{}/{}", all.pointer, name), all.by_family};
}

// Parameters may be given per kind of layer.
RopeSource split_by_kind(const Parameters& all) {
  for (const std::string_view main : {"full_attention", "main", "hybrid", "indexed_attention"}) {
    Parameters parameters = member_of(all, main);
    if (parameters.value == nullptr) continue;
    Parameters local = member_of(all, "sliding_attention");
    if (local.value == nullptr) local = member_of(all, "hybrid_sliding");
    return {std::move(parameters), std::move(local)};
  }
  Parameters local = member_of(all, "sliding_attention");
  if (local.value != nullptr) return {local, {}};
  return {all, {}};
}

// What the family's class sets where the file is silent.
RopeSource family_parameters(const FieldReader& read) {
  const json::Value* rope = read.family == nullptr ? nullptr : read.family->rope();
  if (rope == nullptr) return {};
  return split_by_kind({rope, "", true});
}

Origin origin_of(const FieldReader& read, const Parameters& parameters, std::string_view name) {
  if (parameters.by_family) return {OriginKind::kDefault, {}, read.family->rule()};
  return {OriginKind::kField, fmt::format("{}/{}", parameters.pointer, name), {}};
}

Result<DoubleField> number_of(const FieldReader& read, const Parameters& parameters,
                              std::string_view name) {
  const json::Value* value = parameters.find(name);
  if (value == nullptr) return DoubleField{};
  Origin origin = origin_of(read, parameters, name);
  KERNELPATH_TRY(number, to_number(*value, origin.where));
  return DoubleField{number, std::move(origin)};
}

// rope_type is the newer name of type. A factor without a type says nothing that can be trusted.
Result<StringField> read_type(const FieldReader& read, const Parameters& parameters) {
  const json::Value* newer = parameters.find("rope_type");
  const json::Value* older = parameters.find("type");
  const std::string_view name = newer != nullptr ? "rope_type" : "type";
  const json::Value* chosen = newer != nullptr ? newer : older;
  if (chosen == nullptr) {
    if (parameters.find("factor") == nullptr || parameters.by_family) return StringField{};
    return fail(missing_error(parameters.pointer + "/rope_type",
                              "a factor without rope_type: the scaling is not defined",
                              "state rope_type: linear, dynamic, yarn, llama3 …"));
  }
  const std::string where = fmt::format("{}/{}", parameters.pointer, name);
  KERNELPATH_TRY(written, to_name(*chosen, where));
  const RopeType* known = find_rope_type(written);
  if (known == nullptr) {
    return fail(value_error(*chosen, where, "unknown rope type",
                            "known: default, linear, dynamic, yarn, longrope, llama3, mrope, …"));
  }
  if (newer != nullptr && older != nullptr && !(*newer == *older)) {
    read.warn("CONFIG-ROPE-TYPE-CONFLICT", where,
              fmt::format("rope_type is {} and type is {}; rope_type counts", newer->brief(),
                          older->brief()));
  }
  if (known->needs_factor && parameters.find("factor") == nullptr) {
    return fail(missing_error(parameters.pointer + "/factor",
                              fmt::format("rope_type {} needs a factor", written)));
  }
  return StringField{std::string(known->normal), origin_of(read, parameters, name)};
}

// The base: in the parameters, under one of its older names, or the family's.
Result<DoubleField> read_theta(const FieldReader& read, const Parameters& stated,
                               const Parameters& family) {
  KERNELPATH_TRY(inner, number_of(read, stated, "rope_theta"));
  if (inner) return inner;
  const Found found = read.find_stated({"rope_theta", "rotary_emb_base", "rope_embedding_base",
                                        "global_rope_theta", "attn_config/rope_theta"});
  if (found) {
    KERNELPATH_TRY(number, to_number(*found.value, found.origin.where));
    return DoubleField{number, found.origin};
  }
  KERNELPATH_TRY(by_family, number_of(read, family, "rope_theta"));
  if (by_family) return by_family;
  return DoubleField{std::nullopt,
                     absent_origin(read.family == nullptr ? "not stated, and the family is unknown"
                                                          : "fixed in the model's code")};
}

Result<std::optional<DoubleField>> read_local_theta(const FieldReader& read,
                                                    const Parameters& stated,
                                                    const Parameters& family) {
  KERNELPATH_TRY(inner, number_of(read, stated, "rope_theta"));
  if (inner) return std::optional<DoubleField>(inner);
  const Found found =
      read.find_stated({"rope_local_base_freq", "swa_rope_theta", "local_rope_theta"});
  if (found) {
    KERNELPATH_TRY(number, to_number(*found.value, found.origin.where));
    return std::optional<DoubleField>(DoubleField{number, found.origin});
  }
  KERNELPATH_TRY(by_family, number_of(read, family, "rope_theta"));
  if (!by_family) return std::optional<DoubleField>{};
  return std::optional<DoubleField>(by_family);
}

// The part of a head that is rotated, as a factor of it.
Result<DoubleField> read_partial(const Derivation& d, const Parameters& stated,
                                 const Parameters& family) {
  DoubleField partial;
  KERNELPATH_TRY(inner, number_of(d.read, stated, "partial_rotary_factor"));
  partial = inner;
  if (!partial) {
    KERNELPATH_TRY(outer, read_number(d.read, {"partial_rotary_factor", "rotary_pct"}));
    partial = outer;
  }
  if (!partial) {
    KERNELPATH_TRY(dim, read_integer(d.read, {"rotary_dim"}));
    if (dim && d.out.head_dim) {
      partial = {static_cast<double>(*dim) / static_cast<double>(*d.out.head_dim), dim.origin};
      partial.origin.rule = "rotary_dim / head_dim";
    }
  }
  if (!partial) {
    KERNELPATH_TRY(by_family, number_of(d.read, family, "partial_rotary_factor"));
    partial = by_family;
  }
  if (partial && *partial > 1) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = "the rotated part of a head cannot be larger than the head",
                      .where = partial.origin.where,
                      .value = fmt::format("{}", *partial)});
  }
  return partial;
}

// How many of a head's dimensions are rotated; nothing where the head size is unknown.
std::optional<std::int64_t> rotary_dim(const Derivation& d) {
  if (d.out.mla) return d.out.mla->qk_rope_head_dim.value;
  if (!d.out.head_dim) return std::nullopt;
  const double factor = d.out.rope.partial_rotary_factor.value_or(1.0);
  // Rounded down, as in Python's int(head_dim * factor); the small term undoes the rounding of
  // rotary_dim / head_dim.
  return static_cast<std::int64_t>(static_cast<double>(*d.out.head_dim) * factor + 1e-9);
}

Result<void> check_rotary_dim(const Derivation& d) {
  const auto dim = rotary_dim(d);
  const DoubleField& partial = d.out.rope.partial_rotary_factor;
  if (!dim || !partial || d.out.mla || partial.origin.kind != OriginKind::kField) return {};
  if (*dim % 2 == 0 && *dim > 0) return {};
  // A head size that was itself rounded down has been reported already.
  if (d.out.head_dim && d.out.head_dim.origin.rule.ends_with("rounded down")) return {};
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} of head_dim {} are {} rotated dimensions; an even "
                                           "number is needed",
                                           *partial, *d.out.head_dim, *dim),
                    .where = partial.origin.where,
                    .value = fmt::format("{}", *partial)});
}

Result<void> read_mrope(Derivation& d, const Parameters& stated) {
  const json::Value* value = stated.find("mrope_section");
  if (value == nullptr) return {};
  const std::string where = stated.pointer + "/mrope_section";
  const Found found{Presence::kStated, value, "mrope_section", {OriginKind::kField, where, {}}};
  KERNELPATH_TRY(sections, as_integers(d.read, found));
  std::int64_t sum = 0;
  for (const std::int64_t section : sections) sum += std::min(section, kMaxHeadDim);
  const auto dim = rotary_dim(d);
  if (dim && sum != *dim / 2) {
    return fail(value_error(*value, where,
                            fmt::format("the sections sum to {}; half of the {} rotated dimensions "
                                        "is needed",
                                        sum, *dim)));
  }
  d.out.rope.mrope_section = sections;
  if (d.out.rope.type.value_or("default") == "default") {
    d.out.rope.type = {"mrope", {OriginKind::kField, where, {}}};
  }
  return {};
}

Result<std::optional<std::size_t>> factor_count(const Parameters& stated, std::string_view name) {
  const json::Value* value = stated.find(name);
  if (value == nullptr) return std::optional<std::size_t>{};
  const std::string where = fmt::format("{}/{}", stated.pointer, name);
  if (!value->is_array()) return fail(type_error(*value, where, "a list of numbers"));
  std::size_t index = 0;
  for (const json::Value& item : value->items()) {
    KERNELPATH_CHECK_OK(to_number(item, fmt::format("{}/{}", where, index++)));
  }
  return std::optional<std::size_t>{value->items().size()};
}

// LongRoPE: one factor for each rotated pair, in both lists.
Result<void> check_longrope(const Derivation& d, const Parameters& stated) {
  KERNELPATH_TRY(short_count, factor_count(stated, "short_factor"));
  KERNELPATH_TRY(long_count, factor_count(stated, "long_factor"));
  const std::string where = stated.pointer + "/long_factor";
  if (short_count && long_count && *short_count != *long_count) {
    return fail(Error{.code = ErrorCode::kConfigValue,
                      .message = fmt::format("short_factor has {} entries and long_factor {}",
                                             *short_count, *long_count),
                      .where = where});
  }
  const auto dim = rotary_dim(d);
  if (!long_count || !dim || static_cast<std::int64_t>(*long_count) == *dim / 2) return {};
  return fail(Error{
      .code = ErrorCode::kConfigValue,
      .message =
          fmt::format("{} factors; half of the {} rotated dimensions is needed", *long_count, *dim),
      .where = where});
}

// Models that use another way to know positions, or none.
Result<std::string> without_rope(const Derivation& d) {
  KERNELPATH_TRY(alibi, read_boolean(d.read, {"alibi"}));
  KERNELPATH_TRY(mpt, read_boolean(d.read, {"attn_config/alibi"}));
  if (alibi.value_or(false) || mpt.value_or(false)) return std::string("alibi");
  KERNELPATH_TRY(mem_rope, read_boolean(d.read, {"use_mem_rope"}));
  if (mem_rope && !*mem_rope) return std::string("use_mem_rope is false");
  const Family* family = d.read.family;
  if (family == nullptr) return std::string();
  if (family->has_field("position_embedding_type")) {
    const Found kind = d.read.find({"position_embedding_type"});
    const bool rope = kind && kind.value->is_string() &&
                      (kind.value->as_string() == "rope" || kind.value->as_string() == "rotary");
    return rope ? std::string() : std::string("position_embedding_type is not rope");
  }
  if (family->rope() != nullptr || family->has_field("rotary_dim")) return std::string();
  return fmt::format("{} has no RoPE", family->model_type());
}

Result<void> read_scaling(Derivation& d, const Parameters& stated, const Parameters& family) {
  Rope& rope = d.out.rope;
  const Parameters& source = stated.value != nullptr ? stated : family;
  KERNELPATH_TRY(type, read_type(d.read, source));
  rope.type = type;
  if (!type && d.read.family != nullptr && !d.partial) {
    rope.type = {"default", {OriginKind::kDefault, {}, "no scaling is stated"}};
  }
  KERNELPATH_TRY(factor, number_of(d.read, source, "factor"));
  rope.factor = factor;
  if (const json::Value* length = source.find("original_max_position_embeddings")) {
    Origin origin = origin_of(d.read, source, "original_max_position_embeddings");
    KERNELPATH_TRY(value, to_integer(*length, origin.where, {}, d.read));
    rope.original_max_position_embeddings = {value, std::move(origin)};
  } else {
    KERNELPATH_TRY(outer, read_integer(d.read, {"original_max_position_embeddings"}));
    rope.original_max_position_embeddings = outer;
  }
  return {};
}

}  // namespace

Result<void> derive_rope(Derivation& d) {
  KERNELPATH_TRY(object, read_object(d.read));
  const RopeSource stated = split_by_kind(object);
  const RopeSource family = family_parameters(d.read);
  KERNELPATH_CHECK_OK(read_scaling(d, stated.main, family.main));
  KERNELPATH_TRY(theta, read_theta(d.read, stated.main, family.main));
  d.out.rope.theta = theta;
  KERNELPATH_TRY(local, read_local_theta(d.read, stated.local, family.local));
  d.out.rope.local_theta = local;
  KERNELPATH_TRY(partial, read_partial(d, stated.main, family.main));
  d.out.rope.partial_rotary_factor = partial;
  KERNELPATH_CHECK_OK(check_rotary_dim(d));
  KERNELPATH_CHECK_OK(read_mrope(d, stated.main));
  if (d.out.rope.type.value_or("") == "longrope") {
    KERNELPATH_CHECK_OK(check_longrope(d, stated.main));
  }
  KERNELPATH_TRY(reason, without_rope(d));
  if (reason.empty()) return {};
  if (!d.out.rope.theta) d.out.rope.theta.origin = absent_origin("no RoPE");
  d.out.rope.type = {"none", derived_origin(reason)};
  return {};
}

}  // namespace kernelpath::config
