#include "cli/bench_cases.h"

#include "base/file.h"
#include "base/text.h"
#include "bench/axes.h"
#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace kernelpath::cli {
namespace {

using bench::AxisValues;
using bench::CaseKind;
using bench::Shape;

// Options that are axes; their names are the axes' (with dashes).
constexpr std::array kAxisOptions = {
    Option::kHeads,    Option::kHeadDim,     Option::kDtype,   Option::kKv,
    Option::kPageSize, Option::kBatchSize,   Option::kContext, Option::kQueryTokens,
    Option::kRows,     Option::kWeightDtype, Option::kCols,    Option::kSize,
};

std::vector<AxisValues> stated_axes(const Settings& settings) {
  std::vector<AxisValues> out;
  for (const Option option : kAxisOptions) {
    if (!settings.is_set(option)) continue;
    const std::string_view name = option_row(option).name;
    out.push_back({.axis = bench::find_axis(name),
                   .values = settings.list(option),
                   .where = settings.of(option).where});
  }
  return out;
}

std::vector<std::string> case_names() {
  std::vector<std::string> out;
  for (const bench::CaseInfo& info : bench::case_table()) out.emplace_back(info.name);
  return out;
}

Error unknown_case(std::string_view name, std::string_view where,
                   const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  return {.code = ErrorCode::kUsageUnknown,
          .message = "no such case",
          .where = std::string(where),
          .value = shorten(name, 64),
          .hint = "cases are " + join_words(case_names()) +
                  "; a case file is a path that ends in "
                  ".toml",
          .near_matches = near_matches(name, names)};
}

// An error of a file's content in place of one of the command line.
Error file_error(Error error, const std::string& file) {
  error.file = file;
  if (error.code == ErrorCode::kUsage || error.code == ErrorCode::kUsageConflict ||
      error.code == ErrorCode::kUsageUnknown) {
    error.code = ErrorCode::kConfigValue;
  }
  return error;
}

struct Section {
  std::string name = {};
  CaseKind kind = CaseKind::kGqaDecode;
  bool has_case = false;
  std::vector<AxisValues> axes = {};
  std::vector<AxisValues> inherited = {};  // of the keys before the first section
};

Error bad_entry(const ConfigEntry& entry, const std::string& file, std::string message) {
  return {.code = ErrorCode::kConfigValue,
          .message = std::move(message),
          .file = file,
          .where = fmt::format("{}: {}", entry.line, entry.key)};
}

Result<void> add_entry(const ConfigEntry& entry, const std::string& file, Section& section) {
  if (entry.key == "case") {
    const bench::CaseInfo* const info =
        entry.values.size() == 1 ? bench::find_case(entry.values.front()) : nullptr;
    if (info == nullptr) {
      return fail(bad_entry(entry, file, "not one of " + join_words(case_names(), "or")));
    }
    section.kind = info->kind;
    section.has_case = true;
    return {};
  }
  const bench::AxisInfo* const axis = bench::find_axis(entry.key);
  if (axis == nullptr) {
    std::vector<std::string_view> names = {"case"};
    for (const bench::AxisInfo& one : bench::axis_table()) names.push_back(one.name);
    Error error = bad_entry(entry, file, "no such key");
    error.near_matches = near_matches(entry.key, names);
    return fail(std::move(error));
  }
  AxisValues values{
      .axis = axis, .values = entry.values, .where = fmt::format("{}: {}", entry.line, entry.key)};
  if (values.values.empty()) return fail(bad_entry(entry, file, "the array is empty"));
  section.axes.push_back(std::move(values));
  return {};
}

// Keys that stand twice in one section.
Result<void> check_repetition(const std::vector<ConfigEntry>& entries, const std::string& file) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const ConfigEntry& entry : entries) {
    if (seen.emplace(entry.section, entry.key).second) continue;
    return fail(bad_entry(entry, file, "stands twice in [" + entry.section + "]"));
  }
  return {};
}

// A section's own values, and those for all that its case uses and it does not state itself.
std::vector<AxisValues> merged_axes(const Section& section) {
  std::vector<AxisValues> out = section.axes;
  for (const AxisValues& values : section.inherited) {
    const bool stated = std::ranges::any_of(
        section.axes, [&](const AxisValues& own) { return own.axis == values.axis; });
    if (!stated && bench::uses_axis(section.kind, *values.axis)) out.push_back(values);
  }
  return out;
}

Result<std::vector<Shape>> shapes_of(const Section& section, const std::string& file, bool cuda) {
  if (!section.has_case) {
    return fail({.code = ErrorCode::kConfigMissing,
                 .message = "says no case",
                 .file = file,
                 .where = "[" + section.name + "]",
                 .hint = "case = \"gqa-decode\""});
  }
  for (const AxisValues& axis : section.axes) {
    if (bench::uses_axis(section.kind, *axis.axis)) continue;
    return fail(
        {.code = ErrorCode::kConfigValue,
         .message = fmt::format("case {} does not use it", bench::case_info(section.kind).name),
         .file = file,
         .where = axis.where});
  }
  Result<std::vector<Shape>> shapes =
      bench::expand(section.kind, section.name, merged_axes(section), {.cuda = cuda});
  if (!shapes) return fail(file_error(std::move(shapes).error(), file));
  if (shapes->size() == 1) return shapes;
  // One section with ranges gives shapes that must not share a name.
  for (Shape& shape : *shapes) {
    shape.name =
        fmt::format("{} ({}, {})", section.name, bench::describe(shape), bench::variant(shape));
  }
  return shapes;
}

