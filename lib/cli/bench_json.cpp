#include "base/text.h"
#include "cli/bench_document.h"
#include "json/writer.h"

#include <fmt/format.h>

// json, jsonl and csv of llm-bench.

namespace kernelpath::cli {
namespace {

using bench::CaseKind;
using bench::Row;
using bench::Shape;

bool is_attention(CaseKind kind) {
  return kind == CaseKind::kGqaDecode || kind == CaseKind::kPrefill;
}

void write_attention(json::Writer& w, const Shape& shape) {
  const attention::Geometry& g = shape.geometry;
  if (is_attention(shape.kind)) w.member("num_heads", g.num_heads);
  w.member("num_kv_heads", g.num_kv_heads).member("head_dim", g.head_dim);
  w.member("v_head_dim", g.v_head_dim).member("page_size", shape.page_size);
  w.member("layout", shape.layout == attention::KvLayout::kHnd ? "HND" : "NHD");
  w.member("dtype", bench::short_type_name(shape.dtype));
  w.member("kv_cache_dtype", bench::short_type_name(shape.kv_type));
  w.member("batch_size", shape.batch);
  if (!is_attention(shape.kind)) return;
  w.member("query_tokens", shape.query_tokens);
  if (g.window > 0) w.member("window", g.window);
  if (g.chunk > 0) w.member("chunk", g.chunk);
  if (g.softcap > 0) w.member("softcap", double{g.softcap});
  if (shape.sinks) w.member("sinks", true);
  if (!shape.is_ragged()) {
    w.member("context", shape.contexts.front());
    return;
  }
  w.key("contexts").begin_array();
  for (const std::int64_t context : shape.contexts) w.value(context);
  w.end_array();
}

void write_shape(json::Writer& w, const Shape& shape) {
  w.key("shape").begin_object();
  switch (shape.kind) {
    case CaseKind::kGqaDecode:
    case CaseKind::kPrefill:
    case CaseKind::kKvAppend:
      write_attention(w, shape);
      break;
    case CaseKind::kGemv:
    case CaseKind::kMatrixRate:
      w.member("weight_dtype", shape.weight->name).member("rows", shape.rows);
      w.member("cols", shape.cols).member("batch_size", shape.batch);
      w.member("dtype", bench::short_type_name(shape.dtype));
      break;
    case CaseKind::kReadCeiling:
    case CaseKind::kCopy:
      w.member("size_bytes", shape.bytes);
      if (shape.kind == CaseKind::kCopy) break;
      w.member("order", shape.order == bench::ReadOrder::kGather ? "gather" : "linear");
      if (shape.run_bytes > 0) w.member("run_bytes", shape.run_bytes);
      break;
  }
  w.end_object();
}

void write_timing(json::Writer& w, const bench::Measured& measured) {
  const bench::Summary& summary = measured.summary;
  w.key("timing").begin_object().member("median_s", summary.median);
  w.member("mean_s", summary.mean).member("min_s", summary.least).member("max_s", summary.most);
  w.member("noise", summary.noise).member("launches_per_sample", measured.launches);
  w.member("stop", bench::stop_reason_name(measured.stop));
  w.key("samples_s").begin_array();
  for (const double sample : measured.samples) w.value(sample);
  w.end_array().end_object();
}

void write_peers(json::Writer& w, const Row& row) {
  w.key("peers").begin_array();
  for (const bench::PeerRow& peer : row.peers) {
    w.begin_object().member("name", peer.name).member("paged", peer.paged);
    if (peer.median_s) {
      w.member("median_s", *peer.median_s);
      if (peer.measured) w.member("noise", peer.measured->summary.noise);
      const double own = row.measured.summary.median;
      if (own > 0) w.member("ratio", *peer.median_s / own);
    }
    if (!peer.reason.empty()) w.member("reason", peer.reason);
    w.end_object();
  }
  w.end_array();
}

void write_limit(json::Writer& w, const Row& row) {
  w.key("limit").begin_object().member("kind", bench::limit_kind_name(row.limit));
  if (row.limit_rate > 0) {
    w.member(row.computes() ? "flops_per_s" : "bytes_per_s", row.limit_rate);
  }
  if (row.own_limit_rate > 0) {
    w.member("own_size_bytes_per_s", row.own_limit_rate);
    w.member("own_size_noise", row.own_limit_noise);
  }
  w.end_object();
  if (row.limit_rate <= 0) return;
  w.member("of_limit", row.of_limit()).member("t0_s", row.t0_s());
}

void write_results(json::Writer& w, const Row& row) {
  w.member("kernel", row.kernel).member("cache", bench::cache_state_name(row.cache));
  w.member("rotated", row.rotated);
  write_timing(w, row.measured);
  w.member(row.computes() ? "flops_per_s" : "bytes_per_s", row.rate());
  write_limit(w, row);
  if (row.check) {
    w.key("check").begin_object().member("ok", row.check->ok());
    w.member("error", row.check->error).member("bound", row.check->bound);
    w.member("against", row.check->against).end_object();
  }
  write_peers(w, row);
  if (row.baseline) {
    w.key("baseline").begin_object().member("median_s", row.baseline->before_s);
    w.member("change", row.baseline->change).member("regressed", row.baseline->regressed);
    w.end_object();
  }
  w.key("problems").begin_array();
  for (const std::string& problem : row.problems) w.value(problem);
  w.end_array();
}

void write_row(json::Writer& w, const Row& row) {
  w.begin_object().member("key", bench::key_of(row.shape));
  w.member("case", bench::case_info(row.shape.kind).name);
  if (!row.shape.name.empty()) w.member("name", row.shape.name);
  write_shape(w, row.shape);
  w.key("work").begin_object().member("bytes", row.work.bytes);
  w.member("flops", row.work.flops).end_object();
  w.member("valid", row.valid());
  if (row.error) {
    const ErrorInfo& info = error_info(row.error->code);
    w.key("error").begin_object().member("id", info.id).member("message", row.error->text());
    w.end_object();
  } else {
    write_results(w, row);
  }
  w.end_object();
}

std::string_view cache_choice_name(bench::CacheChoice choice) {
  switch (choice) {
    case bench::CacheChoice::kBoth:
      return "both";
    case bench::CacheChoice::kCold:
      return "cold";
    case bench::CacheChoice::kWarm:
      return "warm";
  }
  return "";
}

void write_environment(json::Writer& w, const bench::DeviceFacts& device) {
  w.key("environment").begin_object().member("device", device.id).member("label", device.label);
  w.member("memory_bytes", device.memory_bytes).member("cache_bytes", device.cache_bytes);
  if (device.threads > 0) {
    w.member("threads", device.threads).member("kernels", device.kernels);
    w.member("huge_pages", device.huge_pages);
  }
  if (device.sm > 0) {
    w.member("sm", device.sm).member("num_sms", device.num_sms);
    w.member("driver", device.driver).member("clocks", device.clocks);
  }
  w.end_object();
}

void write_header(json::Writer& w, const BenchDocument& document) {
  w.member("schema", kBenchSchema).member("schema_version", kBenchSchemaVersion);
  w.key("tool").begin_object().member("name", document.tool.name);
  w.member("version", document.tool.version).end_object();
  w.member("commit", document.commit);
  const bench::StoppingRule& rule = document.options.measure.rule;
  w.key("options").begin_object().key("cases").begin_array();
  for (const std::string& argument : document.arguments) w.value(argument);
  w.end_array().member("min_samples", rule.min_samples).member("max_noise", rule.max_noise);
  w.member("min_time_s", rule.min_time_s).member("timeout_s", rule.timeout_s);
  w.member("cache", cache_choice_name(document.options.cache));
  w.member("check", document.options.check).key("flags").begin_object();
  for (const auto& [name, values] : document.flags) {
    w.key(name).begin_array();
    for (const std::string& value : values) w.value(value);
    w.end_array();
  }
  w.end_object().end_object();
  write_environment(w, document.device);
}

// A field of a CSV line, quoted where it must be (RFC 4180).
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string number(double value) { return fmt::format("{:.9g}", value); }

std::string problems_of(const Row& row) {
  return row.error ? row.error->text() : join(row.problems, "; ");
}

// Cache state, times and rates; empty where there are none.
std::vector<std::string> csv_results(const Row& row) {
  const bool limited = row.limit_rate > 0;
  const bench::Summary& summary = row.measured.summary;
  return {std::string(bench::cache_state_name(row.cache)),
          number(row.work.bytes),
          number(row.work.flops),
          number(summary.median),
          number(summary.noise),
          fmt::format("{}", row.measured.samples.size()),
          number(row.rate()),
          limited ? number(row.of_limit()) : "",
          limited ? number(row.t0_s()) : ""};
}

std::vector<std::string> csv_fields(const Row& row) {
  std::vector<std::string> out = {field(bench::key_of(row.shape)),
                                  std::string(bench::case_info(row.shape.kind).name),
                                  field(row.kernel)};
  std::vector<std::string> results(9);
  if (row.error) {
    results[1] = number(row.work.bytes);
    results[2] = number(row.work.flops);
  } else {
    results = csv_results(row);
  }
  out.insert(out.end(), results.begin(), results.end());
  const bench::PeerRow* const peer = best_peer(row);
  out.push_back(peer == nullptr ? "" : field(peer->name));
  out.push_back(peer == nullptr ? "" : number(*peer->median_s));
  out.emplace_back(row.valid() ? "true" : "false");
  out.push_back(field(problems_of(row)));
  return out;
}

}  // namespace

std::string bench_json(const BenchDocument& document) {
  json::Writer w;
  w.begin_object();
  write_header(w, document);
  w.key("rows").begin_array();
  for (const Row& row : document.rows) write_row(w, row);
  return w.end_array().end_object().take(2) + "\n";
}

std::string bench_jsonl_header(const BenchDocument& document) {
  json::Writer w;
  w.begin_object();
  write_header(w, document);
  return w.end_object().take(0) + "\n";
}

std::string bench_jsonl_line(const Row& row) {
  json::Writer w;
  write_row(w, row);
  return w.take(0) + "\n";
}

std::string bench_csv(const BenchDocument& document) {
  std::string out =
      "key,case,kernel,cache,bytes,flops,median_s,noise,samples,rate,of_limit,t0_s,best_peer,"
      "peer_median_s,valid,problems\n";
  for (const Row& row : document.rows) out += join(csv_fields(row), ",") + "\n";
  return out;
}

}  // namespace kernelpath::cli
