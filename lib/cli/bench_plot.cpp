#include "cli/bench_plot.h"

#include "base/text.h"
#include "tokenizer/child_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace kernelpath::cli {
namespace {

using bench::Row;

// A text inside double quotes of gnuplot, with its mark-up characters taken as they are.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : shorten(escape_for_terminal(text), 60)) {
    const std::string_view special = "\\\"`";
    const std::string_view markup = "_^@&{}~";
    if (markup.find(c) != std::string_view::npos) out += "\\\\";
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string label_of(const Row& row) {
  const std::string name =
      row.shape.name.empty()
          ? fmt::format("{} {}", bench::case_info(row.shape.kind).name, bench::variant(row.shape))
          : row.shape.name;
  return row.rotated ? name + " (cold)" : name;
}

bool has_share(const Row& row) { return !row.error && row.limit_rate > 0; }

// Peers' names in the order of their first row.
std::vector<std::string> peer_names(const BenchDocument& document) {
  std::vector<std::string> out;
  for (const Row& row : document.rows) {
    for (const bench::PeerRow& peer : row.peers) {
      const bool known = std::ranges::find(out, peer.name) != out.end();
      if (peer.median_s && !known) out.push_back(peer.name);
    }
  }
  return out;
}

std::string peer_share(const Row& row, const std::string& name) {
  for (const bench::PeerRow& peer : row.peers) {
    if (peer.name != name || !peer.median_s) continue;
    return fmt::format("{:.6g}", row.of_limit() * row.measured.summary.median / *peer.median_s);
  }
  return "NaN";
}

Result<tokenizer::ProcessResult> gnuplot(const std::string& argument, const std::string& input) {
  const std::array<std::string, 2> command = {"gnuplot", argument};
  Result<tokenizer::ProcessResult> result =
      tokenizer::run_process(command, input, {.time = std::chrono::milliseconds(30'000)});
  if (result) return result;
  Error error = std::move(result).error();
  error.hint = "pictures need gnuplot (Debian: gnuplot-nox); text, md, csv and json need nothing";
  return fail(std::move(error));
}

Result<std::string> draw(const std::string& script) {
  KERNELPATH_TRY(answer, gnuplot("-", script));
  const tokenizer::ProcessResult* const result = &answer;
  const bool ended = result->end == tokenizer::ProcessResult::End::kExited && result->code == 0;
  const std::size_t begin = result->output.find("<svg");
  if (ended && begin != std::string::npos) return result->output;
  return fail({.code = ErrorCode::kRuntime,
               .message = "gnuplot drew nothing: " + shorten(result->errors, 300)});
}

}  // namespace

Result<void> check_gnuplot() {
  KERNELPATH_TRY(answer, gnuplot("--version", ""));
  static_cast<void>(answer);
  return {};
}

std::string share_script(const BenchDocument& document) {
  const std::vector<std::string> peers = peer_names(document);
  std::string data;
  std::int64_t bars = 0;
  for (const Row& row : document.rows) {
    if (!has_share(row)) continue;
    data += fmt::format("{} {:.6g}", quoted(label_of(row)), row.of_limit());
    for (const std::string& name : peers) data += " " + peer_share(row, name);
    data += "\n";
    ++bars;
  }
  // A plot needs a point.
  if (bars == 0) data = "\"no shape has a limit\" 0\n";
  std::string plot = "plot $rows using 2:xticlabels(1) title \"kernelpath\"";
  for (std::size_t i = 0; bars > 0 && i < peers.size(); ++i) {
    plot += fmt::format(", \\\n  '' using {} title {}", i + 3, quoted(peers[i]));
  }
  const std::int64_t width = std::max<std::int64_t>(640, 160 + 90 * bars);
  return fmt::format(
      "set terminal svg size {},520 enhanced font \"sans-serif,11\" background \"white\"\n"
      "$rows << END\n{}END\n"
      "set style data histograms\nset style histogram clustered gap 1\nset style fill solid 0.8\n"
      "set yrange [0:*]\nset ylabel \"share of the limit\"\nset grid ytics\n"
      "set xtics rotate by -35\nset key top left horizontal\nset bmargin 9\n{}\n",
      width, data, plot);
}

std::string roofline_script(const BenchDocument& document) {
  double memory = 0;
  double compute = 0;
  std::string data;
  for (const Row& row : document.rows) {
    if (row.error || row.work.bytes <= 0 || row.measured.summary.median <= 0) continue;
    if (row.computes()) {
      const double rate = row.limit_rate > 0 ? row.limit_rate : row.rate();
      compute = std::max(compute, rate);
    } else {
      memory = std::max({memory, row.limit_rate, row.rate()});
    }
    if (row.work.flops <= 0) continue;
    data += fmt::format("{:.6g} {:.6g} {}\n", row.work.flops / row.work.bytes,
                        row.work.flops / row.measured.summary.median, quoted(label_of(row)));
  }
  if (data.empty()) data = "1 1 \"no shape computes\"\n";
  std::string roof = memory > 0 ? fmt::format("{:.6g} * x", memory) : "1/0";
  if (compute > 0 && memory > 0) {
    roof = fmt::format("({0} < {1:.6g} ? {0} : {1:.6g})", roof, compute);
  }
  return fmt::format(
      "set terminal svg size 860,560 enhanced font \"sans-serif,11\" background \"white\"\n"
      "$rows << END\n{}END\n"
      "set logscale xy\nset grid\nset xlabel \"operations a byte\"\n"
      "set ylabel \"operations a second\"\nset format y \"%.0s %c\"\nset offsets graph 0.1, "
      "graph 0.5, graph 0.1, graph 0.1\n"
      "set key bottom right\n"
      "plot $rows using 1:2:3 with labels point pointtype 7 offset char 1,0.5 left "
      "title \"measured\", \\\n  {} with lines linewidth 2 title \"limits of this run\"\n",
      data, roof);
}

Result<std::string> bench_svg(const BenchDocument& document) {
  return draw(share_script(document));
}

Result<std::string> roofline_svg(const BenchDocument& document) {
  return draw(roofline_script(document));
}

}  // namespace kernelpath::cli
