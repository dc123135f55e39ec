#pragma once

#include "engines/json_fields.h"

#include <string>
#include <string_view>
#include <vector>

// What every table file of data/engines/ starts with.
namespace kernelpath::engines {

// Refuses a file of another schema, of a version of the schema that this build does not read, of
// another engine, or with another table (schema/engine-profile.schema.json). Error: that of
// `table`.
Result<void> check_table_header(const JsonFields& table, std::string_view engine,
                                std::string_view name);

// A file that a table was read from.
struct TableSource {
  std::string tag;  // what rows refer to it by
  std::string repository;
  std::string file;
  std::string commit;
};
// The member "sources", in file order.
Result<std::vector<TableSource>> read_table_sources(const JsonFields& table);

}  // namespace kernelpath::engines
