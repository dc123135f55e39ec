#include "base/host_memory.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace kernelpath {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::string_view kGroups = "/sys/fs/cgroup";

std::optional<std::int64_t> number_in(const std::string& path) {
  const Result<FileContents> contents = read_file(path, kMaxBytes);
  if (!contents) return std::nullopt;
  const Result<std::int64_t> number = parse_integer(trim(contents->text));  // not for "max"
  return number ? std::optional(*number) : std::nullopt;
}

// The number of "MemAvailable:   12345 kB" in a file of such lines.
std::optional<std::int64_t> field_bytes(const std::string& path, std::string_view field) {
  const Result<FileContents> contents = read_file(path, kMaxBytes);
  if (!contents) return std::nullopt;
  for (const std::string& line : split(contents->text, '\n')) {
    if (!line.starts_with(field)) continue;
    std::string_view value = trim(std::string_view(line).substr(field.size()));
    value = value.substr(0, value.find(' '));
    const Result<std::int64_t> kibibytes = parse_integer(value);
    if (kibibytes) return *kibibytes * 1024;
  }
  return std::nullopt;
}

// The control group of this process below /sys/fs/cgroup: the line "0::/path".
std::optional<std::int64_t> group_bytes() {
  const Result<FileContents> contents = read_file("/proc/self/cgroup", kMaxBytes);
  if (!contents) return std::nullopt;
  for (const std::string& line : split(contents->text, '\n')) {
    if (!line.starts_with("0::/")) continue;
    const std::string folder = std::string(kGroups) + line.substr(3);
    const std::optional<std::int64_t> limit = number_in(join_path(folder, "memory.max"));
    const std::optional<std::int64_t> used = number_in(join_path(folder, "memory.current"));
    if (limit && used) return std::max(*limit - *used, std::int64_t{0});
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> available_host_bytes() {
  const std::optional<std::int64_t> system = field_bytes("/proc/meminfo", "MemAvailable:");
  const std::optional<std::int64_t> group = group_bytes();
  if (system && group) return std::min(*system, *group);
  return system ? system : group;
}

std::optional<std::int64_t> resident_bytes() { return field_bytes("/proc/self/status", "VmRSS:"); }

std::optional<std::int64_t> peak_resident_bytes() {
  return field_bytes("/proc/self/status", "VmHWM:");
}

}  // namespace kernelpath
