#pragma once

#include <span>

namespace kernelpath::bench {

// What repeated measurements of one time say.
struct Summary {
  double median = 0;
  double mean = 0;
  double least = 0;
  double most = 0;
  // Standard deviation of the samples over their mean; 0 for fewer than two.
  double noise = 0;
};

Summary summarise(std::span<const double> samples);

}  // namespace kernelpath::bench
