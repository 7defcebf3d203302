// KeyValueCache: keeps the keys and values of an attention layer on the device between runs. A text then continues
// token by token without computing earlier tokens again.
#pragma once

#include "concord/compile/variables.hpp"
#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// A cache for one attention layer. It consists of three variables under the name of the layer: "cache.keys" and
/// "cache.values" (batch, key heads, longest, width), and "cache.position" i32 [1], the number of stored tokens.
/// Programs of different lengths (a prompt, one token) that are compiled with the same Variables continue each other.
class KeyValueCache {
 public:
  /// Throws ArgumentError for sizes below 1.
  KeyValueCache(std::int64_t batch, std::int64_t key_heads, std::int64_t longest, std::int64_t width);

  struct Extended {
    Value keys, values;  // (batch, key heads, longest, width)
    Value lengths;       // i32 (batch): the number of tokens, including the new ones
  };
  /// Appends keys and values (batch, key heads, T, width) to the stored ones; the variables get the result at the end
  /// of the run. Attention to the result needs `lengths` and Causal::last. With more than `longest` tokens, attention
  /// gives NaN. Throws ShapeError if T is above `longest`, or if another size differs.
  [[nodiscard]] Extended extend(Value keys, Value values);
  /// i32 [1]: the number of tokens stored before this run, which is the position of the first new token.
  [[nodiscard]] Value position(Graph& graph);

  /// Removes all tokens: the next run starts a new text.
  void reset(Variables& variables) const;

 private:
  Value value_of(Graph& graph, const VariablePtr& variable, const char* name);
  Value written(Value held, Value fresh, Value position) const;

  Shape shape_;
  VariablePtr keys_, values_, position_;
};

}  // namespace nn
}  // namespace concord
