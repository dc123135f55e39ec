// The CUDA driver's library for a machine with one made-up GPU, or with none (KIND 2).

#include <stddef.h>

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* count) {
  *count = KIND == 2 ? 0 : 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* out, int size, int device) {
  const char* name = "Made-up GPU 24GB";
  int i = 0;
  (void)device;
  for (; name[i] != 0 && i + 1 < size; ++i) out[i] = name[i];
  out[i] = 0;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 16:
      *value = 128;
      return 0;
    case 36:
      *value = 10501000;
      return 0;
    case 37:
      *value = 384;
      return 0;
    case 75:
      *value = 8;
      return 0;
    case 76:
      *value = 9;
      return 0;
    default:
      return 1;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = 25282281472ULL;
  return 0;
}
