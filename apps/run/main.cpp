#include "cli/program.h"
#include "cli/run.h"
#include "cli/run_ranks.h"

int main(int argc, char** argv) {
  kernelpath::cli::silence_other_ranks();
  return kernelpath::cli::run_program(kernelpath::cli::run_program_description(), argc, argv,
                                      kernelpath::cli::run_generation);
}
