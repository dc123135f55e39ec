#pragma once

#include "engines/engine.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// A table of an engine: its kind, and the function that makes its rows from what the engine keeps
// its tables in (nothing, a profile …).
template <class... Tables>
struct TableMaker {
  std::string_view kind;
  std::vector<TableRow> (*rows)(const Tables&...);
};

// Engine::table_kinds of a list of tables.
template <class List>
std::vector<std::string> kinds_of(const List& list) {
  std::vector<std::string> out;
  out.reserve(list.size());
  for (const auto& table : list) out.emplace_back(table.kind);
  return out;
}

// Engine::table of a list of tables: no rows for a kind that is not in it.
template <class List, class... Tables>
std::vector<TableRow> rows_of(const List& list, std::string_view kind, const Tables&... tables) {
  const auto found =
      std::ranges::find_if(list, [&](const auto& table) { return table.kind == kind; });
  return found == list.end() ? std::vector<TableRow>() : found->rows(tables...);
}

}  // namespace kernelpath::engines
