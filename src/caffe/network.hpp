// Networks of Caffe: a prototxt as a module. weights::load fills it from the .caffemodel.
#pragma once

#include <filesystem>
#include <memory>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace caffe {

/// Reads the description of a network for inference. Its inputs are those of the file ("data"), its outputs the blobs
/// that no layer reads, by name. Parameters have the names of the layers and of weights::File: "conv1.weight". Layers:
/// Input, Convolution, Deconvolution, InnerProduct, Pooling, LRN, BatchNorm, Scale, Bias, ReLU, PReLU, Sigmoid, TanH,
/// Power, Eltwise, Concat, Flatten, Softmax, Dropout, Split; layers of the training phase, losses and accuracies are
/// left out. Pooling rounds sizes up, as in Caffe.
///
/// Throws IoError, FormatError with the file and the byte, and NotSupported that lists all layers of other types.
[[nodiscard]] std::shared_ptr<nn::Module> load_network(const std::filesystem::path& prototxt);

}  // namespace caffe
}  // namespace concord
