#include "comm/world.h"

#include <array>
#include <charconv>
#include <optional>

namespace kernelpath::comm {
namespace {

struct Variables {
  std::string_view rank;
  std::string_view size;
};

// Of Open MPI, of MPICH and its kin, and of Slurm's steps.
constexpr std::array<Variables, 3> kVariables{
    {{.rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE"},
     {.rank = "PMI_RANK", .size = "PMI_SIZE"},
     {.rank = "SLURM_PROCID", .size = "SLURM_STEP_NUM_TASKS"}}};

std::optional<int> number_of(std::span<const std::pair<std::string, std::string>> environment,
                             std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key != name) continue;
    int number = 0;
    const char* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number >= 0) return number;
  }
  return std::nullopt;
}

}  // namespace

std::span<const std::string_view> launch_variables() {
  static const std::array<std::string_view, 2 * kVariables.size()> kNames = [] {
    std::array<std::string_view, 2 * kVariables.size()> names;
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      names[2 * i] = kVariables[i].rank;
      names[2 * i + 1] = kVariables[i].size;
    }
    return names;
  }();
  return kNames;
}

Launch launch_of(std::span<const std::pair<std::string, std::string>> environment) {
  for (const Variables& variables : kVariables) {
    const auto rank = number_of(environment, variables.rank);
    const auto size = number_of(environment, variables.size);
    if (rank && size && *rank < *size) return {.rank = *rank, .size = *size};
  }
  return {};
}

}  // namespace kernelpath::comm
