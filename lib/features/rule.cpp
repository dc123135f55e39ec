#include "features/rule.h"

#include "features/enum_names.h"

#include <array>

namespace kernelpath::features {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"derive", "note", "warn", "error"};
constexpr std::array<std::string_view, 6> kStages = {"field", "arguments",  "build",
                                                     "run",   "documented", "cross"};

}  // namespace

std::string_view level_name(Level level) { return kLevels[static_cast<std::size_t>(level)]; }
std::optional<Level> find_level(std::string_view name) { return find_name<Level>(kLevels, name); }
std::string_view stage_name(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }
std::optional<Stage> find_stage(std::string_view name) { return find_name<Stage>(kStages, name); }

}  // namespace kernelpath::features
