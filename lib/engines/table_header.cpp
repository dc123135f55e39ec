#include "engines/table_header.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::engines {
namespace {

constexpr std::string_view kSchema = "kernelpath/engine-profile";
constexpr std::string_view kSchemaMajor = "1.";

Result<void> expect(const JsonFields& table, std::string_view member, std::string_view wanted) {
  KERNELPATH_TRY(found, table.string(member));
  if (found == wanted) return {};
  return fail(table.error(member, fmt::format("expected \"{}\"", wanted)));
}

}  // namespace

Result<void> check_table_header(const JsonFields& table, std::string_view engine,
                                std::string_view name) {
  KERNELPATH_CHECK_OK(expect(table, "schema", kSchema));
  KERNELPATH_TRY(schema_version, table.string("schema_version"));
  if (!std::string_view(schema_version).starts_with(kSchemaMajor)) {
    Error error = table.error("schema_version", "this build reads schema versions 1.x");
    error.hint = "extract the table again with this version's scripts/extract-profile";
    return fail(std::move(error));
  }
  KERNELPATH_CHECK_OK(expect(table, "engine", engine));
  return expect(table, "table", name);
}

Result<std::vector<TableSource>> read_table_sources(const JsonFields& table) {
  std::vector<TableSource> out;
  KERNELPATH_TRY(sources, table.object("sources"));
  for (const json::Member& member : sources.value().members()) {
    KERNELPATH_TRY(row, sources.fields_of(member));
    KERNELPATH_TRY(repository, row.string("repo"));
    KERNELPATH_TRY(file, row.string("file"));
    KERNELPATH_TRY(commit, row.string("commit"));
    out.push_back({.tag = member.key,
                   .repository = std::move(repository),
                   .file = std::move(file),
                   .commit = std::move(commit)});
  }
  return out;
}

}  // namespace kernelpath::engines
