// The cases of one variant, each with it and, where something is wrong, without.
#include "concord/compare/cases/variant_check.hpp"

#include <algorithm>
#include <vector>

#include "concord/compare/cases/kernel_check.hpp"
#include "concord/compare/cases/variant_cases.hpp"

namespace concord {
namespace {

/// What is wrong with a case as the device now computes it; empty when nothing is.
std::string fault_in(const VariantCase& one, const DevicePtr& device, Precision precision) {
  const VariantGraph made(one);
  try {
    const auto fault = find_fault(made.graph, made.outputs, made.inputs, device, precision);
    return fault ? fault->str() : std::string();
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

/// Whether the variant explained what was wrong with the case; it stays marked then.
bool explains(Variants& variants, const std::string& name, const std::string& fault, const VariantCase& one,
              const DevicePtr& device, Precision precision) {
  variants.mark(name, fault);
  if (fault_in(one, device, precision).empty()) return true;
  variants.mark(name, {});
  return false;
}

}  // namespace

VariantResult check_variant(const DevicePtr& device, Variants& variants, const std::string& name) {
  struct Preference {
    Variants& variants;
    ~Preference() { variants.prefer({}); }
  };
  const std::int64_t uses = variants.uses(name);
  variants.mark(name, {});
  variants.prefer(name);
  const Preference until_the_end{variants};
  const std::vector<Variant> all = variants.list();
  VariantResult result{*std::ranges::find(all, name, &Variant::name), false, {}};
  for (const VariantCase& one : variant_cases()) {
    for (const Precision precision : precisions_of(*device)) {
      if (!one.concerns(result.variant.family) || !result.variant.quirk.empty()) continue;
      const std::string fault = fault_in(one, device, precision);
      if (fault.empty()) continue;
      const bool is_explained = explains(variants, name, fault, one, device, precision);
      (is_explained ? result.variant.quirk : result.unexplained) = fault;
    }
  }
  result.was_taken = variants.uses(name) > uses;
  return result;
}

}  // namespace concord
