# kernelpath_add_library(NAME SOURCES a.cpp … [DEPENDS base json …] [LIBRARIES third::party …])
#
# One library per folder of lib/, called kernelpath::NAME. DEPENDS names other folders; a folder that
# is not named there is not linked, so an include against the documented direction fails to build.
function(kernelpath_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(kernelpath_${name} STATIC ${ARG_SOURCES})
  add_library(kernelpath::${name} ALIAS kernelpath_${name})
  target_include_directories(kernelpath_${name} PUBLIC "${PROJECT_SOURCE_DIR}/lib")
  list(TRANSFORM ARG_DEPENDS PREPEND kernelpath::)
  target_link_libraries(
    kernelpath_${name}
    PUBLIC ${ARG_DEPENDS}
    PRIVATE kernelpath_flags ${ARG_LIBRARIES})
endfunction()

# kernelpath_add_test(NAME SOURCES a_test.cpp … [DEPENDS base …] [LIBRARIES …] [LABELS unit])
#
# One test program per folder; every TEST becomes a ctest entry. KERNELPATH_TEST_DATA is the path of
# tests/data, KERNELPATH_GOLDEN_DIR that of the recorded answers (unpacked: golden/trtllm/x.jsonl),
# KERNELPATH_BIN_DIR that of the built programs.
function(kernelpath_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  list(TRANSFORM ARG_DEPENDS PREPEND kernelpath::)
  target_compile_definitions(
    ${name}
    PRIVATE KERNELPATH_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
            KERNELPATH_GOLDEN_DIR="${KERNELPATH_GOLDEN_DIR}"
            KERNELPATH_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
            KERNELPATH_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBRARIES} kernelpath_flags
                                        GTest::gmock GTest::gtest_main)
  # The values of parameters may be printed as addresses, which differ from run to run.
  gtest_discover_tests(
    ${name} NO_PRETTY_VALUES
    TEST_PREFIX "${name}."
    PROPERTIES LABELS "${ARG_LABELS}" DISCOVERY_TIMEOUT 60)
  # What scripts/test builds and runs under the sanitizers.
  if(ARG_LABELS MATCHES "unit|golden")
    add_dependencies(unit_and_golden_tests ${name})
  endif()
endfunction()