// What the CASE arguments are.
struct CaseArguments {
  std::vector<std::string> files;
  std::vector<CaseKind> kinds;
  std::vector<std::string> others;  // names of sections
};

CaseArguments sort_arguments(const Invocation& invocation) {
  CaseArguments out;
  for (const std::string& text : invocation.models) {
    const bench::CaseInfo* const info = bench::find_case(text);
    if (info != nullptr) {
      out.kinds.push_back(info->kind);
    } else if (text.ends_with(".toml") || text.find('/') != std::string::npos) {
      out.files.push_back(text);
    } else {
      out.others.push_back(text);
    }
  }
  return out;
}

Result<std::vector<Shape>> shapes_of_files(const CaseArguments& arguments, bool cuda) {
  std::vector<Shape> all;
  for (const std::string& file : arguments.files) {
    KERNELPATH_TRY(contents, read_file(file, kMostCaseBytes));
    KERNELPATH_TRY(shapes, read_case_file(contents.text, file, cuda));
    std::ranges::move(shapes, std::back_inserter(all));
  }
  if (arguments.others.empty()) return all;
  std::vector<Shape> picked;
  for (const std::string& name : arguments.others) {
    const std::size_t before = picked.size();
    std::ranges::copy_if(all, std::back_inserter(picked), [&](const Shape& shape) {
      return shape.name == name || shape.name.starts_with(name + " (");
    });
    if (picked.size() > before) continue;
    std::vector<std::string> known = case_names();
    for (const Shape& shape : all) known.push_back(shape.name);
    return fail(unknown_case(name, "CASE", known));
  }
  return picked;
}

Result<std::vector<CaseKind>> all_kinds(const Settings& settings, const CaseArguments& arguments,
                                        const bench::Target& target) {
  std::vector<CaseKind> out = arguments.kinds;
  for (const std::string& name : settings.list(Option::kCase)) {
    const bench::CaseInfo* const info = bench::find_case(name);
    if (info == nullptr) return fail(unknown_case(name, "--case", case_names()));
    if (std::ranges::find(out, info->kind) == out.end()) out.push_back(info->kind);
  }
  if (!out.empty() || !arguments.files.empty()) return out;
  for (const bench::CaseInfo& info : bench::case_table()) {
    if (target.has(info.kind)) out.push_back(info.kind);
  }
  return out;
}

// An option that no chosen case varies over would be ignored without a word.
Result<void> check_used(const std::vector<CaseKind>& kinds, const std::vector<AxisValues>& stated) {
  for (const AxisValues& axis : stated) {
    const bool used = std::ranges::any_of(
        kinds, [&](CaseKind kind) { return bench::uses_axis(kind, *axis.axis); });
    if (used) continue;
    const std::string message =
        kinds.empty() ? "the shapes are those of the case file" : "none of the cases uses it";
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = message,
                 .where = axis.where,
                 .hint = "--list cases says what each case varies over"});
  }
  return {};
}

}  // namespace

Result<std::vector<Shape>> read_case_file(std::string_view text, const std::string& file,
                                          bool cuda) {
  Result<std::vector<ConfigEntry>> entries = parse_config_text(text, file);
  if (!entries) {
    Error error = std::move(entries).error();
    error.code = ErrorCode::kInputSchema;
    return fail(std::move(error));
  }
  KERNELPATH_CHECK_OK(check_repetition(*entries, file));
  Section common;
  std::vector<std::string> order;
  std::map<std::string, Section> sections;
  for (const ConfigEntry& entry : *entries) {
    if (entry.section.empty()) {
      KERNELPATH_CHECK_OK(add_entry(entry, file, common));
      continue;
    }
    if (!sections.contains(entry.section)) {
      order.push_back(entry.section);
      Section& section = sections[entry.section];
      section = {.name = entry.section, .kind = common.kind, .has_case = common.has_case};
      section.inherited = common.axes;
    }
    KERNELPATH_CHECK_OK(add_entry(entry, file, sections[entry.section]));
  }
  std::vector<Shape> out;
  for (const std::string& name : order) {
    KERNELPATH_TRY(shapes, shapes_of(sections[name], file, cuda));
    std::ranges::move(shapes, std::back_inserter(out));
  }
  if (!out.empty()) return out;
  return fail({.code = ErrorCode::kConfigMissing,
               .message = "holds no shape",
               .file = file,
               .hint = "a shape is a section with keys: [name], case = \"gqa-decode\", …"});
}

Result<std::vector<Shape>> wanted_shapes(const Invocation& invocation,
                                         const bench::Target& target) {
  const bool cuda = target.is_cuda();
  const CaseArguments arguments = sort_arguments(invocation);
  if (arguments.files.empty() && !arguments.others.empty()) {
    return fail(unknown_case(arguments.others.front(), "CASE", case_names()));
  }
  KERNELPATH_TRY(kinds, all_kinds(invocation.settings, arguments, target));
  const std::vector<AxisValues> stated = stated_axes(invocation.settings);
  KERNELPATH_CHECK_OK(check_used(kinds, stated));
  KERNELPATH_TRY(out, shapes_of_files(arguments, cuda));
  for (const CaseKind kind : kinds) {
    KERNELPATH_TRY(shapes, bench::expand(kind, "", stated, {.cuda = cuda}));
    std::ranges::move(shapes, std::back_inserter(out));
  }
  return std::move(out);
}

}  // namespace kernelpath::cli
