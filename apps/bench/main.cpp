#include "cli/bench.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  return kernelpath::cli::run_program(kernelpath::cli::bench_program_description(), argc, argv,
                                      kernelpath::cli::run_benchmarks);
}
