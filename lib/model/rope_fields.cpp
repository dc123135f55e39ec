#include "model/fields.h"
#include "model/spec_parts.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kernelpath::model {
namespace {

// One object of rotary parameters; members may be absent.
class Parameters {
 public:
  Parameters(const json::Value* object, std::string where)
      : object_(object), where_(std::move(where)) {}

  [[nodiscard]] const json::Value* find(std::string_view name) const {
    return object_ == nullptr ? nullptr : object_->find_non_null(name);
  }
  // Absent, null: `otherwise`.
  [[nodiscard]] Result<double> number(std::string_view name, double otherwise) const {
    const json::Value* const value = find(name);
    if (value == nullptr) return otherwise;
    return number_at(*value, fmt::format("{}/{}", where_, name));
  }
  [[nodiscard]] Result<std::vector<double>> numbers(std::string_view name) const {
    std::vector<double> out;
    const json::Value* const list = find(name);
    if (list == nullptr || !list->is_array()) return out;
    out.reserve(list->items().size());
    for (const json::Value& item : list->items()) {
      KERNELPATH_TRY(value, number_at(item, fmt::format("{}/{}", where_, name)));
      out.push_back(value);
    }
    return out;
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const json::Value* const value = find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] Parameters member(std::string_view name) const {
    const json::Value* const inner = find(name);
    const bool object = inner != nullptr && inner->is_object();
    return {object ? inner : nullptr, fmt::format("{}/{}", where_, name)};
  }
  [[nodiscard]] bool there() const { return object_ != nullptr; }

