// The troubles that the doctor knows, in words.
#include "concord/cli/doctor/finding.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace concord::cli {
namespace {

constexpr std::array<TroubleWords, 17> kTroubles{
    {{Trouble::no_backend, "A build without OpenCL", "this build has no OpenCL"},
     {Trouble::no_driver, "No OpenCL driver", "no OpenCL driver is installed"},
     {Trouble::driver_does_not_load, "A driver that does not load", "an OpenCL driver does not load"},
     {Trouble::driver_ends_programs, "Every command ends at once, with `Aborted` or a driver's words",
      "an OpenCL driver ends every program that asks for devices"},
     {Trouble::driver_without_device, "A driver that gives no device", "an OpenCL driver has no device"},
     {Trouble::device_left_out, "A device that is left out", "a device cannot be used"},
     {Trouble::device_file_closed, "A device file that is not yours to use", "you may not use a device file"},
     {Trouble::device_file_without_device, "A device file without a device", "a GPU has no OpenCL driver"},
     {Trouble::no_device, "No device matches", "no device, or more than one, matches"},
     {Trouble::device_does_not_open, "A device that does not open", "it does not open"},
     {Trouble::little_memory, "Little memory", "memory is too small"},
     {Trouble::cache_not_kept, "Compiled kernels that cannot be kept", "compiled kernels cannot be stored"},
     {Trouble::library_does_not_fit, "A oneDNN that does not fit", "the loaded oneDNN does not fit"},
     {Trouble::wrong_kernel, "A kernel is wrong on this device", "kernels are wrong on it or do not build"},
     {Trouble::denylist_not_kept, "Wrong kernels that cannot be noted",
      "its denylist cannot be written for other programs"},
     {Trouble::failed_check, "A check that fails", "a check of it failed"},
     {Trouble::library_warning, "A warning of the library", "the library warns"}}};

}  // namespace

std::span<const TroubleWords> all_troubles() { return kTroubles; }

const TroubleWords& words_of(Trouble trouble) {
  static_assert(kTroubles.size() == static_cast<std::size_t>(Trouble::library_warning));
  return *std::ranges::find(kTroubles, trouble, &TroubleWords::trouble);
}

Finding fine(std::string text) { return {Finding::Weight::fine, Trouble::none, std::move(text)}; }

Finding warning(Trouble trouble, std::string text) { return {Finding::Weight::warning, trouble, std::move(text)}; }

Finding obstacle(Trouble trouble, std::string text) { return {Finding::Weight::obstacle, trouble, std::move(text)}; }

std::string_view name_of(Finding::Weight weight) {
  switch (weight) {
    case Finding::Weight::fine: return "fine";
    case Finding::Weight::warning: return "warning";
    case Finding::Weight::obstacle: return "obstacle";
  }
  return "unknown";
}

}  // namespace concord::cli
