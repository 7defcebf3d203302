// concord doctor: what keeps this user from training on this machine, and whether a device computes what it should.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "concord/compare/variant_check.hpp"
#include "concord/compile/device_speed.hpp"
#include "concord/device/registry.hpp"
#include "drivers.hpp"
#include "finding.hpp"
#include "operator_check.hpp"
#include "options.hpp"

namespace concord::cli {
namespace {

using Weight = Finding::Weight;

struct Options {
  DeviceOption device;
  TraceOption trace;
  bool json = false;
  bool forget = false;
};

/// Everything found, told as it is found.
class Report {
 public:
  explicit Report(bool json) : json_(json) {
    if (!json_) std::cout << std::unitbuf;
  }
  void begin(const std::string& section) {
    section_ = section;
    if (!json_) std::cout << section << "\n";
  }
  void add(const Finding& finding) {
    if (finding.weight == Weight::warning) ++warnings_;
    if (finding.weight == Weight::obstacle && obstacle_.empty()) obstacle_ = finding.text;
    if (!json_) std::cout << fmt::format("  {:<9} {}\n", name_of(finding.weight), finding.text);
    document_["findings"].push_back(
        {{"section", section_}, {"weight", name_of(finding.weight)}, {"text", finding.text}});
  }
  void add(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) add(finding);
  }
  nlohmann::json& document() { return document_; }
  [[nodiscard]] int warnings() const { return warnings_; }
  /// The first; empty when there is none.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  bool json_;
  std::string section_, obstacle_;
  int warnings_ = 0;
  nlohmann::json document_ = {{"version", kVersion}, {"findings", nlohmann::json::array()}};
};

/// While it lives, warnings of the library are kept; printed, as all the rest, only with --verbose.
class KeptWarnings {
 public:
  KeptWarnings() {
    const bool verbose = log_enabled(LogLevel::debug);
    const auto keep = [this, verbose](LogLevel level, std::string_view text) {
      if (level >= LogLevel::warning) texts_.emplace_back(text);
      if (verbose) say_log(level, text);
    };
    set_log(keep, verbose ? LogLevel::debug : LogLevel::warning);
  }
  ~KeptWarnings() { log_to_standard_error(log_enabled(LogLevel::debug)); }
  KeptWarnings(const KeptWarnings&) = delete;
  KeptWarnings& operator=(const KeptWarnings&) = delete;
  void take_to(Report& report) {
    for (std::string& text : texts_) report.add({Weight::warning, std::move(text)});
    texts_.clear();
  }

