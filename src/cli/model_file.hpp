// What MODEL names on the command line: a network of the zoo, or a file that holds one. And what any of them is fed
// with and trained for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "concord/concord.hpp"
#include "concord/train/source.hpp"

namespace concord::cli {

/// Returns the network of the zoo with this name, or the network in the file of this path, which ends in ".onnx". The
/// result lives as long as the process. Throws the errors of models::find and onnx::load.
[[nodiscard]] const models::Model& find_model(std::string_view text);
/// Whether it is the name of a network, with sizes or without, or of an ONNX file.
[[nodiscard]] bool names_model(std::string_view text);
/// Makes a new network. The number of classes in a file cannot be changed.
[[nodiscard]] std::shared_ptr<nn::Module> make_network(const models::Model& model, const models::Variant& variant);
/// For a network of the zoo without --weights.
inline constexpr const char* kRandomWeights = "the weights are random numbers; --weights FILE takes those of a file";
/// The network in the file; null for a network of the zoo.
[[nodiscard]] const onnx::Network* file_of(const models::Model& model);
/// Inputs or outputs of a file, for messages: "dense: float [N, 4], softmax: float [N, 2]".
[[nodiscard]] std::string text_of_declarations(const std::vector<onnx::Declaration>& all);

/// Whether the shape of one sample of the first input is known.
[[nodiscard]] bool has_published_sample(const models::Model& model);
/// That shape. Throws ArgumentError if a file leaves it open.
[[nodiscard]] Shape published_sample(const models::Model& model);
/// The same for images (C, H, W), for which a file may leave height and width open: `side` is both, 0 if it is not
/// known. Throws ArgumentError if the input is none of images or if the sizes are not known.
[[nodiscard]] Shape published_image(const models::Model& model, std::int64_t side);
/// The number of samples that a file fixes for each batch; 0: any.
[[nodiscard]] std::int64_t fixed_batch(const models::Model& model);
/// Whether a file's network for classes ends with a softmax for these samples: its outputs are probabilities, not
/// logits. Throws as tracing the network.
[[nodiscard]] bool gives_probabilities(const models::Model& model, nn::Module& network, const Samples& samples);
/// The columns of batches for this network: its inputs, the first of which has the shape `sample`, and the targets of
/// the objective.
[[nodiscard]] train::Source source_of(const models::Model& model, nn::Module& network, const Shape& sample);
/// The number of trainable parameters.
[[nodiscard]] std::int64_t parameters_of(const models::Model& model, nn::Module& network, const train::Source& source);
/// What the network is trained for. A file with one output (N, classes) is trained for classes; another is trained to
/// reproduce numbers at each of its outputs of type f32, by their squared error.
[[nodiscard]] Objective objective_of(const models::Model& model, const models::Variant& variant = {},
                                     const loss::CrossEntropy& cross_entropy = {});

}  // namespace concord::cli
