// Tuner: finds the fastest kernel for a matrix multiplication by measuring, on a device that has several. Used by
// compile, at first use, and by `concord tune`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace concord {

/// A matrix multiplication, or a pass of a convolution in that form.
struct TunableProduct {
  std::string key;  // sizes and form: equal keys share a choice
  double flops = 0;
  std::int64_t uses = 0;  // kernels prepared for it
  bool is_known = false;  // a table holds a choice
};

/// The measurements of one matrix multiplication.
struct TunedProduct {
  std::string planned, best;  // kernels
  double planned_seconds = 0, best_seconds = 0;
  std::size_t tried = 0, candidates = 0;  // kernels measured, of how many there are
  std::vector<std::string> refused;       // a sentence for each kernel that gave a wrong result or failed
  bool is_taken = false;                  // into use, for `store` to keep
};

class Tuner {
 public:
  virtual ~Tuner() = default;
  /// The matrix multiplications for which kernels are prepared while `prepare` runs, in order.
  [[nodiscard]] virtual std::vector<TunableProduct> products_of(const std::function<void()>& prepare) = 0;
  /// Measures the kernels for a product from `products_of` on random operands, for about `seconds`, and uses the
  /// fastest from then on. Each kernel is measured only if its result agrees with that of the plain kernel. The planned
  /// kernel is measured however short the time is; if no other was measured, nothing changes. Throws OutOfMemory if the
  /// operands or the memory of the planned kernel do not fit, else DeviceError if no kernel is right.
  [[nodiscard]] virtual TunedProduct tune(const std::string& key, double seconds) = 0;
  /// Stores the results in `file` or in the device's table. Returns the file. Throws IoError.
  virtual std::filesystem::path store(const std::filesystem::path& file = {}) = 0;
};

/// One product's turn; `failure` says why there is no result.
using TuningStep =
    std::function<void(const TunableProduct& product, const TunedProduct& result, const std::string& failure)>;

/// Tunes the products that take the most time first, until `seconds` have passed. Returns those that remain.
std::vector<TunableProduct> tune_within(Tuner& tuner, std::vector<TunableProduct> products, double seconds,
                                        const TuningStep& step);

}  // namespace concord