 private:
  std::vector<std::string> texts_;
};

/// Null when it does not open, which the report then says.
DevicePtr opened(const Options& options, Report& report) {
  try {
    DevicePtr device = options.device.open();
    report.add({Weight::fine, "taken: " + describe(device->info())});
    if (const std::uint64_t memory = device->info().memory; memory > 0 && memory < kLittleMemory) {
      report.add({Weight::warning, fmt::format("its {} are little: take a small --batch", human_bytes(memory))});
    }
    return device;
  } catch (const Error& error) {
    report.add({Weight::obstacle, error.what()});
    return nullptr;
  }
}

/// The CPU, for operators that the host has no reference for; null when it is the device in question, or does not open.
DevicePtr reference_for(const Device& device) {
  if (device.info().id == "cpu") return nullptr;
  try {
    return Device::open("cpu");
  } catch (const Error&) {
    return nullptr;  // told when it is the device in question
  }
}

/// What the comparison tells of the device in question, the last; of the other one it only warns.
Finding finding_of(const Comparison& comparison, const OperatorCheck& check) {
  Finding finding{Weight::fine, fmt::format("{}: {}", check.model->name, fmt::join(check.operators, ", "))};
  for (std::size_t place = 0; place < comparison.runs.size(); ++place) {
    const DeviceRun& run = comparison.runs[place];
    std::string why = comparison.disagreement(place);
    if (why.empty()) continue;
    if (run.first_deviation) {
      const Deviation& d = *run.first_deviation;
      why = fmt::format("{} by the kernel {} of {} is wrong: error {:.3g}, allowed {:.3g} ({}). Please report it", d.op,
                        d.kernel, run.device.id, d.error, d.tolerance, d.shapes);
    }
    const bool is_asked = place + 1 == comparison.runs.size();
    finding = {is_asked ? Weight::obstacle : Weight::warning, fmt::format("{}: {}", check.model->name, why)};
  }
  return finding;
}

Finding check_finding(const OperatorCheck& check, std::span<const DevicePtr> devices) {
  try {
    return finding_of(check_operators(*check.model, devices), check);
  } catch (const Error& error) {
    return {Weight::obstacle, fmt::format("{}: {}", check.model->name, error.what())};
  }
}

void check_kernels(const DevicePtr& device, Report& report) {
  std::vector<DevicePtr> devices{device};
  if (const DevicePtr reference = reference_for(*device)) devices.insert(devices.begin(), reference);
  report.begin(fmt::format("kernels of {} against the host in double precision", device->info().id));
  for (const OperatorCheck& check : operator_checks()) report.add(check_finding(check, devices));
}

Finding variant_finding(const VariantResult& result) {
  const Variant& variant = result.variant;
  if (!variant.quirk.empty()) {
    return {Weight::warning,
            fmt::format("{}: {}. It is not used from now on; please report it", variant.name, variant.quirk)};
  }
  if (!result.unexplained.empty()) return {Weight::obstacle, fmt::format("{}: {}", variant.name, result.unexplained)};
  return {Weight::fine, variant.name + (result.was_taken ? ": right" : ": serves none of the checks on this device")};
}

/// Keeps what is marked where every process looks for it.
void keep_quirks(const Variants& variants, bool has_quirks, Report& report) {
  try {
    variants.store();
    if (has_quirks) report.add({Weight::fine, "what is not used stands in " + variants.file().string()});
  } catch (const Error& error) {
    // Without quirks nothing has to be kept.
    if (has_quirks)
      report.add({Weight::obstacle, fmt::format("other programs will use what is wrong: {}", error.what())});
  }
}

/// What is wrong is marked, so that the checks that follow are of what the library then does.
void check_variants(const DevicePtr& device, Report& report) {
  Variants* const variants = device->variants();
  if (variants == nullptr) return;
  report.begin(fmt::format("ways to compute on {}, against the host in double precision", device->info().id));
  bool has_quirks = false;
  for (const Variant& variant : variants->list()) {
    const VariantResult result = check_variant(device, *variants, variant.name);
    has_quirks = has_quirks || !result.variant.quirk.empty();
    report.add(variant_finding(result));
    report.document()["variants"].push_back(
        {{"name", variant.name}, {"checked", result.was_taken}, {"quirk", result.variant.quirk}});
  }
  keep_quirks(*variants, has_quirks, report);
}

void forget_quirks(const Options& options) {
  const DevicePtr device = options.device.open();
  Variants* const variants = device->variants();
  const std::size_t marks = variants == nullptr ? 0 : variants->forget();
  if (options.json) {
    std::cout << json_text({{"device", device->info().id}, {"forgotten", marks}});
  } else {
    std::cout << fmt::format("{} quirks of {} are forgotten\n", marks, device->info().id);
  }
}

void measure_device(const DevicePtr& device, Report& report) {
  report.begin("speed of " + device->info().id);
  try {
    const DeviceSpeed speed = measure_speed(device);
    report.document()["speed"] = {{"bytes_per_second", speed.bytes_per_second},
                                  {"flops_per_second", speed.flops_per_second},
                                  {"launch_seconds", speed.launch_seconds},
                                  {"upload_bytes_per_second", speed.upload_bytes_per_second},
                                  {"download_bytes_per_second", speed.download_bytes_per_second},
                                  {"upload_seconds", speed.upload_seconds},
                                  {"download_seconds", speed.download_seconds}};
    report.add({Weight::fine,
                fmt::format("{:.1f} GB/s of memory, {:.1f} GFLOP/s in a product of {}x{}", speed.bytes_per_second / 1e9,
                            speed.flops_per_second / 1e9, speed.product_size, speed.product_size)});
    report.add({Weight::fine, fmt::format("a launch costs {:.1f} us", speed.launch_seconds * 1e6)});
    report.add(
        {Weight::fine, fmt::format("copies: up {:.1f} GB/s and at least {:.1f} us, down {:.1f} GB/s and {:.1f} us",
                                   speed.upload_bytes_per_second / 1e9, speed.upload_seconds * 1e6,
                                   speed.download_bytes_per_second / 1e9, speed.download_seconds * 1e6)});
  } catch (const Error& error) {
    report.add({Weight::obstacle, error.what()});
  }
}

std::string verdict(const DevicePtr& device, const Report& report) {
  if (!report.obstacle().empty()) {
    return fmt::format("you cannot train{}: {}", device ? " on " + device->info().id : "", report.obstacle());
  }
  return fmt::format("You can train on {} ({}){}.", device->info().id, device->info().name,
                     report.warnings() == 0 ? "; nothing is wrong" : "; the warnings above say what could be better");
}

void run(const Options& options) {
  Report report(options.json);
  KeptWarnings warnings;
  report.begin("OpenCL drivers");
  Drivers drivers;
  report.add(drivers.findings());
  const bool needs_opencl = !takes_cpu(options.device.selector);
  report.add(drivers.try_out(needs_opencl ? Weight::obstacle : Weight::warning));
  const bool ends_programs = !report.obstacle().empty();
  const std::vector<DeviceInfo> listed = Device::list();
  report.begin("devices");
  warnings.take_to(report);
  for (const DeviceInfo& info : listed) report.add({Weight::fine, describe(info)});
  report.add(idle_driver_findings(drivers, listed, idle_platforms()));
  report.add(device_file_findings(listed));
  const DevicePtr device = opened(options, report);
  warnings.take_to(report);
  report.begin("this machine");
  report.add(machine_findings());
  if (device) {
    check_variants(device, report);
    check_kernels(device, report);
    measure_device(device, report);
    warnings.take_to(report);
  }
  const std::string sentence = verdict(ends_programs ? nullptr : device, report);
  if (options.json) {
    report.document()["device"] = device ? device->info().id : "";
    report.document()["can_train"] = report.obstacle().empty();
    report.document()["verdict"] = sentence;
    std::cout << json_text(report.document());
  }
  if (!report.obstacle().empty()) throw DeviceError(sentence);
  if (!options.json) std::cout << "\n" << sentence << "\n";
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Find what keeps you from training, and check a device's kernels");
  const auto options = std::make_shared<Options>();
  options->device.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--forget", options->forget, "Only remove what earlier runs found wrong with the device's kernels");
  options->trace.add(*command);
  command->callback(
      [options] { options->trace.around([&] { options->forget ? forget_quirks(*options) : run(*options); }); });
}

}  // namespace concord::cli
