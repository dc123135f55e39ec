# Third-party packages. The required ones are listed in README.md and scripts/lib/setup.sh; a missing
# optional one turns off a feature, which `--version --verbose` reports.

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
if(NETTLE_INCLUDE_DIR AND NETTLE_LIBRARY)
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

# CUDA. Sets KERNELPATH_CUDA_FOUND and KERNELPATH_CUDA_STATUS (a version, "not found" or "off").
set(KERNELPATH_CUDA_FOUND OFF)
if(NOT KERNELPATH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KERNELPATH_CUDA is '${KERNELPATH_CUDA}'; AUTO, ON and OFF are allowed")
elseif(KERNELPATH_CUDA STREQUAL "OFF")
  set(KERNELPATH_CUDA_STATUS "off")
else()
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
