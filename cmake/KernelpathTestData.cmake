# Unpacks the recorded answers of tests/data/golden into KERNELPATH_GOLDEN_DIR, and the cases of
# tests/data/cases into the folder beside it, at configure time and again whenever one of them
# changes. The repository holds them packed with xz.

set(KERNELPATH_GOLDEN_DIR "${CMAKE_BINARY_DIR}/tests/data/golden")
find_program(KERNELPATH_XZ xz REQUIRED DOC "Unpacks the recorded answers of the golden tests")

function(kernelpath_unpack folder destination)
  set(root "${PROJECT_SOURCE_DIR}/tests/data/${folder}")
  file(
    GLOB_RECURSE files
    RELATIVE "${root}"
    CONFIGURE_DEPENDS "${root}/*")
  foreach(name IN LISTS files)
    set_property(
      DIRECTORY
      APPEND
      PROPERTY CMAKE_CONFIGURE_DEPENDS "${root}/${name}")
    if(NOT name MATCHES "\\.xz$")
      configure_file("${root}/${name}" "${destination}/${name}" COPYONLY)
      continue()
    endif()
    string(REGEX REPLACE "\\.xz$" "" unpacked "${name}")
    set(unpacked "${destination}/${unpacked}")
    if("${unpacked}" IS_NEWER_THAN "${root}/${name}" AND EXISTS "${unpacked}")
      continue()
    endif()
    cmake_path(GET unpacked PARENT_PATH parent)
    file(MAKE_DIRECTORY "${parent}")
    execute_process(COMMAND "${KERNELPATH_XZ}" --decompress --stdout "${root}/${name}"
                    OUTPUT_FILE "${unpacked}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

kernelpath_unpack(golden "${KERNELPATH_GOLDEN_DIR}")
kernelpath_unpack(cases "${CMAKE_BINARY_DIR}/tests/data/cases")
