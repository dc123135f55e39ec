# Third-party packages. The required ones are listed in README.md and scripts/lib/setup.sh; a missing
# optional one turns off a feature, which `--version --verbose` reports.

# kernelpath_header_version(OUT HEADER NAME…): "10.42" from the #defines of these names in a header.
function(kernelpath_header_version out header)
  set(version)
  foreach(name IN LISTS ARGN)
    file(STRINGS "${header}" line REGEX "#define ${name} ")
    string(REGEX REPLACE ".*${name} +([0-9]+).*" "\\1" number "${line}")
    list(APPEND version "${number}")
  endforeach()
  list(JOIN version "." version)
  set(${out}
      "${version}"
      PARENT_SCOPE)
endfunction()

# The optional libraries that KERNELPATH_WITHOUT may name. What is left out is not looked for.
set(optional_libraries mpi nettle sentencepiece)
foreach(library IN LISTS KERNELPATH_WITHOUT)
  if(NOT library IN_LIST optional_libraries)
    message(
      FATAL_ERROR "KERNELPATH_WITHOUT has '${library}'; mpi, nettle and sentencepiece are allowed")
  endif()
endforeach()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)

# SHA-256 of the inputs. Link kernelpath_nettle; KERNELPATH_HAVE_NETTLE is defined where it is there.
# Not libcrypto: loading that costs a tenth of the time a whole process may take.
find_path(NETTLE_INCLUDE_DIR nettle/sha2.h)
find_library(NETTLE_LIBRARY nettle)
mark_as_advanced(NETTLE_INCLUDE_DIR NETTLE_LIBRARY)
add_library(kernelpath_nettle INTERFACE)
set(NETTLE_VERSION "not found")
if("nettle" IN_LIST KERNELPATH_WITHOUT)
  set(NETTLE_VERSION "left out")
elseif(NETTLE_INCLUDE_DIR AND NETTLE_LIBRARY)
  target_link_libraries(kernelpath_nettle INTERFACE "${NETTLE_LIBRARY}")
  target_include_directories(kernelpath_nettle SYSTEM INTERFACE "${NETTLE_INCLUDE_DIR}")
  target_compile_definitions(kernelpath_nettle INTERFACE KERNELPATH_HAVE_NETTLE)
  set(NETTLE_VERSION "found")
  if(EXISTS "${NETTLE_INCLUDE_DIR}/nettle/version.h")
    file(STRINGS "${NETTLE_INCLUDE_DIR}/nettle/version.h" nettle_version_lines
         REGEX "define NETTLE_VERSION_(MAJOR|MINOR)")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" NETTLE_VERSION
                         "${nettle_version_lines}")
  endif()
endif()

# Patterns and Unicode of tokenizers.
find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY UTF8PROC_INCLUDE_DIR UTF8PROC_LIBRARY)
add_library(kernelpath_pcre2 INTERFACE)
target_link_libraries(kernelpath_pcre2 INTERFACE "${PCRE2_LIBRARY}")
target_include_directories(kernelpath_pcre2 SYSTEM INTERFACE "${PCRE2_INCLUDE_DIR}")
add_library(kernelpath_utf8proc INTERFACE)
target_link_libraries(kernelpath_utf8proc INTERFACE "${UTF8PROC_LIBRARY}")
target_include_directories(kernelpath_utf8proc SYSTEM INTERFACE "${UTF8PROC_INCLUDE_DIR}")
kernelpath_header_version(PCRE2_VERSION "${PCRE2_INCLUDE_DIR}/pcre2.h" PCRE2_MAJOR PCRE2_MINOR)
kernelpath_header_version(UTF8PROC_VERSION "${UTF8PROC_INCLUDE_DIR}/utf8proc.h"
                          UTF8PROC_VERSION_MAJOR UTF8PROC_VERSION_MINOR UTF8PROC_VERSION_PATCH)

