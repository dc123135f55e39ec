#pragma once

#include "base/embedded.h"
#include "base/result.h"
#include "features/rule_table.h"
#include "json/document.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// What an engine's documentation says of two features together.
enum class PairStatus : std::uint8_t { kYes, kNo, kUntested, kKnownIssues, kYesWithLimit };
std::string_view pair_status_name(PairStatus status);  // "yes", "no", "untested", …

struct PairCell {
  PairStatus status = PairStatus::kYes;
  std::string reason;           // empty where there is none
  bool reason_is_ours = false;  // inferred by kernelpath; the document gives no reason
};

// The documented feature × feature table of one engine version, and its table of key models.
struct FeatureMatrix {
  std::string engine;
  std::string version;
  engines::Source source;
  std::vector<std::string> features;
  std::vector<std::vector<PairCell>> cells;  // [row][column] for column < row

  engines::Source models_source;
  std::vector<std::string> model_features;  // columns
  struct ModelRow {
    std::string architecture = {};
    std::vector<std::string> cells = {};  // "Y", "N", "U", "NA", "Y1" …
  };
  std::vector<ModelRow> models;
  std::vector<std::pair<std::string, std::string>> footnotes;

  [[nodiscard]] std::optional<std::size_t> find_feature(std::string_view name) const;
  // The order of the two does not matter; null pointer for a feature with itself.
  [[nodiscard]] const PairCell* cell(std::size_t a, std::size_t b) const;
  // "FM-09-03": row and column of the pair.
  static std::string pair_id(std::size_t a, std::size_t b);
};

// Reads data/engines/<engine>-<version>/feature_matrix.json. Error kInputSchema.
Result<FeatureMatrix> read_feature_matrix(const json::Document& document);

// The feature_matrix.json files of data/engines/ as the build embedded them.
std::span<const EmbeddedFile> embedded_matrices();

// The embedded matrix of an engine; null pointer if its documentation has none.
const FeatureMatrix* find_feature_matrix(std::string_view engine);

// Which arguments turn a feature on: the `features` of a rule file.
struct FeatureSwitch {
  std::string name;
  std::string when;     // a condition
  std::string at;       // the field to point at
  json::Value example;  // arguments that turn it on
  json::Value off;      // and off; an empty object where it is off by default
};

// Adds a rule for every documented pair that is not a plain "yes" (ids FM-…), and for every model
// and feature that is not (ids KM-…). A pair that no arguments can turn on together gets none.
Result<void> add_documented_rules(RuleTable& table, const FeatureMatrix& matrix,
                                  const std::vector<FeatureSwitch>& switches);

}  // namespace kernelpath::features
