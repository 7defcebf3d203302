// concord tune: measures which kernel is fastest for each matrix multiplication of a network on a device, and stores
// the table.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "concord/cli/bench_network.hpp"
#include "concord/cli/counted.hpp"
#include "concord/core/log.hpp"

namespace concord::cli {
namespace {

struct TuneArguments {
  std::string model, input;
  std::int64_t batch = 0;  // 0: as in the benchmark
  DeviceOption device;
  PrecisionOption precision;
  double seconds = 60;
  std::string out;
  bool again = false;
  TraceOption trace;
  bool json = false;
};

/// The networks of bench/gpu_vs_pytorch.
struct Benchmark {
  std::string_view model;
  std::int64_t batch;
};
constexpr std::array<Benchmark, 11> kBenchmarks{{{"mlp", 64},
                                                 {"lenet", 64},
                                                 {"alexnet", 128},
                                                 {"overfeat", 128},
                                                 {"vgg11", 64},
                                                 {"googlenet", 128},
                                                 {"resnet18", 64},
                                                 {"resnet50", 64},
                                                 {"mobilenet_v2", 64},
                                                 {"lstm", 64},
                                                 {"gpt2_small", 8}}};

std::int64_t usual_batch(std::string_view model) {
  const auto* const found = std::ranges::find(kBenchmarks, model, &Benchmark::model);
  return found == kBenchmarks.end() ? 64 : found->batch;
}

/// A program, and the number of times that it has each matrix multiplication.
struct Part {
  std::string name;
  std::map<std::string, std::int64_t> uses;
};

/// The measurement of one matrix multiplication.
struct Row {
  TunableProduct product;  // with the uses in all programs
  TunedProduct result;
};

/// What a part takes in the products that were measured.
struct Sum {
  double planned = 0, best = 0;
  std::size_t measured = 0;
};

class Tune {
 public:
  explicit Tune(const TuneArguments& options) : options_(options), device_(options.device.open()) {
    require_writable(options.out);
    options.precision.warn_of(device_->info());
  }

  void run() {
    collect();
    std::vector<TunableProduct> products;
    for (const auto& [key, product] : products_) {
      if (options_.again || !product.is_known) products.push_back(product);
    }
    known_ = products_.size() - products.size();
    left_ = tune_within(*device_->tuner(), std::move(products), options_.seconds,
                        [&](const TunableProduct& product, const TunedProduct& result, const std::string& failure) {
                          take(product, result, failure);
                        });
    if (options_.json) {
      print_json();
    } else {
      print();
    }
  }

 private:
  void collect() {
    if (!options_.model.empty()) {
      collect(options_.model, options_.batch == 0 ? usual_batch(options_.model) : options_.batch);
      return;
    }
    for (const Benchmark& one : kBenchmarks) {
      collect(std::string(one.model), options_.batch == 0 ? one.batch : options_.batch);
    }
  }

  void collect(const std::string& model, std::int64_t batch) {
    BenchOptions network;
    network.training.model = model;
    network.training.batch = batch;
    network.input = options_.input;
    network.precision = options_.precision;
    BenchNetwork bench(network, device_);
    add(fmt::format("{} batch {}, training step", model, batch), bench.step_products());
    add(fmt::format("{} batch {}, inference", model, batch), bench.inference_products());
  }

  void add(std::string name, const std::vector<TunableProduct>& products) {
    Part part{std::move(name), {}};
    for (const TunableProduct& product : products) {
      part.uses[product.key] = product.uses;
      const auto [found, is_new] = products_.try_emplace(product.key, product);
      if (!is_new) found->second.uses += product.uses;
    }
    parts_.push_back(std::move(part));
  }

  void take(const TunableProduct& product, const TunedProduct& result, const std::string& failure) {
    for (const std::string& refused : result.refused) {
      log(LogLevel::warning, fmt::format("matrix multiplication {}: refused {}", product.key, refused));
    }
    if (!failure.empty()) {
      log(LogLevel::warning, fmt::format("matrix multiplication {}: {}", product.key, failure));
      failed_.push_back({{"matrix multiplication", product.key}, {"why", failure}});
      return;
    }
    rows_.push_back({product, result});
    // At once, so that an interrupted run keeps what it found.
    if (result.is_taken) stored_ = device_->tuner()->store(options_.out);
  }

  [[nodiscard]] Sum sum_of(const Part& part) const {
    Sum sum;
    for (const Row& row : rows_) {
      const auto found = part.uses.find(row.product.key);
      if (found == part.uses.end()) continue;
      ++sum.measured;
      sum.planned += static_cast<double>(found->second) * row.result.planned_seconds;
      sum.best += static_cast<double>(found->second) * row.result.best_seconds;
    }
    return sum;
  }

