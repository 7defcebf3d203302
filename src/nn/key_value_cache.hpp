// KeyValueCache: the keys and values that an attention layer has seen, held on the device between runs, so that a text
// is continued token by token without computing what came before. Used by the attention layers.
#pragma once

#include "concord/compile/variables.hpp"
#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// Three variables under the name of the layer that uses the cache: "cache.keys" and "cache.values" (batch, key heads,
/// longest, width), "cache.position" i32 [1], the tokens held. Programs of several lengths (a prompt, one token)
/// compiled with the same Variables continue each other. A cache is one layer's.
class KeyValueCache {
 public:
  /// Throws ArgumentError for sizes below 1.
  KeyValueCache(std::int64_t batch, std::int64_t key_heads, std::int64_t longest, std::int64_t width);

  struct Extended {
    Value keys, values;  // (batch, key heads, longest, width)
    Value lengths;       // i32 (batch): the tokens held, the new ones among them
  };
  /// Writes keys and values (batch, key heads, T, width) behind those held; the variables take the result at the end of
  /// the run. Attention to it needs `lengths` and Causal::last. Beyond `longest` tokens the lengths are outside the
  /// keys, so that attention gives NaN. Throws ShapeError when T is above `longest` or another size differs.
  [[nodiscard]] Extended extend(Value keys, Value values);
  /// i32 [1]: the tokens held before this run, which is the position of the first new one.
  [[nodiscard]] Value position(Graph& graph);

  /// Forgets the tokens held: the next run begins a new text.
  void reset(Variables& variables) const;

 private:
  Value value_of(Graph& graph, const VariablePtr& variable, const char* name);
  Value written(Value held, Value fresh, Value position) const;

  Shape shape_;
  VariablePtr keys_, values_, position_;
};

}  // namespace nn
}  // namespace concord
