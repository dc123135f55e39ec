#pragma once

#include "report/diff.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kernelpath::report {

// One change that models share: an aspect from a value to another.
struct SharedChange {
  std::string aspect;
  std::string where;
  std::string from;
  std::string to;
  std::vector<std::string> rules;   // of all models, each once
  std::vector<std::string> models;  // in the order of the answers
  bool form = false;                // only how the cache is written down or laid out
};

// An aspect and how many models differ in it.
struct AspectCount {
  std::string aspect;
  std::size_t models = 0;
};

struct DiffSummary {
  std::size_t models = 0;
  std::size_t unchanged = 0;           // nothing differs
  std::size_t unchanged_but_form = 0;  // only how the cache is written down or laid out
  std::vector<AspectCount> aspects;    // those that occur, in the order of difference_aspects()
  std::vector<SharedChange> changes;   // by aspect, the most frequent first
};

DiffSummary summarise(const std::vector<DiffAnswer>& answers);

}  // namespace kernelpath::report
