// Patterns of tensor names.
#include "concord/core/name_pattern.hpp"

#include "files.hpp"

using namespace concord;

namespace {

using Texts = std::vector<std::string>;

std::optional<Texts> parts_of(std::string_view pattern, std::string_view name) {
  const auto parts = match_name(pattern, name);
  if (!parts) return std::nullopt;
  return Texts(parts->begin(), parts->end());
}

}  // namespace

TEST_CASE("a pattern matches whole names and gives the parts", "[core]") {
  CHECK(parts_of("fc.weight", "fc.weight") == Texts{});
  CHECK_FALSE(parts_of("fc.weight", "fc.weights"));
  CHECK_FALSE(parts_of("fc.weight", "a.fc.weight"));
  CHECK(parts_of("blocks.#.norm#.*", "blocks.10.norm2.weight") == Texts{"10", "2", "weight"});
  CHECK_FALSE(parts_of("blocks.#.*", "blocks.x.weight"));
  CHECK(parts_of("*.kernel", "a.kernel.kernel") == Texts{"a.kernel"});
  CHECK(parts_of("*.b.*", "a.b.c.b.d") == Texts{"a", "c.b.d"});
  CHECK(parts_of("*#", "ab12") == Texts{"ab", "12"});
  CHECK(parts_of("*", "") == Texts{""});
  CHECK(parts_of("**", "ab") == Texts{"", "ab"});
  CHECK_FALSE(parts_of("", "a"));
  CHECK_FALSE(parts_of("*a*b", "bbbb"));
  CHECK_FALSE(parts_of("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST_CASE("parts go into another name", "[core]") {
  CHECK(with_parts("layer$1.$2", {"3", "bias"}) == "layer3.bias");
  CHECK(with_parts("a$", {}) == "a$");
  CHECK_THAT(test::message_of<ArgumentError>([] { (void)with_parts("$2", {"a"}); }), test::contains("$2"));
}
