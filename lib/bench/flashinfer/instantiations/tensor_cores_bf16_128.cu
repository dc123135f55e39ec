#include "bench/flashinfer/decode.cuh"

KERNELPATH_FLASHINFER_DECODE(__nv_bfloat16, 128, true)
