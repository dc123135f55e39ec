#include "cli/inspect.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  return kernelpath::cli::run_program(kernelpath::cli::inspect_program(), argc, argv,
                                      kernelpath::cli::run_inspect);
}
