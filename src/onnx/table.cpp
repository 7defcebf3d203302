// Table: see table.hpp.
#include "concord/onnx/table.hpp"

#include <algorithm>

namespace concord::onnx {

const Table& Table::all() {
  static const Table table = [] {
    Table made;
    for (auto* const add :
         {add_activations, add_arithmetic, add_comparisons, add_constants,  add_control,  add_convolutions,
          add_detection,   add_functions,  add_indexing,    add_losses,     add_norms,    add_pools,
          add_products,    add_random,     add_recurrent,   add_reductions, add_resizing, add_scatters,
          add_selections,  add_signals,    add_slices,      add_softmaxes,  add_training, add_views}) {
      add(made);
    }
    return made;
  }();
  return table;
}

void Table::add(const std::string& domain, const std::string& name, OperatorEntry entry) {
  std::vector<OperatorEntry>& versions = entries_[{domain, name}];
  const auto later = std::ranges::upper_bound(versions, entry.since, {}, &OperatorEntry::since);
  versions.insert(later, std::move(entry));
}

const OperatorEntry* Table::find(std::string_view domain, std::string_view name, std::int64_t opset) const {
  const auto found = entries_.find(std::pair(std::string(domain), std::string(name)));
  if (found == entries_.end()) return nullptr;
  const auto later = std::ranges::upper_bound(found->second, opset, {}, &OperatorEntry::since);
  return later == found->second.begin() ? nullptr : &*std::prev(later);
}

std::map<std::pair<std::string, std::string>, std::int64_t> Table::operators() const {
  std::map<std::pair<std::string, std::string>, std::int64_t> all;
  for (const auto& [key, versions] : entries_) all.emplace(key, versions.front().since);
  return all;
}

}  // namespace concord::onnx
