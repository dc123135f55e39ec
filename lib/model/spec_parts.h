#pragma once

#include "base/result.h"
#include "model/fields.h"
#include "model/spec.h"

// The parts of make_spec(). Each reads what the ones before it need from `spec`.
namespace kernelpath::model {

// A size that the model cannot be without. Error kConfigMissing or kConfigValue (not > 0).
Result<std::int64_t> required(const config::IntField& field, std::string_view name);

Result<std::vector<RopeSpec>> read_ropes(const Fields& fields, const DecoderSpec& spec);
Result<MoeSpec> read_moe(const Fields& fields);
Result<void> read_layers(const Fields& fields, DecoderSpec& spec);

}  // namespace kernelpath::model
