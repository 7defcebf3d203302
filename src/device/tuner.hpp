// Tuner: how a device that has several kernels for a product finds the fastest by measuring. Used by compile, at first
// use, and by `concord tune`.
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

/// A product of matrices, or a pass of a convolution as one.
struct TunableProduct {
  std::string key;  // sizes and form: products with one key share a choice
  double flops = 0;
  std::int64_t uses = 0;  // kernels prepared for it
  bool is_known = false;  // a table holds a choice
};

/// What was measured of one product.
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
  /// The products that kernels are prepared for while `prepare` runs, in order.
  [[nodiscard]] virtual std::vector<TunableProduct> products_of(const std::function<void()>& prepare) = 0;
  /// Measures the kernels for a product that `products_of` gave, on random operands, for about so many seconds, each
  /// only after its result has been held against the plain kernel's, and takes the best into use. The planned kernel is
  /// measured however short the time; where nothing else was, nothing is taken. Throws OutOfMemory where the operands
  /// or all that the planned kernel needs do not fit, else DeviceError where no kernel is right.
  [[nodiscard]] virtual TunedProduct tune(const std::string& key, double seconds) = 0;
  /// Keeps what was found, in `file` or in the device's table. Gives the file. Throws IoError.
  virtual std::filesystem::path store(const std::filesystem::path& file = {}) = 0;
};

/// One product's turn; `failure` says why there is no result.
using TuningStep =
    std::function<void(const TunableProduct& product, const TunedProduct& result, const std::string& failure)>;

/// Tunes those that take most first, until so many seconds have passed. Gives those that no time was left for.
std::vector<TunableProduct> tune_within(Tuner& tuner, std::vector<TunableProduct> products, double seconds,
                                        const TuningStep& step);

}  // namespace concord
