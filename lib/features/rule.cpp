#include "features/rule.h"

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"derive", "note", "warn", "error"};
constexpr std::array<std::string_view, 6> kStages = {"field", "arguments",  "build",
                                                     "run",   "documented", "cross"};

template <class Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view level_name(Level level) { return kLevels[static_cast<std::size_t>(level)]; }
std::optional<Level> find_level(std::string_view name) { return find_name<Level>(kLevels, name); }
std::string_view stage_name(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }
std::optional<Stage> find_stage(std::string_view name) { return find_name<Stage>(kStages, name); }

}  // namespace kernelpath::features
