#pragma once

#include "base/result.h"
#include "features/context.h"
#include "features/validate.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// One dimension of the value matrix: a field and the values it takes.
struct MatrixAxis {
  std::uint32_t field = 0;
  std::string name;           // as asked: "backend"
  std::vector<Value> values;  // null: left out, the default
};

// Every combination of the axes' values, judged; the last axis varies fastest.
struct ValueMatrix {
  std::vector<MatrixAxis> axes;
  std::vector<Judgement> cells;
};

// The axis that a name asks for: a field, an option ("kv" or "--kv" for the field that it sets), or
// "speculative" …; its values are those of the schema, booleans, or the literals that the rules
// compare it with. Errors: kUsageUnknown with near names; kUsage if no values are known.
Result<MatrixAxis> find_axis(const RuleTable& table, std::string_view name);
// The same with the values given: text is read as the field's type. Error kUsage.
Result<MatrixAxis> make_axis(Context& context, std::string_view name,
                             const std::vector<std::string>& values);

// Judges all combinations; everything else is as in `context`. Only the rules that can depend on an
// axis are asked again: about 10 µs a combination at most. Error kUsage: more than `limit` cells.
Result<ValueMatrix> judge_matrix(const Context& context, std::vector<MatrixAxis> axes,
                                 const Scope& scope = {}, std::size_t limit = 1'000'000);

// The combinations of equal verdict, as few lines as grouping equal values axis by axis gives.
struct MatrixRegion {
  Level worst = Level::kDerive;
  const Rule* deciding = nullptr;
  std::vector<std::vector<std::string>> values;  // by axis; all values of an axis: {"*"}
  std::size_t num_combinations = 0;
};
std::vector<MatrixRegion> regions(const ValueMatrix& matrix);

}  // namespace kernelpath::features
