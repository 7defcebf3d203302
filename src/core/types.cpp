// Element types: their sizes and names.
#include "concord/core/types.hpp"

#include "concord/core/error.hpp"

namespace concord {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u8: return 1;
  }
  throw Error("unknown element type");
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  throw Error("unknown element type");
}

}  // namespace concord
