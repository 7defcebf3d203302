// Batch normalisation of images in channels-last layout, each way in one launch whose groups keep the image in local
// memory (cl_kernels/ops/batch_norm_resident.cl).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// One way of the normalisation.
struct ResidentPass {
  std::string name, function;
  /// How many images it reads, which are kept.
  std::int64_t images;
  /// Its operands, before the memory that the groups share.
  std::vector<Argument> operands;
  float epsilon;
};

/// The kernel. Null where the device or the alternatives do not take it.
[[nodiscard]] std::unique_ptr<Kernel> resident_batch_norm(Context& context, const ChannelsLast& image,
                                                          ResidentPass pass, const EpilogueText& epilogue);

}  // namespace concord::opencl
