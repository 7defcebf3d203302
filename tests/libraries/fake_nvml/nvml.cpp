// In place of NVIDIA's management library, for tests of energy: a GPU whose counter moves on by 2.5 J at each look, and
// one without a counter.
namespace {

constexpr int kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNotFound = 6;
struct GpuRecord {
  bool has_counter;
  unsigned long long millijoules;
};
GpuRecord counting{true, 1000}, silent{false, 0};
int sessions = 0;

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++sessions;
  return kSuccess;
}

int nvmlShutdown() {
  --sessions;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, GpuRecord** gpu) {
  if (sessions == 0) return kUninitialized;
  if (same(address, "00000000:3B:00.0")) {
    *gpu = &counting;
  } else if (same(address, "00000000:5E:00.0")) {
    *gpu = &silent;
  } else {
    return kNotFound;
  }
  return kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(GpuRecord* gpu, unsigned long long* millijoules) {
  if (sessions == 0) return kUninitialized;
  if (!gpu->has_counter) return kNotSupported;
  gpu->millijoules += 2500;
  *millijoules = gpu->millijoules;
  return kSuccess;
}
}
