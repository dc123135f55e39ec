#include "run_checkpoint.h"

#include <fstream>
#include <stdexcept>

namespace kernelpath::testing {

void replace_in_file(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error(path + " does not hold " + from);
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace kernelpath::testing
