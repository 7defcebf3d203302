// Four functions of NVML, by their names and types in NVIDIA's nvml.h.
#include "concord/energy/nvml.hpp"

#include <fmt/format.h>

#include <optional>

#include "concord/core/access.hpp"
#include "concord/core/check.hpp"

namespace concord {
namespace {

using Gpu = struct GpuRecord*;
constexpr int kSuccess = 0;

struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(const char* pci_address, Gpu* gpu) = nullptr;
  int (*energy)(Gpu gpu, unsigned long long* millijoules) = nullptr;
};

std::optional<Functions> functions_of(const SharedLibrary& library) {
  Functions functions;
  const bool has_all = library.find("nvmlInit_v2", functions.init) &&
                       library.find("nvmlShutdown", functions.shutdown) &&
                       library.find("nvmlDeviceGetHandleByPciBusId_v2", functions.find) &&
                       library.find("nvmlDeviceGetTotalEnergyConsumption", functions.energy);
  return has_all ? std::optional(functions) : std::nullopt;
}

/// NVML counts who uses it.
class Session {
 public:
  explicit Session(const Functions& functions) : functions_(functions), status_(functions.init()) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (is_open()) functions_.shutdown();
  }
  [[nodiscard]] bool is_open() const { return status_ == kSuccess; }

 private:
  Functions functions_;
  int status_;
};

class NvmlMeter final : public EnergyMeter {
 public:
  NvmlMeter(SharedLibrary library, const Functions& functions, const std::string& address)
      : library_(std::move(library)), functions_(functions), session_(functions), address_(address) {
    if (session_.is_open() && functions_.find(address.c_str(), &gpu_) != kSuccess) gpu_ = nullptr;
  }
  [[nodiscard]] bool tells() const {
    unsigned long long ignored = 0;
    return gpu_ != nullptr && functions_.energy(gpu_, &ignored) == kSuccess;
  }
  [[nodiscard]] double joules() override {
    unsigned long long millijoules = 0;
    const int status = functions_.energy(gpu_, &millijoules);
    CONCORD_CHECK(status == kSuccess, DeviceError,
                  "NVML no longer reports the energy of the GPU at {} (status {}); `concord doctor` checks whether the "
                  "GPU still works",
                  address_, status);
    return 1e-3 * static_cast<double>(millijoules);
  }
  [[nodiscard]] std::string source() const override { return "GPU, NVML"; }

 private:
  SharedLibrary library_;
  Functions functions_;
  Session session_;
  std::string address_;
  Gpu gpu_ = nullptr;
};

}  // namespace

std::unique_ptr<EnergyMeter> nvml_meter(const std::string& library, const std::string& pci_address) {
  SharedLibrary loaded(library);
  const std::optional<Functions> functions = functions_of(loaded);
  if (!functions) return nullptr;
  auto meter = std::make_unique<NvmlMeter>(std::move(loaded), *functions, pci_address);
  return meter->tells() ? std::move(meter) : nullptr;
}

}  // namespace concord
