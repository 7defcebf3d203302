// Products of tokens in one launch with others, or with a formula of their result: for Device::group_kind,
// prepare_group, groups_products and prepare_appended.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "concord/device/device.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/operator_group.hpp"

namespace concord::opencl {

/// Products of the same sizes that the copy engine reads where their operands lie (place_product), such as those of
/// queries, keys and values; not those that have many tiles for each compute unit.
[[nodiscard]] std::optional<GroupKind> kind_of_product(Context& context, const KernelRequest& request);
/// Null where the tiles of all of them do not fill the device better than those of each.
[[nodiscard]] std::unique_ptr<Kernel> prepare_grouped_products(Context& context,
                                                               std::span<const KernelRequest> requests);

/// Device::groups_products: gradients of weights that are few tiles for the compute units.
[[nodiscard]] bool groups_products(Context& context, std::span<const TensorSpec> inputs, Precision precision);
/// One kernel for all products of a group; nothing where the copy engine does not take them, or the tiles of all do not
/// fill the device better than those of each.
[[nodiscard]] std::optional<PreparedKernel> prepare_product_group(Context& context, const ops::OperatorGroup& group,
                                                                  const KernelRequest& request);

/// A kernel of an ops::Appended whose base is such a product, with or without an epilogue, of a result in 16 bits. Null
/// where it is none.
[[nodiscard]] std::unique_ptr<Kernel> prepare_appended_product(Context& context, const KernelRequest& request);

}  // namespace concord::opencl
