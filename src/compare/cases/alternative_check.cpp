// Runs each case with the alternative and, if the result is wrong, without it.
#include "concord/compare/cases/alternative_check.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "concord/compare/cases/alternative_cases.hpp"
#include "concord/compare/cases/kernel_check.hpp"
#include "concord/core/error.hpp"

namespace concord {
namespace {

/// Describes the fault of a case on the device as it is now. Empty if the case is right. Throws where memory runs out,
/// which is no fault of the kernels.
std::string fault_in(const AlternativeCase& one, const DevicePtr& device, Precision precision) {
  const AlternativeGraph made(one);
  try {
    const auto fault = find_fault(made.graph, made.outputs, made.inputs, device, precision);
    return fault ? fault->str() : std::string();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));  // without the compiler's own log
  }
}

std::vector<Precision> precisions_of(const Device& device) {
  std::vector<Precision> list;
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    if (std::ranges::find(device.info().precisions, name_of(precision)) != device.info().precisions.end()) {
      list.push_back(precision);
    }
  }
  return list;
}

/// Whether the case is right without the alternative. If it is, the alternative stays disabled.
bool explains(KernelAlternatives& alternatives, const std::string& name, const std::string& fault,
              const AlternativeCase& one, const DevicePtr& device, Precision precision) {
  alternatives.disable(name, fault);
  if (fault_in(one, device, precision).empty()) return true;
  alternatives.disable(name, {});
  return false;
}

/// Without a name if the device has none that is named so; its functions then throw.
KernelAlternative named(const KernelAlternatives& alternatives, const std::string& name) {
  const std::vector<KernelAlternative> all = alternatives.list();
  const auto found = std::ranges::find(all, name, &KernelAlternative::name);
  return found == all.end() ? KernelAlternative{} : *found;
}

AlternativeResult checked(const DevicePtr& device, KernelAlternatives& alternatives, const std::string& name) {
  const std::int64_t uses = alternatives.uses(name);
  alternatives.disable(name, {});
  alternatives.prefer(name);
  AlternativeResult result{named(alternatives, name), false, {}};
  for (const AlternativeCase& one : alternative_cases()) {
    for (const Precision precision : precisions_of(*device)) {
      if (!one.concerns(result.alternative.family) || !result.alternative.reason.empty()) continue;
      const std::string fault = fault_in(one, device, precision);
      if (fault.empty()) continue;
      const bool is_explained = explains(alternatives, name, fault, one, device, precision);
      (is_explained ? result.alternative.reason : result.unexplained) = fault;
    }
  }
  result.was_taken = alternatives.uses(name) > uses;
  return result;
}

}  // namespace

AlternativeResult check_alternative(const DevicePtr& device, KernelAlternatives& alternatives,
                                    const std::string& name) {
  struct Preference {
    KernelAlternatives& alternatives;
    ~Preference() { alternatives.prefer({}); }
  };
  const Preference until_the_end{alternatives};
  const std::string reason = named(alternatives, name).reason;
  try {
    return checked(device, alternatives, name);
  } catch (...) {
    alternatives.disable(name, reason);
    throw;
  }
}

}  // namespace concord
