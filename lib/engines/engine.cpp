#include "engines/engine.h"

#include "base/file.h"
#include "base/text.h"
#include "engines/deepinfer/engine.h"
#include "engines/kernelpath/engine.h"
#include "engines/llamacpp/engine.h"
#include "engines/sglang/engine.h"
#include "engines/sglang/profile.h"
#include "engines/trtllm/engine.h"
#include "engines/vllm/engine.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kernelpath::engines {
namespace {

Error unknown_engine(std::string_view name) {
  std::vector<std::string> names;
  for (const Engine* engine : all_engines()) {
    const std::string short_name(engine->name());
    if (std::find(names.begin(), names.end(), short_name) == names.end()) {
      names.push_back(short_name);
    }
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("unknown engine; this build has {}", join_words(names)),
          .where = "--engine",
          .value = shorten(name, 64),
          .near_matches = near_matches(name, candidates)};
}

Error unknown_version(std::string_view name, std::string_view version) {
  std::vector<std::string> versions;
  for (const Engine* engine : all_engines()) {
    if (engine->name() == name) versions.emplace_back(engine->version());
  }
  const std::vector<std::string_view> candidates(versions.begin(), versions.end());
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("this build has no such version of {}; it has {}", name,
                                 join_words(versions)),
          .where = "--engine",
          .value = shorten(version, 64),
          .near_matches = near_matches(version, candidates)};
}

std::vector<const Engine*> collect_engines() {
  std::vector<const Engine*> out = {&trtllm::engine()};
  for (const Engine* engine : vllm::engines()) out.push_back(engine);
  out.push_back(&sglang::engine());
  out.push_back(&llamacpp::engine());
  out.push_back(&deepinfer::engine());
  out.push_back(&kernelpath::engine());
  return out;
}

std::vector<const Engine*>& engine_list() {
  static std::vector<const Engine*> list = collect_engines();
  return list;
}

// Whose tables a folder holds, by the header of its registry.json; empty where there is none.
Result<std::string> engine_of_folder(const std::string& folder) {
  constexpr std::size_t kMaxTableBytes = 4U << 20U;
  const std::string path = join_path(folder, "registry.json");
  if (!is_file(path)) return std::string();
  KERNELPATH_TRY(file, read_file(path, kMaxTableBytes));
  KERNELPATH_TRY(document, json::parse_object(std::move(file.text), path));
  const json::Value* engine = document.root.find("engine");
  return engine != nullptr && engine->is_string() ? engine->as_string() : std::string("trtllm");
}

using UseFolder = Result<void> (*)(const std::string& folder);

Result<UseFolder> reader_of(const std::string& engine, const std::string& folder) {
  if (engine == "trtllm") return UseFolder(trtllm::use_profile_folder);
  if (engine == "vllm") return UseFolder(vllm::use_profile_folder);
  if (engine == "llamacpp") return UseFolder(llamacpp::use_profile_folder);
  if (engine == "sglang") return UseFolder(sglang::use_profile_folder);
  return fail({.code = ErrorCode::kInputSchema,
               .message = "the table is of an engine that this build does not know",
               .file = join_path(folder, "registry.json"),
               .where = "/engine",
               .value = shorten(engine, 64)});
}

Error no_profile(const std::string& folder) {
  return {.code = ErrorCode::kInputMissing,
          .message = "neither the folder nor one in it holds a registry.json",
          .file = folder,
          .hint = "--profile-dir takes a folder that scripts/extract-profile wrote"};
}

}  // namespace

std::span<const Engine* const> all_engines() { return engine_list(); }

Result<const Engine*> find_engine(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view engine_name = name.substr(0, at);
  const Engine* newest = nullptr;
  for (const Engine* engine : all_engines()) {
    if (!equal_ignoring_case(engine->name(), engine_name)) continue;
    newest = engine;
    if (at != std::string_view::npos && engine->version() == name.substr(at + 1)) return engine;
  }
  if (newest == nullptr) return fail(unknown_engine(engine_name));
  if (at != std::string_view::npos) {
    return fail(unknown_version(newest->name(), name.substr(at + 1)));
  }
  return newest;
}

Result<void> use_profile_folder(const std::string& folder) {
  std::vector<std::string> folders = {folder};
  KERNELPATH_TRY(names, list_folder(folder));
  for (const std::string& name : names) folders.push_back(join_path(folder, name));
  bool found = false;
  for (const std::string& candidate : folders) {
    KERNELPATH_TRY(engine, engine_of_folder(candidate));
    if (engine.empty()) continue;
    KERNELPATH_TRY(use, reader_of(engine, candidate));
    KERNELPATH_CHECK_OK(use(candidate));
    found = true;
  }
  if (!found) return fail(no_profile(folder));
  engine_list() = collect_engines();
  return {};
}

}  // namespace kernelpath::engines
