#include "bench/flashinfer/decode.cuh"

KERNELPATH_FLASHINFER_DECODE(__nv_fp8_e4m3, 128, true)
