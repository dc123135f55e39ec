// Mixture of experts: sizes of the whole model. Which layers have experts: layer_details.cpp.

#include "config/derive.h"

#include <fmt/format.h>

namespace kernelpath::config {
namespace {

// The number of experts, or an absent field for a dense model.
Result<IntField> read_experts(const Derivation& d) {
  const Found found = d.read.find({"n_routed_experts", "num_experts", "num_local_experts",
                                   "moe_num_experts", "ffn_config/moe_num_experts"});
  // A draft whose class belongs to another family than its model_type (an EAGLE head for Mixtral)
  // has experts only if it says so itself.
  if (found.presence == Presence::kDefault && !d.out.architectures.empty()) {
    for (const std::string_view model_type : model_types_of_class(d.out.architectures.front())) {
      const Family* family = find_family(model_type);
      if (family != nullptr && family->text_model_type().empty() &&
          !family->has_field(found.name)) {
        return IntField{};
      }
    }
  }
  return as_integer(d.read, found);
}

// A list holds one number a layer (HunYuan); the largest is the model's.
Result<IntField> largest(const Derivation& d, Names names, IntRange range = {}) {
  const Found found = d.read.find(names);
  if (!found || !found.value->is_array()) return as_integer(d.read, found, range);
  KERNELPATH_TRY(values, as_integers(d.read, found, range));
  if (values.empty()) return IntField{};
  std::int64_t most = values.front();
  for (const std::int64_t value : values) most = std::max(most, value);
  Origin origin = found.origin;
  origin.rule = "largest of a list";
  return IntField{most, std::move(origin)};
}

Result<void> check_top_k(const Derivation& d, const Moe& moe) {
  if (!moe.num_experts || !moe.num_experts_per_tok) return {};
  if (*moe.num_experts_per_tok <= *moe.num_experts) return {};
  const std::string where = moe.num_experts_per_tok.origin.where.empty()
                                ? d.read.text_pointer + "/num_experts_per_tok"
                                : moe.num_experts_per_tok.origin.where;
  return fail(Error{.code = ErrorCode::kConfigValue,
                    .message = fmt::format("{} experts a token are more than the {} experts",
                                           *moe.num_experts_per_tok, *moe.num_experts),
                    .where = where,
                    .value = std::to_string(*moe.num_experts_per_tok)});
}

}  // namespace

Result<void> derive_moe(Derivation& d) {
  KERNELPATH_TRY(enabled, read_boolean(d.read, {"enable_moe_block"}));
  if (enabled && !*enabled) return {};
  Moe moe;
  KERNELPATH_TRY(experts, read_experts(d));
  if (!experts) return {};
  moe.num_experts = experts;
  KERNELPATH_TRY(
      top_k, largest(d, {"num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk",
                         "moe_top_k", "moe_k", "num_experts_per_token", "ffn_config/moe_top_k"}));
  moe.num_experts_per_tok = top_k;
  KERNELPATH_TRY(inner, largest(d, {"moe_intermediate_size", "expert_ffn_hidden_size",
                                    "ffn_config/ffn_hidden_size"}));
  moe.moe_intermediate_size = inner;
  if (!inner && d.out.intermediate_size) {
    moe.moe_intermediate_size = derived_integer(*d.out.intermediate_size, "intermediate_size");
  }
  KERNELPATH_TRY(shared, largest(d,
                                 {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                                  "moe_num_shared_experts"},
                                 {.min = 0}));
  moe.num_shared_experts = shared;
  KERNELPATH_TRY(shared_inner, read_integer(d.read,
                                            {"shared_expert_intermediate_size",
                                             "moe_shared_expert_intermediate_size",
                                             "share_expert_dim", "shared_intermediate_size"},
                                            {.min = 0}));
  moe.shared_intermediate_size = shared_inner;
  KERNELPATH_TRY(dense, read_integer(d.read, {"first_k_dense_replace"}, {.min = 0}));
  moe.first_k_dense_replace = dense;
  KERNELPATH_CHECK_OK(check_top_k(d, moe));
  d.out.moe = std::move(moe);
  return {};
}

}  // namespace kernelpath::config
