#pragma once

#include "bench/runner.h"
#include "report/inspect.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::cli {

// Semantic version of llm-bench's JSON documents; every change of their fields bumps it
// (CHANGELOG.md).
inline constexpr std::string_view kBenchSchema = "kernelpath/bench";
inline constexpr std::string_view kBenchSchemaVersion = "1.2.0";

// A run of llm-bench, for its printers.
struct BenchDocument {
  report::Tool tool;
  std::string commit;
  std::vector<std::string> arguments;  // CASE as written
  // Options that somebody set, by name, with their values: what repeats the run.
  std::vector<std::pair<std::string, std::vector<std::string>>> flags;
  bench::DeviceFacts device;
  bench::RunOptions options;
  std::vector<bench::Row> rows;
};

// "text", "md" and "html".
std::string bench_text(const BenchDocument& document, const report::View& view);
std::string bench_markdown(const BenchDocument& document);
std::string bench_html(const BenchDocument& document);
std::string bench_csv(const BenchDocument& document);
// The whole document; the header and one row as lines of jsonl.
std::string bench_json(const BenchDocument& document);
std::string bench_jsonl_header(const BenchDocument& document);
std::string bench_jsonl_line(const bench::Row& row);

// "187.9 us", "537 MB", "2.86 TB/s", "4.1 TFLOP/s", "85.3 %".
std::string time_text(double seconds);
std::string bytes_text(double bytes);
std::string rate_text(const bench::Row& row, double rate);
std::string percent_text(double fraction);

// The fastest peer that reads pages and has a time, or null.
const bench::PeerRow* best_peer(const bench::Row& row);

}  // namespace kernelpath::cli
