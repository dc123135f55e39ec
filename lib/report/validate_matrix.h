#pragma once

#include "features/feature_matrix.h"
#include "features/matrix.h"
#include "report/inspect.h"

#include <string>
#include <string_view>
#include <vector>

// The two matrices of llm-validate --matrix.
namespace kernelpath::report {

inline constexpr std::string_view kFeatureMatrixSchema = "kernelpath/feature-matrix";
inline constexpr std::string_view kValueMatrixSchema = "kernelpath/value-matrix";
inline constexpr std::string_view kMatrixSchemaVersion = "1.0.0";
inline constexpr std::string_view kValueMatrixSchemaVersion = "2.0.0";

// Feature × feature, as the engine's documentation has it. Each cell is a word and, where it is not
// a plain yes, a number that leads to its reason below; every reason says whether it is documented
// or kernelpath's own.
std::string feature_matrix_text(const features::FeatureMatrix& matrix);
std::string feature_matrix_markdown(const features::FeatureMatrix& matrix);
std::string feature_matrix_html(const features::FeatureMatrix& matrix);
std::string feature_matrix_json(const Tool& tool, const features::FeatureMatrix& matrix,
                                int indent);

// One engine's value matrix.
struct EngineMatrix {
  std::string engine = {};
  std::string version = {};
  features::ValueMatrix matrix = {};
};

// The matrices of several engines for one model, or for none.
struct ValueMatrices {
  std::string model = {};   // as shown; empty: the combination alone
  std::string device = {};  // "h200 (sm90, 141 GiB)"
  std::vector<EngineMatrix> engines = {};
};

// The valid region and what is outside it: a line for each group of combinations that are alike.
std::string value_matrix_text(const ValueMatrices& matrices);
std::string value_matrix_markdown(const ValueMatrices& matrices);
std::string value_matrix_html(const ValueMatrices& matrices);
std::string value_matrix_json(const Tool& tool, const ValueMatrices& matrices, int indent);

}  // namespace kernelpath::report
