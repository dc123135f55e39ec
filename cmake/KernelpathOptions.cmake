# Language level, warnings and sanitizers of kernelpath's own targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE
      Release
      CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# Programs land in build/<preset>/bin, whatever folder declares them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

set(KERNELPATH_CUDA
    "AUTO"
    CACHE STRING "Build the CUDA code: AUTO (where the toolkit is found), ON, OFF")
set_property(CACHE KERNELPATH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(KERNELPATH_CUDA_ARCHS
    "90a"
    CACHE STRING "GPU architectures to compile for, e.g. 90a or 80;90a")
set(KERNELPATH_FLASHINFER
    "AUTO"
    CACHE STRING
          "Compile FlashInfer's kernels into llm-bench: AUTO (where they are found), ON, OFF")
set_property(CACHE KERNELPATH_FLASHINFER PROPERTY STRINGS AUTO ON OFF)
set(KERNELPATH_FLASHINFER_ROOT
    ""
    CACHE PATH "Folder of the Python package flashinfer; else where Python finds it")
set(KERNELPATH_CUDNN
    "AUTO"
    CACHE STRING "Let llm-bench call cuDNN: AUTO (where its frontend's headers are found), ON, OFF")
set_property(CACHE KERNELPATH_CUDNN PROPERTY STRINGS AUTO ON OFF)
set(KERNELPATH_CUDNN_ROOT
    ""
    CACHE STRING
          "Folders whose include/ has cudnn_frontend.h and cudnn.h; else where Python finds them")
set(KERNELPATH_WITHOUT
    ""
    CACHE STRING "Optional libraries to leave out though they are there: mpi;nettle;sentencepiece")
set(KERNELPATH_SANITIZE
    ""
    CACHE STRING "Sanitizers for every own target, e.g. address,undefined or thread")
option(KERNELPATH_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(KERNELPATH_WERROR "Treat warnings in own code as errors" ${PROJECT_IS_TOP_LEVEL})

# Flags that own targets link through; third-party headers come in as SYSTEM and stay silent.
add_library(kernelpath_flags INTERFACE)
# Embedded data is assembled, and clang's assembler refuses flags that it does not use.
set(own_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# g++ 12 warns about its own string concatenation once it is optimised (GCC bugs 105329, 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND own_flags -Wno-restrict)
endif()
# Not under sanitizers: their branches make g++ see uses of empty optionals, and its manual advises
# against the combination. The other presets judge the same code.
if(KERNELPATH_WERROR AND NOT KERNELPATH_SANITIZE)
  list(APPEND own_flags -Werror)
endif()
if(KERNELPATH_SANITIZE)
  list(APPEND own_flags -fsanitize=${KERNELPATH_SANITIZE} -fno-omit-frame-pointer)
  if(KERNELPATH_SANITIZE MATCHES "undefined")
    list(APPEND own_flags -fno-sanitize-recover=undefined)
  endif()
  target_link_options(kernelpath_flags INTERFACE -fsanitize=${KERNELPATH_SANITIZE})
endif()
if(KERNELPATH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "KERNELPATH_FUZZ needs clang (libFuzzer); use the preset 'fuzz'")
  endif()
  list(APPEND own_flags -fsanitize=fuzzer-no-link)
endif()
# A program starts with the libraries that it calls: llm-inspect has no use for those of llm-run.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(kernelpath_flags INTERFACE LINKER:--as-needed)
endif()
target_compile_options(kernelpath_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${own_flags}>")
