#include "features/feature_matrix.h"

#include "base/assert.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

constexpr std::array<std::string_view, 5> kStatuses = {"yes", "no", "untested", "known_issues",
                                                       "yes_with_limit"};

Unexpected broken(std::string where, std::string message) {
  return fail(
      {.code = ErrorCode::kInputSchema, .message = std::move(message), .where = std::move(where)});
}

const json::Value* list_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_array() ? found : nullptr;
}

std::string text_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

std::vector<std::string> texts_of(const json::Value& object, std::string_view key) {
  std::vector<std::string> out;
  const json::Value* const list = list_of(object, key);
  if (list == nullptr) return out;
  for (const json::Value& item : list->items()) {
    if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}

engines::Source source_of(const json::Value& root, std::string_view key) {
  const json::Value* const sources = root.find("sources");
  const json::Value* const source = sources != nullptr ? sources->find(key) : nullptr;
  if (source == nullptr) return {};
  return {.project = text_of(*source, "repo"),
          .file = text_of(*source, "file"),
          .version = text_of(*source, "commit").substr(0, 8)};
}

Result<void> read_cell(FeatureMatrix& matrix, const json::Value& item) {
  const json::Value* const row = item.find("row");
  const json::Value* const column = item.find("column");
  const bool numbers = row != nullptr && row->is_integer() && column != nullptr &&
                       column->is_integer() && column->as_integer() >= 0 &&
                       column->as_integer() < row->as_integer() &&
                       row->as_integer() < static_cast<std::int64_t>(matrix.features.size());
  const auto* const status = std::find(kStatuses.begin(), kStatuses.end(), text_of(item, "status"));
  if (!numbers || status == kStatuses.end()) return broken("/cells", "a broken cell");
  PairCell& cell = matrix.cells[static_cast<std::size_t>(row->as_integer())]
                               [static_cast<std::size_t>(column->as_integer())];
  cell.status = static_cast<PairStatus>(status - kStatuses.begin());
  cell.reason = text_of(item, "reason");
  cell.reason_is_ours = text_of(item, "reason_basis") == "ours";
  return {};
}

Result<void> read_models(FeatureMatrix& matrix, const json::Value& root) {
  const json::Value* const models = root.find("models");
  if (models == nullptr) return {};
  matrix.model_features = texts_of(*models, "features");
  const json::Value* const rows = list_of(*models, "rows");
  for (const json::Value& row : rows != nullptr ? rows->items() : std::span<const json::Value>()) {
    FeatureMatrix::ModelRow read{.architecture = text_of(row, "architecture"),
                                 .cells = texts_of(row, "cells")};
    if (read.cells.size() != matrix.model_features.size()) {
      return broken("/models/rows", read.architecture + ": wrong number of cells");
    }
    matrix.models.push_back(std::move(read));
  }
  const json::Value* const notes = models->find("footnotes");
  if (notes == nullptr) return {};
  for (const json::Member& note : notes->members()) {
    if (note.value.is_string()) matrix.footnotes.emplace_back(note.key, note.value.as_string());
  }
  return {};
}

}  // namespace

std::string_view pair_status_name(PairStatus status) {
  return kStatuses[static_cast<std::size_t>(status)];
}

std::optional<std::size_t> FeatureMatrix::find_feature(std::string_view name) const {
  const auto found = std::find_if(features.begin(), features.end(), [name](const std::string& f) {
    return equal_ignoring_case(f, name);
  });
  if (found == features.end()) return std::nullopt;
  return static_cast<std::size_t>(found - features.begin());
}

const PairCell* FeatureMatrix::cell(std::size_t a, std::size_t b) const {
  if (a == b || std::max(a, b) >= cells.size()) return nullptr;
  return &cells[std::max(a, b)][std::min(a, b)];
}

std::string FeatureMatrix::pair_id(std::size_t a, std::size_t b) {
  return fmt::format("FM-{:02}-{:02}", std::max(a, b), std::min(a, b));
}

Result<FeatureMatrix> read_feature_matrix(const json::Document& document) {
  const json::Value& root = document.root;
  FeatureMatrix out;
  out.engine = text_of(root, "engine");
  out.version = text_of(root, "version");
  out.source = source_of(root, "features");
  out.models_source = source_of(root, "models");
  out.features = texts_of(root, "features");
  for (std::size_t row = 0; row < out.features.size(); ++row) out.cells.emplace_back(row);
  const json::Value* const cells = list_of(root, "cells");
  if (cells == nullptr || out.features.empty()) return broken("/", "no features or no cells");
  for (const json::Value& item : cells->items()) KERNELPATH_CHECK_OK(read_cell(out, item));
  KERNELPATH_CHECK_OK(read_models(out, root));
  return out;
}

const FeatureMatrix* find_feature_matrix(std::string_view engine) {
  if (engine != "trtllm") return nullptr;
  static const FeatureMatrix matrix = [] {
    const auto files = embedded_matrices();
    const auto found = std::find_if(files.begin(), files.end(), [](const EmbeddedFile& file) {
      return file.path == "trtllm-2026-11/feature_matrix.json";
    });
    KERNELPATH_ASSERT(found != files.end());
    auto document = json::parse_object(std::string(found->content), std::string(found->path));
    KERNELPATH_ASSERT(document.has_value());
    auto read = read_feature_matrix(*document);
    KERNELPATH_ASSERT(read.has_value());
    return std::move(*read);
  }();
  return &matrix;
}

}  // namespace kernelpath::features
