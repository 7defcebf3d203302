// Tensors on the command line: "NAME=FILE" for inputs and outputs of a network.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// The part before the first '=' and the part behind it; without '=' the first is empty.
[[nodiscard]] std::pair<std::string, std::string> name_and_value(const std::string& text);

/// Reads tensors that are given as "NAME=FILE.npy", "NAME=random:2x3x48x48" or "FILE.safetensors", which has names of
/// its own. "FILE.npy" alone gets the only name of `names`. `types` are those of random numbers. Throws ArgumentError
/// for a name twice, an unknown kind of file, and a file without a name if there are several inputs.
[[nodiscard]] NamedTensors read_tensors(const std::vector<std::string>& texts, const std::vector<std::string>& names,
                                        const std::map<std::string, DType>& types);

/// All numbers of a tensor of f32, i32 or u8. Throws NotSupported for another type.
[[nodiscard]] std::vector<double> numbers_of(const Tensor& tensor);

/// Where outputs go, given as "NAME=FILE.npy", "FILE.npy" for a network of one output, or "FILE.safetensors" for all.
class TensorTargets {
 public:
  /// Throws ArgumentError for a file of another kind or named twice, and IoError if one cannot be written.
  explicit TensorTargets(const std::vector<std::string>& texts);
  /// Writes the outputs; `types` are those of .npy files, where not the tensor's own. Throws ArgumentError for a name
  /// that is no output.
  void write(const NamedTensors& outputs, const std::map<std::string, io::NpyType>& types) const;
  [[nodiscard]] bool empty() const { return files_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> files_;  // name of an output, or empty; file
};

}  // namespace concord::cli
