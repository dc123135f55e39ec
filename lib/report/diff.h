#pragma once

#include "engines/difference.h"
#include "report/inspect.h"

#include <string>
#include <vector>

namespace kernelpath::report {

inline constexpr std::string_view kDiffSchema = "kernelpath/diff";
inline constexpr std::string_view kDiffSchemaVersion = "1.1.0";

// What an upgrade changes for one model.
struct DiffAnswer {
  std::string model;
  std::string path;
  std::string device;
  engines::Resolution from;
  engines::Resolution to;
  std::vector<engines::Difference> differences;
};

// The diff document: header, engines, one entry in "models" per answer, "summary".
std::string diff_json(const Tool& tool, const std::vector<DiffAnswer>& answers);
// On one line, without its end: the answer of a --batch line.
std::string diff_json_line(const Tool& tool, const std::vector<DiffAnswer>& answers);
// JSON Lines: the header object, then one line an answer.
std::string diff_jsonl(const Tool& tool, const std::vector<DiffAnswer>& answers);

// What differs, model by model; for several models a summary over all of them in front: how many
// differ in what, and the changes that most of them share.
std::string diff_text(const std::vector<DiffAnswer>& answers, const View& view);
std::string diff_markdown(const std::vector<DiffAnswer>& answers, const View& view);

}  // namespace kernelpath::report
