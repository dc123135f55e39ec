#include "recorded.h"

#include "base/file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace kernelpath::tokenizer {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kernelpath-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::path(const std::string& name) const { return join_path(path_, name); }

void TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::unique_ptr<Recorded> load_recorded(const std::string& kind) {
  const std::string base = std::string(KERNELPATH_GOLDEN_DIR) + "/tokenizer/" + kind;
  auto recorded = std::make_unique<Recorded>();
  recorded->folder.write("tokenizer.json", read_text(base + ".tokenizer.json"));
  recorded->folder.write("tokenizer_config.json", read_text(base + ".tokenizer_config.json"));
  auto tokenizer = load(recorded->folder.path());
  if (!tokenizer) throw std::runtime_error(tokenizer.error().text());
  recorded->tokenizer = *std::move(tokenizer);
  auto answers = json::parse_object(read_text(base + ".json"), base + ".json");
  if (!answers) throw std::runtime_error(answers.error().text());
  recorded->answers = *std::move(answers);
  return recorded;
}

std::vector<TokenId> ids_of(const json::Value& list) {
  std::vector<TokenId> ids;
  ids.reserve(list.items().size());
  for (const json::Value& id : list.items()) ids.push_back(static_cast<TokenId>(id.as_integer()));
  return ids;
}

}  // namespace kernelpath::tokenizer
