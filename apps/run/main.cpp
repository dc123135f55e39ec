#include "cli/program.h"
#include "cli/run.h"

int main(int argc, char** argv) {
  return kernelpath::cli::run_program(kernelpath::cli::run_program_description(), argc, argv,
                                      kernelpath::cli::run_generation);
}
