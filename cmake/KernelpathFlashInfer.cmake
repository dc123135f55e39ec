# FlashInfer's headers, a peer of llm-bench on CUDA devices: those of the Python package
# flashinfer-python, which needs not be importable. Sets KERNELPATH_FLASHINFER_FOUND,
# KERNELPATH_FLASHINFER_DATA (its folder data/) and KERNELPATH_FLASHINFER_VERSION.

set(KERNELPATH_FLASHINFER_FOUND OFF)
set(KERNELPATH_FLASHINFER_VERSION "not found")
if(NOT KERNELPATH_FLASHINFER MATCHES "^(AUTO|ON|OFF)$")
  message(
    FATAL_ERROR "KERNELPATH_FLASHINFER is '${KERNELPATH_FLASHINFER}'; AUTO, ON and OFF are allowed")
elseif(KERNELPATH_FLASHINFER STREQUAL "OFF" OR NOT KERNELPATH_CUDA_FOUND)
  set(KERNELPATH_FLASHINFER_VERSION "off")
else()
  set(package "${KERNELPATH_FLASHINFER_ROOT}")
  if(NOT package)
    find_package(
      Python3
      COMPONENTS Interpreter
      QUIET)
    if(Python3_Interpreter_FOUND)
      # find_spec looks and imports nothing.
      execute_process(
        COMMAND
          "${Python3_EXECUTABLE}" -c
          "import importlib.util as u; s = u.find_spec('flashinfer'); print(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE package
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
  if(package AND EXISTS "${package}/data/include/flashinfer/attention/decode.cuh")
    set(KERNELPATH_FLASHINFER_FOUND ON)
    set(KERNELPATH_FLASHINFER_DATA "${package}/data")
    set(KERNELPATH_FLASHINFER_VERSION "found")
    if(EXISTS "${package}/_build_meta.py")
      file(STRINGS "${package}/_build_meta.py" version_line REGEX "^__version__")
      string(REGEX REPLACE ".*\"(.*)\".*" "\\1" KERNELPATH_FLASHINFER_VERSION "${version_line}")
    endif()
  elseif(KERNELPATH_FLASHINFER STREQUAL "ON")
    message(
      FATAL_ERROR
        "KERNELPATH_FLASHINFER is ON, but flashinfer-python was not found. Install it (pip install "
        "--no-deps flashinfer-python) or set KERNELPATH_FLASHINFER_ROOT to its folder 'flashinfer'."
    )
  endif()
endif()
