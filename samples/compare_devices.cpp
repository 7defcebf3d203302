// Do two devices compute the same for a network of your own? Trains it on both from the same weights, holds every
// operator of the step against the host in double precision, and writes a page with the results.
//   compare_devices [DEVICES… [PAGE]]     by default cpu and opencl, compare_devices.html
#include <concord/concord.hpp>
#include <fstream>
#include <iostream>

using namespace concord;

int main(int argc, char** argv) try {
  std::vector<std::string> names(argv + 1, argv + argc);
  std::string page = "compare_devices.html";
  if (!names.empty() && names.back().ends_with(".html")) {
    page = names.back();
    names.pop_back();
  }
  if (names.empty()) names = {"cpu", "opencl"};
  std::vector<DevicePtr> devices;
  for (const std::string& name : names) devices.push_back(Device::open(name));

  nn::Sequential net{nn::Conv2d{1, 8, 3, {.padding = 1}},
                     nn::BatchNorm2d{8},
                     nn::ReLU{},
                     nn::GlobalAvgPool2d{},
                     nn::Flatten{},
                     nn::Linear{8, 4}};
  const Dataset data = data::synthetic(Shape{1, 12, 12}, 4, 128);
  const Comparison result = compare(
      net, "my network", loss::cross_entropy, optim::Adam{.lr = 1e-2}, data, devices,
      {.steps = 20, .batch = 16, .seconds = 0.2, .reference = Reference::float64, .drift = true, .speed = true});
  std::cout << result.table();
  std::ofstream file(page);
  if (!(file << result.html()).flush()) throw IoError("cannot write " + page);
  std::cout << "written: " << page << '\n';
  return result.agrees() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
