// KerasNames: what the numbered variables of a file of Keras 3 are called, from the config.json of an archive, or from
// the groups of a .weights.h5. Internal to the room.
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

  /// `paths` are those of the data sets; `group_names` has the names of layers by the paths of their variables
  /// ("layers/conv2d_1/vars"). A layer without one has the name of its group, as the first model that a program makes
  /// names its layers. A norm with one of its two variables keeps their numbers: nothing says which one it is.
  KerasNames(const std::vector<std::string>& paths, const std::map<std::string, std::string>& group_names);

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
