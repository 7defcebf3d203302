// What an ONNX file declares of its inputs and outputs, and what of a file Concord does not support.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/onnx/element_type.hpp"

namespace CONCORD_PUBLIC concord {
namespace onnx {

/// What a file declares of an input or an output.
struct Declaration {
  struct Size {
    std::int64_t size = -1;  // -1: free
    std::string name = {};   // of a free size; may be empty
  };
  std::string name;
  ElementType type = ElementType::undefined;
  std::optional<std::vector<Size>> shape = {};  // empty: any rank
  /// "float [N, 3, 224, 224]"
  [[nodiscard]] std::string str() const;
};

/// Something that a file asks for and Concord does not support.
struct Missing {
  std::string node;       // its name, else that of its first output; empty if it is no node
  std::string operation;  // "Loop", "ai.onnx.ml.Normalizer"
  std::string reason;
  bool in_branch = false;  // in a branch of an If: an error only if that branch is taken
};

}  // namespace onnx
}  // namespace concord
