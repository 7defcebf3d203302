// Sequential: modules called one after the other.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/nn/module.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// Calls its children in order. They are named "0", "1", … as in PyTorch, or as given, as in PyTorch's Sequential of an
/// OrderedDict. A copy shares the layers. Throws ArgumentError for a name that is empty, not UTF-8 or already used.
class Sequential : public Module {
 public:
  Sequential() = default;
  template <class... Modules>
  requires(sizeof...(Modules) > 0 && (std::derived_from<std::remove_cvref_t<Modules>, Module> && ...) &&
           !(sizeof...(Modules) == 1 && (std::same_as<std::remove_cvref_t<Modules>, Sequential> &&
                                         ...))) explicit Sequential(Modules&&... modules) {
    (push(std::forward<Modules>(modules)), ...);
  }

  /// Appends a module.
  template <std::derived_from<Module> M>
  Sequential& push(M module) {
    return push(std::to_string(modules_.size()), std::move(module));
  }
  template <std::derived_from<Module> M>
  Sequential& push(std::string name, M module) {
    check_name(name);
    modules_.push_back({std::move(name), std::make_shared<M>(std::move(module))});
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return modules_.size(); }
  [[nodiscard]] Value forward(Value x) override;
  [[nodiscard]] Children children() override;

 private:
  struct Named {
    std::string name;
    std::shared_ptr<Module> module;
  };
  void check_name(std::string_view name) const;

  std::vector<Named> modules_;
};

}  // namespace nn
}  // namespace concord
