// PyTorch's names for what its files hold.
#include "concord/weights/torch_globals.hpp"

#include <algorithm>

namespace concord::weights {
namespace {

struct NamedElement {
  std::string_view global, element;
};

constexpr NamedElement kStorages[] = {
    {"torch FloatStorage", "F32"},  {"torch HalfStorage", "F16"}, {"torch BFloat16Storage", "BF16"},
    {"torch DoubleStorage", "F64"}, {"torch LongStorage", "I64"}, {"torch IntStorage", "I32"},
    {"torch ShortStorage", "I16"},  {"torch CharStorage", "I8"},  {"torch ByteStorage", "U8"},
    {"torch BoolStorage", "BOOL"},
};

constexpr NamedElement kDtypes[] = {
    {"torch float32", "F32"},
    {"torch float16", "F16"},
    {"torch bfloat16", "BF16"},
    {"torch float64", "F64"},
    {"torch int64", "I64"},
    {"torch int32", "I32"},
    {"torch int16", "I16"},
    {"torch int8", "I8"},
    {"torch uint8", "U8"},
    {"torch bool", "BOOL"},
    {"torch float8_e4m3fn", "F8_E4M3"},
    {"torch float8_e5m2", "F8_E5M2"},
    {"torch uint16", "U16"},
    {"torch uint32", "U32"},
    {"torch uint64", "U64"},
};

constexpr std::string_view kTensors[] = {"torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2",
                                         "torch._utils _rebuild_tensor_v3"};

constexpr std::string_view kBytes[] = {"torch UntypedStorage", "torch.storage UntypedStorage"};

constexpr std::string_view kOthers[] = {"collections OrderedDict", "torch._utils _rebuild_parameter", "torch Size",
                                        "torch device"};

}  // namespace

bool is_tensor_global(std::string_view global) { return std::ranges::count(kTensors, global) > 0; }

std::optional<const io::Element*> element_of_storage(std::string_view global) {
  if (std::ranges::count(kBytes, global) > 0) return nullptr;
  const auto* const found = std::ranges::find(kStorages, global, &NamedElement::global);
  if (found == std::end(kStorages)) return std::nullopt;
  return io::find_element(found->element);
}

const io::Element* element_of_dtype(std::string_view global) {
  const auto* const found = std::ranges::find(kDtypes, global, &NamedElement::global);
  return found == std::end(kDtypes) ? nullptr : io::find_element(found->element);
}

bool is_allowed_global(std::string_view global) {
  return is_tensor_global(global) || std::ranges::count(kOthers, global) > 0 || element_of_storage(global) ||
         element_of_dtype(global) != nullptr;
}

}  // namespace concord::weights
