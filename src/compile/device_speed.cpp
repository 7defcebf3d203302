// measure_speed: bandwidth, matrix multiplications, launches and copies of one device.
#include "concord/compile/device_speed.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "concord/compile/measure.hpp"
#include "concord/core/median.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {
namespace {

constexpr MeasureOptions kShort{.seconds = 0.2, .least = 5, .warm_up = 2};
/// Some ten thousand, each of which is in a timeline.
constexpr MeasureOptions kLaunches{.seconds = 0.02, .least = 5, .warm_up = 2};

double median_seconds(Program& program, const MeasureOptions& options = kShort) {
  return measure(program, options).median_ms / 1e3;
}

/// Small numbers of both signs.
Tensor numbers(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  int i = 0;
  for (float& value : tensor.values<float>()) value = static_cast<float>(i++ % 7 - 3) / 4;
  return tensor;
}

/// Seconds of x + 1 over `count` numbers.
double seconds_of_increment(const DevicePtr& device, std::int64_t count, const MeasureOptions& options) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{count}});
  Program program = compile(graph, std::vector{x + 1.0F}, std::make_shared<Variables>(device, 1));
  program.write("x", numbers(Shape{count}));
  return median_seconds(program, options);
}

double seconds_of_product(const DevicePtr& device, std::int64_t size, Precision precision) {
  Graph graph;
  const Shape shape{size, size};
  const Value a = graph.input("a", {DType::f32, shape}), b = graph.input("b", {DType::f32, shape});
  Program program =
      compile(graph, std::vector{matmul(a, b)}, std::make_shared<Variables>(device, 1), {.precision = precision});
  program.write("a", numbers(shape));
  program.write("b", numbers(shape));
  return median_seconds(program);
}

/// Measures larger and larger matrix multiplications, until one keeps the device busy for a while.
void measure_products(const DevicePtr& device, Precision precision, std::size_t largest_bytes, DeviceSpeed& speed) {
  constexpr double kLongEnough = 0.02;
  for (std::int64_t size = 512; size <= 8192; size *= 2) {
    if (static_cast<std::size_t>(size * size) * sizeof(float) > largest_bytes) return;
    const double seconds = seconds_of_product(device, size, precision);
    const auto n = static_cast<double>(size);
    const double rate = 2 * n * n * n / seconds;
    if (rate > speed.flops_per_second) {
      speed.flops_per_second = rate;
      speed.product_size = size;
    }
    if (seconds > kLongEnough) return;
  }
}

double median_of(const std::function<void()>& work) {
  constexpr std::size_t kRuns = 9;
  std::vector<double> seconds;
  work();
  for (std::size_t i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(seconds);
}

struct CopySeconds {
  double up, down;
};
CopySeconds seconds_of_copies(Device& device, std::size_t bytes) {
  std::vector<std::byte> host(bytes);
  const BufferPtr buffer = device.allocate(bytes);
  const double up = median_of([&] {
    device.write(*buffer, 0, host);
    device.finish();
  });
  return {up, median_of([&] { device.read(*buffer, 0, host); })};
}

}  // namespace

DeviceSpeed measure_speed(const DevicePtr& device, Precision precision) {
  const DeviceInfo& info = device->info();
  std::size_t largest = std::size_t{256} << 20;
  if (info.memory > 0) largest = std::min<std::size_t>(largest, info.memory / 16);
  if (info.max_allocation > 0) largest = std::min<std::size_t>(largest, info.max_allocation / 2);
  DeviceSpeed speed;
  const auto count = static_cast<std::int64_t>(largest / sizeof(float));
  const double array_bytes = static_cast<double>(count) * sizeof(float);
  speed.bytes_per_second = 2 * array_bytes / seconds_of_increment(device, count, kShort);
  measure_products(device, precision, largest, speed);
  speed.launch_seconds = seconds_of_increment(device, 16, kLaunches);
  const std::size_t bytes = std::min(largest, std::size_t{64} << 20);
  const CopySeconds large = seconds_of_copies(*device, bytes), small = seconds_of_copies(*device, 4);
  speed.upload_bytes_per_second = static_cast<double>(bytes) / large.up;
  speed.download_bytes_per_second = static_cast<double>(bytes) / large.down;
  speed.upload_seconds = small.up;
  speed.download_seconds = small.down;
  return speed;
}

}  // namespace concord
