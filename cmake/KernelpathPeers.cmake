# Libraries whose decode kernels are peers of llm-bench on CUDA devices, compiled in where they are
# found.

# kernelpath_wants_peer(OUT OPTION): whether a peer's option asks to look for it.
function(kernelpath_wants_peer out option)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option} is '${${option}}'; AUTO, ON and OFF are allowed")
  endif()
  set(wanted ON)
  if(${option} STREQUAL "OFF" OR NOT KERNELPATH_CUDA_FOUND)
    set(wanted OFF)
  endif()
  set(${out}
      "${wanted}"
      PARENT_SCOPE)
endfunction()

# kernelpath_python_package(OUT NAME): the folder of a Python package, which needs not be importable;
# empty where Python has none.
function(kernelpath_python_package out name)
  set(folder)
  find_package(
    Python3
    COMPONENTS Interpreter
    QUIET)
  if(Python3_Interpreter_FOUND)
    # find_spec looks and imports nothing of the package.
    execute_process(
      COMMAND
        "${Python3_EXECUTABLE}" -c
        "import importlib.util as u; s = u.find_spec('${name}'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE folder
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${out}
      "${folder}"
      PARENT_SCOPE)
endfunction()

# FlashInfer's headers: those of the Python package flashinfer-python. Sets
# KERNELPATH_FLASHINFER_FOUND, KERNELPATH_FLASHINFER_DATA (its folder data/) and
# KERNELPATH_FLASHINFER_VERSION.
set(KERNELPATH_FLASHINFER_FOUND OFF)
set(KERNELPATH_FLASHINFER_VERSION "off")
kernelpath_wants_peer(wanted KERNELPATH_FLASHINFER)
if(wanted)
  set(KERNELPATH_FLASHINFER_VERSION "not found")
  set(package "${KERNELPATH_FLASHINFER_ROOT}")
  if(NOT package)
    kernelpath_python_package(package flashinfer)
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

# The headers of cuDNN and of its frontend: of the system, the CUDA toolkit, or the Python packages
# nvidia-cudnn-cu13 and nvidia-cudnn-frontend. Sets KERNELPATH_CUDNN_FOUND, KERNELPATH_CUDNN_INCLUDES
# and KERNELPATH_CUDNN_FRONTEND_VERSION.
set(KERNELPATH_CUDNN_FOUND OFF)
set(KERNELPATH_CUDNN_FRONTEND_VERSION "off")
kernelpath_wants_peer(wanted KERNELPATH_CUDNN)
if(wanted)
  set(KERNELPATH_CUDNN_FRONTEND_VERSION "not found")
  kernelpath_python_package(frontend_package cudnn)
  kernelpath_python_package(cudnn_package nvidia.cudnn)
  unset(frontend_include)
  unset(cudnn_include)
  find_path(
    frontend_include cudnn_frontend.h
    HINTS ${KERNELPATH_CUDNN_ROOT} "${frontend_package}/.."
    PATH_SUFFIXES include NO_CACHE)
  find_path(
    cudnn_include cudnn.h
    HINTS ${KERNELPATH_CUDNN_ROOT} "${cudnn_package}" ${CUDAToolkit_INCLUDE_DIRS}
    PATH_SUFFIXES include NO_CACHE)
  if(frontend_include AND cudnn_include)
    set(KERNELPATH_CUDNN_FOUND ON)
    set(KERNELPATH_CUDNN_INCLUDES "${frontend_include}" "${cudnn_include}")
    kernelpath_header_version(
      KERNELPATH_CUDNN_FRONTEND_VERSION "${frontend_include}/cudnn_frontend_version.h"
      CUDNN_FRONTEND_MAJOR_VERSION CUDNN_FRONTEND_MINOR_VERSION CUDNN_FRONTEND_PATCH_VERSION)
  elseif(KERNELPATH_CUDNN STREQUAL "ON")
    message(
      FATAL_ERROR
        "KERNELPATH_CUDNN is ON, but cudnn_frontend.h or cudnn.h was not found. Install them (pip "
        "install --no-deps nvidia-cudnn-frontend nvidia-cudnn-cu13) or set KERNELPATH_CUDNN_ROOT to "
        "the folders, separated by ';', whose include/ has them.")
  endif()
endif()
