// KerasNames: what the numbered variables of a Keras 3 archive are called, from its config.json. Internal to the room.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace concord::weights {

class KerasNames {
 public:
  /// `config` is the content of config.json. Throws FormatError with `where`.
  KerasNames(std::string_view config, const std::string& where);

  /// "layers/conv2d_1/vars/0" → "head.kernel" for a layer that is named head. What is not known keeps its path, with
  /// dots.
  [[nodiscard]] std::string name_of(std::string_view path) const;

 private:
  struct Layer {
    std::string name;                    // with those of the models around it
    std::vector<std::string> variables;  // of vars/0, vars/1, …
  };
  std::map<std::string, Layer, std::less<>> layers_;  // by path: "layers/conv2d_1"
};

}  // namespace concord::weights