 private:
  const json::Value* object_;
  std::string where_;
};

Result<RopeKind> read_kind(const Fields& fields, const Parameters& from) {
  constexpr std::array<std::pair<std::string_view, RopeKind>, 10> kKinds{
      {{"default", RopeKind::kDefault},
       {"mrope", RopeKind::kDefault},  // its three rows of positions are equal for text
       {"linear", RopeKind::kLinear},
       {"dynamic", RopeKind::kDynamic},
       {"llama3", RopeKind::kLlama3},
       {"yarn", RopeKind::kYarn},
       {"deepseek_yarn", RopeKind::kYarn},
       {"longrope", RopeKind::kLongrope},
       {"su", RopeKind::kLongrope},
       {"proportional", RopeKind::kProportional}}};
  std::string name = from.text("rope_type");
  if (name.empty()) name = from.text("type");
  if (name.empty()) name = "default";
  if (name == "yarn" && fields.family().yarn_is_longrope) return RopeKind::kLongrope;
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  return fail(Error{.code = ErrorCode::kUnavailable,
                    .message = "no kernel for this rope type; there are default, linear, dynamic, "
                               "llama3, yarn, longrope, proportional and mrope",
                    .where = from.where() + "/rope_type",
                    .value = name});
}

// Betas of null or 0 read as the defaults, as in the reference.
Result<double> read_beta(const Parameters& from, std::string_view name, double otherwise) {
  KERNELPATH_TRY(value, from.number(name, otherwise));
  return value == 0.0 ? otherwise : value;
}

Result<void> read_yarn(const Parameters& from, RopeSpec& out) {
  KERNELPATH_TRY(fast, read_beta(from, "beta_fast", 32.0));
  KERNELPATH_TRY(slow, read_beta(from, "beta_slow", 1.0));
  KERNELPATH_TRY(truncate, from.number("truncate", 1.0));
  KERNELPATH_TRY(mscale, from.number("mscale", 0.0));
  KERNELPATH_TRY(all, from.number("mscale_all_dim", 0.0));
  out.beta_fast = fast;
  out.beta_slow = slow;
  out.truncate = truncate != 0.0;
  out.mscale = mscale;
  out.mscale_all_dim = all;
  return {};
}

Result<void> check_longrope(const Parameters& from, const RopeSpec& spec) {
  const auto pairs = static_cast<std::size_t>(spec.dims / 2);
  if (spec.short_factor.size() == pairs && spec.long_factor.size() == pairs) return {};
  return fail(
      Error{.code = ErrorCode::kConfigValue,
            .message = fmt::format("short_factor has {} entries and long_factor {}; half "
                                   "of the {} rotated dimensions is needed",
                                   spec.short_factor.size(), spec.long_factor.size(), spec.dims),
            .where = from.where()});
}

// A length at the top level wins over the one inside; without both it is the model's own.
Result<double> original_length(const Fields& fields, const Parameters& from, double otherwise) {
  KERNELPATH_TRY(outer, fields.number({"original_max_position_embeddings"}));
  if (outer > 0.0) return outer;
  return from.number("original_max_position_embeddings", otherwise);
}

Result<RopeSpec> read_rope(const Fields& fields, const Parameters& from, std::int64_t dims) {
  const config::ModelConfig& config = fields.config();
  RopeSpec out;
  KERNELPATH_TRY(kind, read_kind(fields, from));
  out.kind = kind;
  out.dims = dims;
  out.max_position_embeddings = static_cast<double>(config.max_position_embeddings.value_or(0));
  KERNELPATH_TRY(original, original_length(fields, from, out.max_position_embeddings));
  out.original_max_position_embeddings = original;
  const bool stretched = kind == RopeKind::kYarn || kind == RopeKind::kLongrope;
  const double implied = stretched && original > 0.0 ? out.max_position_embeddings / original : 1.0;
  KERNELPATH_TRY(factor, from.number("factor", implied));
  KERNELPATH_TRY(theta, from.number("rope_theta", config.rope.theta.value_or(10000.0)));
  KERNELPATH_TRY(low, from.number("low_freq_factor", 1.0));
  KERNELPATH_TRY(high, from.number("high_freq_factor", 4.0));
  KERNELPATH_TRY(partial, from.number("partial_rotary_factor",
                                      config.rope.partial_rotary_factor.value_or(1.0)));
  out.factor = factor;
  out.theta = theta;
  out.low_freq_factor = low;
  out.high_freq_factor = high;
  out.partial_rotary_factor = partial;
  if (from.find("attention_factor") != nullptr) {
    KERNELPATH_TRY(attention, from.number("attention_factor", 1.0));
    out.attention_factor = attention;
  }
  KERNELPATH_CHECK_OK(read_yarn(from, out));
  KERNELPATH_TRY(short_factor, from.numbers("short_factor"));
  KERNELPATH_TRY(long_factor, from.numbers("long_factor"));
  out.short_factor = std::move(short_factor);
  out.long_factor = std::move(long_factor);
  if (kind == RopeKind::kLongrope) KERNELPATH_CHECK_OK(check_longrope(from, out));
  return out;
}

std::int64_t rotary_dims(const Fields& fields, const DecoderSpec& spec, const Parameters& from) {
  if (spec.mla) return spec.mla->rope;
  if (from.text("rope_type") == "proportional") return spec.head_dim;
  const double partial = fields.config().rope.partial_rotary_factor.value_or(1.0);
  return static_cast<std::int64_t>(static_cast<double>(spec.head_dim) * partial + 1e-9);
}

Parameters stated_parameters(const Fields& fields) {
  for (const std::string_view name : {"rope_parameters", "rope_scaling"}) {
    const json::Value* const object = fields.find(name);
    if (object != nullptr && object->is_object()) return {object, fields.pointer(name)};
  }
  return {nullptr, fields.pointer("rope_parameters")};
}

// gpt-oss is the one family whose class scales where the file says nothing.
RopeSpec class_rope(RopeSpec plain, const Family& family) {
  if (!family.sinks) return plain;
  plain.kind = RopeKind::kYarn;
  plain.factor = 32.0;
  plain.truncate = false;
  plain.original_max_position_embeddings = 4096.0;
  return plain;
}

}  // namespace

// The tables of full layers and, where they have one of their own, of sliding layers.
Result<std::vector<RopeSpec>> read_ropes(const Fields& fields, const DecoderSpec& spec) {
  std::vector<RopeSpec> out;
  if (fields.config().rope.type.value_or("default") == "none") return out;
  const Parameters all = stated_parameters(fields);
  const Parameters full = all.member("full_attention");
  const Parameters sliding = all.member("sliding_attention");
  const bool by_kind = full.there() || sliding.there();
  const Parameters& main = by_kind ? full : all;
  KERNELPATH_TRY(first, read_rope(fields, main, rotary_dims(fields, spec, main)));
  out.push_back(all.there() ? first : class_rope(first, fields.family()));
  if (sliding.there()) {
    KERNELPATH_TRY(second, read_rope(fields, sliding, rotary_dims(fields, spec, sliding)));
    out.push_back(std::move(second));
  } else if (fields.config().rope.local_theta && fields.config().rope.local_theta->value) {
    RopeSpec local;  // never scaled
    local.dims = first.dims;
    local.theta = **fields.config().rope.local_theta;
    out.push_back(std::move(local));
  }
  return out;
}

}  // namespace kernelpath::model
