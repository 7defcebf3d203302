// OpenClTuner: measures the GEMM kernels for a problem on one OpenCL device. Owned by OpenClDevice.
#pragma once

#include "concord/device/tuner.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"

namespace concord::opencl {

class OpenClTuner final : public Tuner {
 public:
  OpenClTuner(Device& device, Context& context, Tuning& tuning) : device_(device), context_(context), tuning_(tuning) {}

  [[nodiscard]] std::vector<TunableProduct> products_of(const std::function<void()>& prepare) override;
  [[nodiscard]] TunedProduct tune(const std::string& key, double seconds) override;
  std::filesystem::path store(const std::filesystem::path& file) override { return tuning_.store(file); }

 private:
  [[nodiscard]] TunedProduct measured(const std::string& key, double seconds);

  Device& device_;
  Context& context_;
  Tuning& tuning_;
  std::map<std::string, Gemm, std::less<>> noted_;
};

}  // namespace concord::opencl
