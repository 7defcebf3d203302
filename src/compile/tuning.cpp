// Finds the matrix multiplications of programs, and tunes them at first use.
#include "concord/compile/tuning.hpp"

#include <cmath>

#include "concord/compile/program_impl.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

void report(const TunableProduct& product, const TunedProduct& result, const std::string& failure) {
  for (const std::string& refused : result.refused) {
    log(LogLevel::warning, fmt::format("tuning {}: refused {}", product.key, refused));
  }
  if (!failure.empty()) {
    log(LogLevel::warning, fmt::format("tuning {}: {}", product.key, failure));
    return;
  }
  log(LogLevel::info, fmt::format("tuning {}: {}, {:.3f} ms; {} was planned, {:.3f} ms", product.key, result.best,
                                  result.best_seconds * 1e3, result.planned, result.planned_seconds * 1e3));
}

void keep(Tuner& tuner) {
  try {
    log(LogLevel::info, fmt::format("tuning: stored in {}", tuner.store().string()));
  } catch (const IoError& error) {
    log(LogLevel::warning, fmt::format("tuning results are not stored: {}", error.what()));
  }
}

}  // namespace

std::vector<TunableProduct> tunable_products(const Graph& graph, std::span<const Value> outputs, Device& device,
                                             const CompileOptions& options) {
  Tuner* const tuner = device.tuner();
  CONCORD_CHECK(tuner != nullptr, NotSupported,
                "{} ({}) has only one kernel for matrix multiplications: there is nothing to tune", device.info().id,
                device.info().name);
  Lowered lowered = lower_and_fuse(graph, section_of(graph, outputs, options), device, options);
  return tuner->products_of([&] { choose_layouts(lowered, device, options.precision); });
}

double tuning_seconds(const CompileOptions& options) {
  CONCORD_CHECK(!std::isnan(options.tune_seconds), ArgumentError, "CompileOptions::tune_seconds is not a number");
  if (options.tune_seconds >= 0) return options.tune_seconds;
  const std::optional<std::string> wanted = environment("CONCORD_TUNE_SECONDS");
  if (!wanted) return 0;
  const std::optional<double> seconds = number_in_text<double>(*wanted);
  CONCORD_CHECK(seconds && *seconds >= 0, ArgumentError,
                "CONCORD_TUNE_SECONDS is \"{}\", which is not a number of seconds from 0", *wanted);
  return *seconds;
}

void tune_at_first_use(const Lowered& program, Device& device, Precision precision, double seconds) {
  Tuner* const tuner = device.tuner();
  if (tuner == nullptr) return;
  Lowered probe = program;
  std::vector<TunableProduct> products = tuner->products_of([&] { choose_layouts(probe, device, precision); });
  std::erase_if(products, [](const TunableProduct& product) { return product.is_known; });
  bool any = false;
  const auto step = [&](const TunableProduct& product, const TunedProduct& result, const std::string& failure) {
    report(product, result, failure);
    any = any || result.is_taken;
  };
  const std::vector<TunableProduct> left = tune_within(*tuner, std::move(products), seconds, step);
  if (!left.empty()) {
    log(LogLevel::info,
        fmt::format("tuning: no time was left for {} matrix multiplications; they use the planned kernels",
                    left.size()));
  }
  if (any) keep(*tuner);
}

}  // namespace concord
