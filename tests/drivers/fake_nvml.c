// NVML as a driver's library offers it, for a machine with one made-up GPU. KIND chooses what of it
// is there:
//   1  everything
//   2  an old driver: no second form of the memory call, no clocks, no core count
//   3  a driver that does not start
//   4  no device
// Compiled once for each.

#define SUCCESS 0
#define DRIVER_NOT_LOADED 9
#define MEMORY_CLOCK 2

typedef struct nvmlDevice_st* Device;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

static const unsigned long long kTotal = 85520809984ULL;
static const unsigned long long kReserved = 543752192ULL;

static int copy(const char* text, char* out, unsigned size) {
  unsigned i = 0;
  for (; text[i] != 0 && i + 1 < size; ++i) out[i] = text[i];
  out[i] = 0;
  return SUCCESS;
}

int nvmlInit_v2(void) { return KIND == 3 ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char* nvmlErrorString(int code) {
  return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return copy("570.10", out, size); }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = KIND == 4 ? 0 : 1;
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = (Device)(unsigned long long)(index + 1);
  return SUCCESS;
}
int nvmlDeviceGetName(Device device, char* out, unsigned size) {
  (void)device;
  return copy("Made-up GPU 80GB", out, size);
}
int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  (void)device;
  *major = 9;
  *minor = 0;
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(Device device, struct Memory* memory) {
  (void)device;
  memory->total = kTotal - kReserved;
  return SUCCESS;
}

#if KIND != 2
int nvmlDeviceGetMemoryInfo_v2(Device device, struct MemoryV2* memory) {
  (void)device;
  if (memory->version != (sizeof(struct MemoryV2) | (2U << 24))) return 25;
  memory->total = kTotal;
  memory->reserved = kReserved;
  return SUCCESS;
}
int nvmlDeviceGetMemoryBusWidth(Device device, unsigned* bits) {
  (void)device;
  *bits = 5120;
  return SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(Device device, int clock, unsigned* mhz) {
  (void)device;
  *mhz = clock == MEMORY_CLOCK ? 2619 : 1980;
  return SUCCESS;
}
int nvmlDeviceGetNumGpuCores(Device device, unsigned* cores) {
  (void)device;
  *cores = 132 * 128;
  return SUCCESS;
}
#endif