# tokenizer.model files. Link kernelpath_sentencepiece; KERNELPATH_SENTENCEPIECE_FOUND says whether
# there is anything to link.
find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h)
find_library(SENTENCEPIECE_LIBRARY sentencepiece)
mark_as_advanced(SENTENCEPIECE_INCLUDE_DIR SENTENCEPIECE_LIBRARY)
add_library(kernelpath_sentencepiece INTERFACE)
set(KERNELPATH_SENTENCEPIECE_FOUND OFF)
set(SENTENCEPIECE_VERSION "not found")
if("sentencepiece" IN_LIST KERNELPATH_WITHOUT)
  set(SENTENCEPIECE_VERSION "left out")
elseif(SENTENCEPIECE_INCLUDE_DIR AND SENTENCEPIECE_LIBRARY)
  set(KERNELPATH_SENTENCEPIECE_FOUND ON)
  target_link_libraries(kernelpath_sentencepiece INTERFACE "${SENTENCEPIECE_LIBRARY}")
  target_include_directories(kernelpath_sentencepiece SYSTEM
                             INTERFACE "${SENTENCEPIECE_INCLUDE_DIR}")
  set(SENTENCEPIECE_VERSION "found")
endif()

# Several ranks. Link kernelpath_mpi; KERNELPATH_MPI_FOUND says whether there is anything to link. Only
# MPI's C interface is used.
set(MPI_CXX_SKIP_MPICXX ON)
add_library(kernelpath_mpi INTERFACE)
set(KERNELPATH_MPI_FOUND OFF)
set(KERNELPATH_MPI_STATUS "not found")
set(KERNELPATH_MPIEXEC "") # starts ranks in tests
if("mpi" IN_LIST KERNELPATH_WITHOUT)
  set(KERNELPATH_MPI_STATUS "left out")
else()
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND AND NOT "mpi" IN_LIST KERNELPATH_WITHOUT)
  set(KERNELPATH_MPI_FOUND ON)
  target_link_libraries(kernelpath_mpi INTERFACE MPI::MPI_CXX)
  set(KERNELPATH_MPI_STATUS "${MPI_CXX_VERSION}")
  if(MPIEXEC_EXECUTABLE)
    set(KERNELPATH_MPIEXEC "${MPIEXEC_EXECUTABLE}")
  endif()
endif()

# CUDA. Sets KERNELPATH_CUDA_FOUND and KERNELPATH_CUDA_STATUS (a version, "not found" or "off").
set(KERNELPATH_CUDA_FOUND OFF)
if(NOT KERNELPATH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KERNELPATH_CUDA is '${KERNELPATH_CUDA}'; AUTO, ON and OFF are allowed")
elseif(KERNELPATH_CUDA STREQUAL "OFF")
  set(KERNELPATH_CUDA_STATUS "off")
elseif(KERNELPATH_CUDA STREQUAL "AUTO" AND KERNELPATH_SANITIZE)
  set(KERNELPATH_CUDA_STATUS "off under sanitizers")
else()
  # Machine code for these alone: "90a", or "80;90a". Checked by the compiler at the first use.
  list(TRANSFORM KERNELPATH_CUDA_ARCHS APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  find_program(KERNELPATH_CCACHE ccache DOC "Keeps compiled CUDA units, where it is there")
  if(KERNELPATH_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${KERNELPATH_CCACHE}")
  endif()
  find_package(CUDAToolkit QUIET)
  # A toolkit without a compiler that works with this host compiler is of no use.
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    if(NOT DEFINED ENV{CUDACXX})
      set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
    set(KERNELPATH_CUDA_FOUND ON)
    set(KERNELPATH_CUDA_STATUS "${CUDAToolkit_VERSION}")
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc has C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
  else()
    set(KERNELPATH_CUDA_STATUS "not found")
  endif()
  if(KERNELPATH_CUDA STREQUAL "ON" AND NOT KERNELPATH_CUDA_FOUND)
    message(
      FATAL_ERROR
        "KERNELPATH_CUDA is ON, but no working CUDA toolkit was found. Put nvcc on PATH or set "
        "CUDAToolkit_ROOT; KERNELPATH_CUDA=AUTO builds without CUDA where there is none.")
  endif()
endif()
