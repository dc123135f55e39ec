#pragma once

#include "base/result.h"
#include "features/context.h"
#include "features/validate.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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

// A field that no axis sets but that changes with some of them: what the resolution makes of their
// values.
struct MatrixFact {
  std::uint32_t field = 0;
  std::vector<std::size_t> axes = {};  // that it depends on, ascending
  std::vector<Value> values = {};      // one for each combination of them; the last varies fastest
};

// Every combination of the axes' values, judged; the last axis varies fastest.
struct ValueMatrix {
  std::vector<MatrixAxis> axes;
  std::vector<Judgement> cells;
  std::shared_ptr<const Arena> arena = {};  // of the values that the axes were given
};

struct MatrixOptions {
  std::vector<MatrixFact> facts = {};
  Scope scope = {};
  std::size_t limit = 1'000'000;  // combinations
};

// The axis that a name asks for: a field, an option ("kv" or "--kv" for the field that it sets), or
// "speculative" …; its values are those of the schema, booleans, or the literals that the rules
// compare it with. Errors: kUsageUnknown with near names; kUsage if no values are known.
Result<MatrixAxis> find_axis(const RuleTable& table, std::string_view name);
// The same with the values given: text is read as the field's type. Error kUsage.
Result<MatrixAxis> make_axis(Context& context, std::string_view name,
                             const std::vector<std::string>& values);

// Judges all combinations; everything else is as in `context`. Only the rules that can depend on an
// axis are asked again: about 10 µs a combination at most. Error kUsage: more combinations than the
// limit.
Result<ValueMatrix> judge_matrix(const Context& context, std::vector<MatrixAxis> axes,
                                 const MatrixOptions& options = {});

// Judges the combinations by another table too, whose rules see the axes only through `facts`; each
// combination of the axes that these depend on is judged once. What is worse there replaces the
// verdict.
void add_rules(ValueMatrix& matrix, const Context& context, const std::vector<MatrixFact>& facts,
               const Scope& scope);

// The combinations of equal verdict, as few lines as grouping equal values axis by axis gives.
struct MatrixRegion {
  Level worst = Level::kDerive;
  const Rule* deciding = nullptr;
  std::vector<std::vector<std::string>> values;  // by axis; all values of an axis: {"*"}
  std::size_t num_combinations = 0;
};
std::vector<MatrixRegion> regions(const ValueMatrix& matrix);

}  // namespace kernelpath::features
