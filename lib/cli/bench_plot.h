#pragma once

#include "base/result.h"
#include "cli/bench_document.h"

#include <string>

namespace kernelpath::cli {

// Pictures as SVG text, drawn by gnuplot. Errors: kUnavailable (no gnuplot; says what to install),
// kRuntime (it failed, with what it said).

// Whether gnuplot answers: before a long run rather than after it.
Result<void> check_gnuplot();

// A bar a shape: the share of its limit, and its peers' beside it.
Result<std::string> bench_svg(const BenchDocument& document);

// Rates over arithmetic intensity, below the limits of the run, on logarithmic axes.
Result<std::string> roofline_svg(const BenchDocument& document);

// What gnuplot is given; pure, for tests.
std::string share_script(const BenchDocument& document);
std::string roofline_script(const BenchDocument& document);

}  // namespace kernelpath::cli
