#pragma once

#include "kernels/ops.h"

#include <cstdint>

namespace kernelpath::kernels::cpu {

// A query token of a step, and the keys that it may see.
struct IndexQuery {
  std::int64_t token = 0;
  std::int64_t request = 0;
  std::int64_t keys = 0;  // positions [0, keys)
};
IndexQuery index_query(const IndexParams& params, std::int64_t token);

// Scores of the keys [begin, end) of a query into scores[begin, end).
void score_index_keys(const IndexParams& params, const IndexQuery& query, std::int64_t begin,
                      std::int64_t end, float* scores);
// The best top_k of scores[0, query.keys) into the query's row of params.selected.
void select_index_keys(const IndexParams& params, const IndexQuery& query, const float* scores);

}  // namespace kernelpath::kernels::cpu
