#include "engines/engine.h"

#include "base/text.h"
#include "engines/trtllm/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

}  // namespace

std::span<const Engine* const> all_engines() {
  static const std::array<const Engine*, 1> kEngines = {&trtllm::engine()};
  return kEngines;
}

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
  return trtllm::use_profile_folder(folder);
}

}  // namespace kernelpath::engines
