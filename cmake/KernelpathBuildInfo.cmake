# kernelpath::build_info: what this build is made of (lib/base/build_info.h).

if(KERNELPATH_SANITIZE)
  set(build_info_sanitizers "${KERNELPATH_SANITIZE}")
else()
  set(build_info_sanitizers "none")
endif()
set(build_info_folder "${CMAKE_BINARY_DIR}/generated/build_info")
configure_file(cmake/build_info.cpp.in "${build_info_folder}/build_info.cpp" @ONLY)
add_custom_target(
  kernelpath_commit
  COMMAND
    "${CMAKE_COMMAND}" -D "SOURCE=${PROJECT_SOURCE_DIR}" -D
    "OUTPUT=${build_info_folder}/kernelpath_commit.inc" -P
    "${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake"
  BYPRODUCTS "${build_info_folder}/kernelpath_commit.inc"
  COMMENT "Looking up the commit"
  VERBATIM)
kernelpath_add_library(build_info SOURCES "${build_info_folder}/build_info.cpp")
add_dependencies(kernelpath_build_info kernelpath_commit)

message(STATUS "kernelpath ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, sanitizers: "
               "${build_info_sanitizers}")
message(STATUS "  CUDA toolkit: ${KERNELPATH_CUDA_STATUS} (KERNELPATH_CUDA=${KERNELPATH_CUDA})")
message(STATUS "  FlashInfer (peer of llm-bench): ${KERNELPATH_FLASHINFER_VERSION}")
message(STATUS "  cuDNN's frontend (peer of llm-bench): ${KERNELPATH_CUDNN_FRONTEND_VERSION}")
message(STATUS "  Nettle (SHA-256 of inputs): ${NETTLE_VERSION}")
message(STATUS "  MPI (several ranks): ${KERNELPATH_MPI_STATUS}")
message(STATUS "  sentencepiece (tokenizer.model): ${SENTENCEPIECE_VERSION}")
