// What vLLM's own test of its configurations expects of known models, against what is read here of
// the same models' files. The engine's source: tests/config/test_model_arch_config.py.

#include "config/load.h"
#include "engines/vllm/model_view.h"
#include "engines/vllm/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

using Row = std::map<std::string, std::string>;

// Where the file at hand is not the one that the engine's test was written for.
struct Explained {
  std::string_view model;
  std::string_view field;
  std::string_view ours;
  std::string_view why;
};

constexpr auto kExplained = std::to_array<Explained>({
    {"databricks/dbrx-instruct", "layers", "48", "the file is a collection's own: n_layers 48"},
    {"databricks/dbrx-instruct", "kv_heads", "12", "the file is a collection's own: kv_n_heads 12"},
    {"databricks/dbrx-instruct", "vocab", "100280", "the file is a collection's own"},
    {"databricks/dbrx-instruct", "experts", "16",
     "get_num_experts looks at top-level names, dbrx keeps moe_num_experts in ffn_config"},
    {"mosaicml/mpt-7b", "architectures", "MptForCausalLM", "the class was renamed in the file"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "architectures", "NemotronHForCausalLM",
     "the file was published under the earlier name"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "text_model_type", "nemotron_h",
     "the file was published under the earlier name"},
});

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
  return cells;
}

std::vector<Row> read_rows() {
  std::ifstream file(std::string(KERNELPATH_TEST_DATA) + "/cases/vllm_arch_groundtruth.tsv");
  EXPECT_TRUE(file.is_open());
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) row[names[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string folder_of(std::string model) {
  const std::size_t slash = model.find('/');
  if (slash != std::string::npos) model.replace(slash, 1, "__");
  return std::string(KERNELPATH_TEST_DATA) + "/configs/" + model;
}

Row our_row(const config::ModelConfig& model) {
  const std::string version = "0.25.1";
  const ModelRegistry& registry = built_in_registry(version);
  const ModelClass found = resolve_model_class(registry, {.architectures = model.architectures});
  const ModelView view = view_model(model, found, {}, built_in_profile(version));
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return {{"architectures", model.architectures.front()},
          {"text_model_type", view.model_type},
          {"hidden_size", number(view.hidden_size)},
          {"layers", number(view.num_layers)},
          {"heads", number(view.total_heads)},
          {"head_size", number(view.head_size)},
          {"vocab", number(model.vocab_size.value_or(0))},
          {"kv_heads", number(view.total_kv_heads)},
          {"experts", number(model.moe ? model.moe->num_experts.value_or(0) : 0)},
          {"mla", view.use_mla ? "yes" : "no"},
          {"multimodal", found.info.supports_multimodal ? "yes" : "no"},
          {"dtype", model.dtype.value_or("float32")}};
}

bool is_explained(const std::string& model, const std::string& field, const std::string& ours) {
  return std::any_of(kExplained.begin(), kExplained.end(), [&](const Explained& known) {
    return known.model == model && known.field == field && known.ours == ours;
  });
}

TEST(VllmArchitecture, KnownModels_AreReadAsTheEngineExpects) {
  std::size_t compared = 0;
  for (Row& row : read_rows()) {
    const std::string model = row["model"];
    const std::string folder = folder_of(model);
    if (!std::filesystem::exists(folder)) continue;
    ++compared;
    const auto config = config::load_model(folder);
    ASSERT_TRUE(config) << config.error().text();
    for (const auto& [field, ours] : our_row(*config)) {
      if (is_explained(model, field, ours)) continue;
      EXPECT_EQ(ours, row[field]) << model << ' ' << field;
    }
  }
  EXPECT_EQ(compared, 5U);
}

TEST(VllmArchitecture, EveryExplainedDifference_IsOne) {
  for (Row& row : read_rows()) {
    for (const Explained& known : kExplained) {
      if (known.model == row["model"]) {
        EXPECT_NE(std::string(known.ours), row[std::string(known.field)]) << known.why;
      }
    }
  }
}

}  // namespace
}  // namespace kernelpath::engines::vllm
