#include "cli/program.h"
#include "cli/validate.h"

int main(int argc, char** argv) {
  return kernelpath::cli::run_program(kernelpath::cli::validate_program(), argc, argv,
                                      kernelpath::cli::run_validate);
}