  void print() const {
    std::vector<std::vector<std::string>> rows{
        {"matrix multiplication", "uses", "planned", "ms", "best", "ms", "gain", "tried"}};
    for (const auto& [product, result] : rows_) {
      const double gain = result.planned_seconds == 0 ? 0 : 1 - result.best_seconds / result.planned_seconds;
      rows.push_back({product.key, fmt::format("{}", product.uses), result.planned,
                      fmt::format("{:.4f}", result.planned_seconds * 1e3), result.best,
                      fmt::format("{:.4f}", result.best_seconds * 1e3), fmt::format("{:.0f} %", 100 * gain),
                      fmt::format("{}/{}", result.tried, result.candidates)});
    }
    std::cout << fmt::format("{}, {} on {}\n", options_.model.empty() ? "the benchmark's networks" : options_.model,
                             options_.precision.name, device_->info().name)
              << table(rows);
    for (const Part& part : parts_) {
      const Sum sum = sum_of(part);
      std::cout << fmt::format(
          "{}: {:.3f} ms in matrix multiplications as planned, {:.3f} ms with the fastest kernels ({} of {} "
          "measured)\n",
          part.name, sum.planned * 1e3, sum.best * 1e3, sum.measured, part.uses.size());
    }
    if (known_ > 0) {
      std::cout << fmt::format("already in a table: {}; --again measures again\n",
                               counted(known_, "matrix multiplication"));
    }
    if (!left_.empty()) {
      std::cout << fmt::format("no time was left for {} (--seconds), the largest {}\n",
                               counted(left_.size(), "matrix multiplication"), left_.front().key);
    }
    std::cout << (stored_.empty() ? "nothing new was stored\n" : fmt::format("stored in {}\n", stored_.string()));
  }

  void print_json() const {
    const DeviceInfo& info = device_->info();
    nlohmann::json json{{"version", kVersion},
                        {"device", info.id},
                        {"device_name", info.name},
                        {"driver", info.driver},
                        {"precision", options_.precision.name},
                        {"products", nlohmann::json::array()},
                        {"programs", nlohmann::json::array()},
                        {"known", known_},
                        {"failed", failed_},
                        {"left_out", nlohmann::json::array()},
                        {"stored", stored_.string()}};
    for (const auto& [product, result] : rows_) {
      json["products"].push_back({{"matrix multiplication", product.key},
                                  {"uses", product.uses},
                                  {"planned", result.planned},
                                  {"planned_ms", result.planned_seconds * 1e3},
                                  {"best", result.best},
                                  {"best_ms", result.best_seconds * 1e3},
                                  {"tried", result.tried},
                                  {"candidates", result.candidates},
                                  {"refused", result.refused}});
    }
    for (const Part& part : parts_) {
      const Sum sum = sum_of(part);
      json["programs"].push_back({{"program", part.name},
                                  {"products", part.uses.size()},
                                  {"measured", sum.measured},
                                  {"planned_ms", sum.planned * 1e3},
                                  {"best_ms", sum.best * 1e3}});
    }
    for (const TunableProduct& product : left_) json["left_out"].push_back(product.key);
    std::cout << json_text(json);
  }

  const TuneArguments& options_;
  DevicePtr device_;
  std::map<std::string, TunableProduct> products_;
  std::vector<Part> parts_;
  std::vector<Row> rows_;
  std::vector<TunableProduct> left_;
  nlohmann::json failed_ = nlohmann::json::array();
  std::filesystem::path stored_;
  std::size_t known_ = 0;
};

}  // namespace

void add_tune(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tune", "Measure which kernels are fastest for a network on a device");
  command->footer(
      "Runs every kernel for the matrix multiplications and convolutions of the network on random operands,\ncompares "
      "it with the reference kernel and measures it. Stores the fastest in a table that every program on\nthis device "
      "uses. Starts with those that need the largest part of a step. See docs/tuning.md.");
  const auto options = std::make_shared<TuneArguments>();
  command->add_option("model", options->model, "The network, as for bench [each network of the benchmark]");
  command->add_option("--batch", options->batch, "Samples per step [as in the benchmark; else 64]")->check(count());
  command->add_option("--input", options->input, "One sample, such as 3x64x64 [as published]")
      ->check(not_empty())
      ->needs("model");
  options->device.add(*command);
  options->precision.add(*command);
  command->add_option("--seconds", options->seconds, "Seconds to measure")->capture_default_str()->check(positive());
  command
      ->add_option("--out", options->out, "The table [in $CONCORD_TUNING_DIR, else in the folder tuning of the cache]")
      ->check(file_name());
  command->add_flag("--again", options->again, "Also measure matrix multiplications that are already in a table");
  command->add_flag("--json", options->json, "Print JSON");
  options->trace.add(*command);
  command->callback([options] {
    const InputFiles inputs = InputFiles().add(options->model);
    inputs.require_kept({{"--out", options->out}});
    options->trace.around(inputs, [&] { Tune(*options).run(); });
  });
}

}  // namespace concord::cli
