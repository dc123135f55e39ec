# cmake -D SOURCE=… -D OUTPUT=… -P write_commit.cmake
#
# Runs in every build; writes OUTPUT only when the commit changed, so that nothing is compiled
# otherwise. It takes no lock in the repository.
cmake_minimum_required(VERSION 3.25)
set(ENV{GIT_OPTIONAL_LOCKS} 0)
execute_process(
  COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define KERNELPATH_COMMIT \"@commit@\"\n" @ONLY)
