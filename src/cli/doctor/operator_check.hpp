// Whether the kernels of a device compute what the host does: a few small networks, most of the zoo, that together
// have all operators the zoo trains with. Used by `concord doctor`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "concord/compare/compare.hpp"
#include "concord/models/zoo.hpp"

namespace concord::cli {

struct OperatorCheck {
  const models::Model* model = nullptr;
  std::vector<std::string> operators;  // that no earlier check of the list has
};

/// The networks to check with, each at its least size, those first that have most operators for the time
/// they take.
[[nodiscard]] std::vector<OperatorCheck> operator_checks();

/// Runs one training step of `model` on these devices and compares it with the host in double precision, or, if that
/// has no reference, with the first device.
[[nodiscard]] Comparison check_operators(const models::Model& model, std::span<const DevicePtr> devices);

}  // namespace concord::cli
