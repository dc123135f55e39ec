#pragma once

#include "features/feature_matrix.h"
#include "features/matrix.h"
#include "report/inspect.h"

#include <string>
#include <string_view>

// The two matrices of llm-validate --matrix.
namespace kernelpath::report {

inline constexpr std::string_view kFeatureMatrixSchema = "kernelpath/feature-matrix";
inline constexpr std::string_view kValueMatrixSchema = "kernelpath/value-matrix";
inline constexpr std::string_view kMatrixSchemaVersion = "1.0.0";

// Feature × feature, as the engine's documentation has it. Each cell is a word and, where it is not
// a plain yes, a number that leads to its reason below; every reason says whether it is documented
// or kernelpath's own.
std::string feature_matrix_text(const features::FeatureMatrix& matrix);
std::string feature_matrix_markdown(const features::FeatureMatrix& matrix);
std::string feature_matrix_html(const features::FeatureMatrix& matrix);
std::string feature_matrix_json(const Tool& tool, const features::FeatureMatrix& matrix,
                                int indent);

// The valid region and what is outside it: a line for each group of combinations that are alike.
std::string value_matrix_text(const features::ValueMatrix& matrix);
std::string value_matrix_markdown(const features::ValueMatrix& matrix);
std::string value_matrix_json(const Tool& tool, const features::ValueMatrix& matrix,
                              std::string_view engine, int indent);

}  // namespace kernelpath::report
