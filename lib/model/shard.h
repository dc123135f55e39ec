#pragma once

#include "base/result.h"
#include "comm/placement.h"
#include "model/layers.h"
#include "model/spec.h"

#include <cstdint>

// Tensor parallelism: a rank is a decoder of fewer heads and narrower layers, whose attention and
// feed-forward blocks give parts of a sum over ranks.
namespace kernelpath::model {

// This rank's numbers: heads, KV heads and inner widths divided by tp. Where there are fewer KV
// heads than ranks, each is kept by several. hidden_size and vocab_size stay those of the model.
DecoderSpec spec_of_rank(const DecoderSpec& whole, std::int64_t tp);

// The tokens whose rows of the embedding and of lm_head a rank keeps.
Run vocabulary_of_rank(std::int64_t vocab_size, std::int64_t tp, std::int64_t rank);

// The most tokens that any rank keeps.
std::int64_t widest_vocabulary(std::int64_t vocab_size, std::int64_t tp);

// Marks in `parameters`, made for the whole model and with every projection's scheme, what a rank
// keeps: rows of projections into heads and inner widths, columns of those out of them, rows of the
// vocabulary. Error kUnavailable: the sizes cannot be divided, or a rank would get part of a block
// of quantised weights; names the sizes and layers, and what --tp can be.
Result<void> shard_parameters(Parameters& parameters, const DecoderSpec& whole,
                              const comm::Placement& place);

}  // namespace kernelpath::model
