# Third-party packages. The required ones are listed in README.md and scripts/lib/setup.sh; a missing
# optional one turns off a feature, which `--version --verbose` reports.

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# SHA-256 of the inputs. Link kernelpath_openssl; KERNELPATH_HAVE_OPENSSL is defined where it is there.
find_package(OpenSSL QUIET COMPONENTS Crypto)
add_library(kernelpath_openssl INTERFACE)
if(OPENSSL_FOUND)
  target_link_libraries(kernelpath_openssl INTERFACE OpenSSL::Crypto)
  target_compile_definitions(kernelpath_openssl INTERFACE KERNELPATH_HAVE_OPENSSL)
else()
  set(OPENSSL_VERSION "not found")
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
