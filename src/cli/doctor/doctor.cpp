// concord doctor: what keeps this user from training on this machine, and whether a device computes what it should.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "concord/cli/counted.hpp"
#include "concord/cli/doctor/drivers.hpp"
#include "concord/cli/doctor/machine.hpp"
#include "concord/cli/doctor/operator_check.hpp"
#include "concord/cli/doctor/report.hpp"
#include "concord/cli/options.hpp"
#include "concord/compare/cases/alternative_check.hpp"
#include "concord/compile/device_speed.hpp"
#include "concord/device/registry.hpp"
#include "concord/device/selection.hpp"

namespace concord::cli {
namespace {

struct DoctorArguments {
  DeviceOption device;
  TraceOption trace;
  bool json = false;
  bool forget = false;
};

struct Ending {
  bool can_train = false;
  std::string verdict;
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
  /// Each once: devices are looked for more than once.
  void take_to(DoctorReport& report, Trouble trouble) {
    for (const std::string& text : texts_) {
      if (told_.insert(text).second) report.add(warning(trouble, text));
    }
    texts_.clear();
  }

 private:
  std::vector<std::string> texts_;
  std::set<std::string> told_;
};

/// The device. Null if none matches or it does not open; the report then says so. Throws ArgumentError, as other
/// commands do.
DevicePtr opened(const DoctorArguments& options, std::span<const DeviceInfo> listed, DoctorReport& report) {
  Trouble trouble = Trouble::no_device;
  try {
    static_cast<void>(select_device(listed, options.device.selector));
    trouble = Trouble::device_does_not_open;
    DevicePtr device = options.device.open();
    report.add(findings_of(device->info()));
    return device;
  } catch (const ArgumentError&) {
    throw;
  } catch (const Error& error) {
    report.add(obstacle(trouble, error.what()));
    return nullptr;
  }
}

/// The CPU, for operators without a reference on the host. Null if it is the device in question, or if it does not
/// open.
DevicePtr reference_for(const Device& device) {
  if (device.info().id == "cpu") return nullptr;
  try {
    return Device::open("cpu");
  } catch (const Error&) {
    return nullptr;  // reported when the CPU is the device in question
  }
}

/// The finding about the device in question, the last of the comparison. Faults of the other device are only warnings.
Finding finding_of(const Comparison& comparison, const OperatorCheck& check) {
  Finding finding = fine(fmt::format("{}: {}", check.model->name, fmt::join(check.operators, ", ")));
  for (std::size_t place = 0; place < comparison.runs.size(); ++place) {
    const DeviceRun& run = comparison.runs[place];
    std::string why = comparison.disagreement(place);
    if (why.empty()) continue;
    if (run.first_deviation) {
      const Deviation& d = *run.first_deviation;
      why = fmt::format("{} by the kernel {} of {} is wrong: error {:.3g}, tolerance {:.3g} ({}). Please report it",
                        d.op, d.kernel, run.device.id, d.error, d.tolerance, d.shapes);
    }
    const bool is_asked = place + 1 == comparison.runs.size();
    finding = (is_asked ? obstacle : warning)(Trouble::wrong_kernel, fmt::format("{}: {}", check.model->name, why));
  }
  return finding;
}

Finding check_finding(const OperatorCheck& check, std::span<const DevicePtr> devices) {
  const auto failed = [&](Trouble trouble, const Error& error) {
    return obstacle(trouble, fmt::format("{}: {}", check.model->name, error.what()));
  };
  try {
    return finding_of(check_operators(*check.model, devices), check);
  } catch (const KernelBuildError& error) {
    return failed(Trouble::wrong_kernel, error);
  } catch (const OutOfMemory& error) {
    return failed(Trouble::little_memory, error);
  } catch (const Error& error) {
    return failed(Trouble::failed_check, error);
  }
}

void check_kernels(const DevicePtr& device, DoctorReport& report) {
  std::vector<DevicePtr> devices{device};
  if (const DevicePtr reference = reference_for(*device)) devices.insert(devices.begin(), reference);
  report.begin(fmt::format("kernels of {}, compared with double precision on the host", device->info().id));
  for (const OperatorCheck& check : operator_checks()) report.add(check_finding(check, devices));
}

Finding alternative_finding(const AlternativeResult& result) {
  const KernelAlternative& alternative = result.alternative;
  if (!alternative.reason.empty()) {
    return warning(Trouble::wrong_kernel, fmt::format("{}: {}. It is disabled from now on; please report it",
                                                      alternative.name, alternative.reason));
  }
  if (!result.unexplained.empty()) {
    return obstacle(Trouble::wrong_kernel, fmt::format("{}: {}", alternative.name, result.unexplained));
  }
  return fine(alternative.name + (result.was_taken ? ": correct" : ": no check applies on this device"));
}

/// Stores the disabled alternatives in the denylist, which every process reads.
void keep_denylist(const KernelAlternatives& alternatives, bool has_entries, DoctorReport& report) {
  try {
    alternatives.store();
    if (has_entries) report.add(fine("the denylist is " + alternatives.file().string()));
  } catch (const Error& error) {
    // Without denylist nothing has to be kept.
    if (has_entries) {
      report.add(obstacle(Trouble::denylist_not_kept,
                          fmt::format("other programs will still use wrong kernels: {}", error.what())));
    }
  }
}

/// A wrong alternative is disabled, so the later checks run what the library then uses. One that memory is too small to
/// check stays as it was.
void check_alternatives(const DevicePtr& device, DoctorReport& report) {
  KernelAlternatives* const alternatives = device->alternatives();
  if (alternatives == nullptr) return;
  report.begin(fmt::format("kernel alternatives of {}, compared with double precision on the host", device->info().id));
  bool has_entries = false;
  for (const KernelAlternative& alternative : alternatives->list()) {
    AlternativeResult result{alternative, false, {}};
    try {
      result = check_alternative(device, *alternatives, alternative.name);
      report.add(alternative_finding(result));
    } catch (const std::bad_alloc&) {
      report.add(obstacle(Trouble::little_memory, alternative.name + ": host memory is too small for its check"));
    } catch (const OutOfMemory& error) {
      report.add(obstacle(Trouble::little_memory, fmt::format("{}: {}", alternative.name, error.what())));
    }
    has_entries = has_entries || !result.alternative.reason.empty();
    report.document()["alternatives"].push_back(
        {{"name", alternative.name}, {"checked", result.was_taken}, {"reason", result.alternative.reason}});
  }
  keep_denylist(*alternatives, has_entries, report);
}

void forget_denylist(const DoctorArguments& options) {
  const DevicePtr device = options.device.open();
  KernelAlternatives* const alternatives = device->alternatives();
  const std::size_t disabled = alternatives == nullptr ? 0 : alternatives->forget();
  if (options.json) {
    std::cout << json_text({{"device", device->info().id}, {"forgotten", disabled}});
  } else {
    std::cout << fmt::format("removed {} from the denylist of {}\n", counted(disabled, "entry", "entries"),
                             device->info().id);
  }
}

void measure_device(const DevicePtr& device, DoctorReport& report) {
  report.begin("speed of " + device->info().id);
  const DeviceSpeed speed = measure_speed(device);
  report.document()["speed"] = {{"bytes_per_second", speed.bytes_per_second},
                                {"flops_per_second", speed.flops_per_second},
                                {"launch_seconds", speed.launch_seconds},
                                {"upload_bytes_per_second", speed.upload_bytes_per_second},
                                {"download_bytes_per_second", speed.download_bytes_per_second},
                                {"upload_seconds", speed.upload_seconds},
                                {"download_seconds", speed.download_seconds}};
  report.add(fine(fmt::format("{:.1f} GB/s of memory, {:.1f} GFLOP/s in a matrix multiplication of {}x{}",
                              speed.bytes_per_second / 1e9, speed.flops_per_second / 1e9, speed.product_size,
                              speed.product_size)));
  report.add(fine(fmt::format("launch overhead {:.1f} us", speed.launch_seconds * 1e6)));
  report.add(fine(
      fmt::format("copies: to the device {:.1f} GB/s, at least {:.1f} us; to the host {:.1f} GB/s, at least {:.1f} us",
                  speed.upload_bytes_per_second / 1e9, speed.upload_seconds * 1e6,
                  speed.download_bytes_per_second / 1e9, speed.download_seconds * 1e6)));
}

/// Turns every error into a finding, so that the report ends with a verdict. Wrong usage is not a fault of the machine.
void attempt(DoctorReport& report, const std::function<void()>& work) {
  try {
    work();
  } catch (const ArgumentError&) {
    throw;
  } catch (const std::bad_alloc&) {
    report.add(obstacle(Trouble::little_memory, "host memory is too small for this"));
  } catch (const OutOfMemory& error) {
    report.add(obstacle(Trouble::little_memory, error.what()));
  } catch (const std::exception& error) {
    report.add(obstacle(Trouble::failed_check, error.what()));
  }
}

/// The device of --device, if it opens.
DevicePtr look_at_machine(const DoctorArguments& options, KeptWarnings& warnings, DoctorReport& report) {
  report.begin("OpenCL drivers");
  std::optional<Drivers> drivers;
  attempt(report, [&] {
    report.add(drivers.emplace().findings());
    report.add(
        drivers->try_out(selects_cpu(options.device.selector) ? Finding::Weight::warning : Finding::Weight::obstacle));
  });
  report.begin("devices");
  std::vector<DeviceInfo> listed;
  DevicePtr device;
  attempt(report, [&] {
    listed = Device::list();
    warnings.take_to(report, Trouble::device_left_out);
    for (const DeviceInfo& info : listed) report.add(fine(describe(info)));
    if (drivers) report.add(idle_driver_findings(*drivers, listed, idle_platforms()));
  });
  attempt(report, [&] { report.add(findings_of(device_files(), listed)); });
  attempt(report, [&] { device = opened(options, listed, report); });
  warnings.take_to(report, Trouble::library_warning);
  report.begin("this machine");
  attempt(report, [&] { report.add(findings_of(machine_facts())); });
  return device;
}

void run(const DoctorArguments& options, std::optional<Ending>& ending) {
  DoctorReport report(options.json ? nullptr : &std::cout);
  KeptWarnings warnings;
  const DevicePtr device = look_at_machine(options, warnings, report);
  if (device) {
    for (const auto& check : {check_alternatives, check_kernels, measure_device}) {
      attempt(report, [&] { check(device, report); });
    }
    warnings.take_to(report, Trouble::library_warning);
  }
  const std::string name = device ? fmt::format("{} ({})", device->info().id, device->info().name)
                                  : fmt::format("\"{}\"", wanted_device(options.device.selector));
  ending = Ending{report.can_train(), report.verdict(name)};
  if (!options.json) return;
  report.document()["version"] = kVersion;
  report.document()["device"] = device ? device->info().id : "";
  report.document()["can_train"] = ending->can_train;
  report.document()["verdict"] = ending->verdict;
  std::cout << json_text(report.document());
}

/// The verdict is the last line, behind what a timeline has to say.
void diagnose(const DoctorArguments& options) {
  std::optional<Ending> ending;
  options.trace.around({}, [&] { run(options, ending); });
  if (!ending->can_train) throw DeviceError(ending->verdict);
  if (!options.json) std::cout << "\n" << ending->verdict << "\n";
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Find problems that prevent training, and check a device's kernels");
  const auto options = std::make_shared<DoctorArguments>();
  options->device.add(*command);
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--forget", options->forget, "Only clear the denylist of the device");
  options->trace.add(*command);
  command->callback([options] {
    if (!options->forget) return diagnose(*options);
    options->trace.around({}, [&] { forget_denylist(*options); });
  });
}

}  // namespace concord::cli
