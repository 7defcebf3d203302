// Patterns of names of shards.
#include "concord/data/records/shard_names.hpp"

#include "concord_test.hpp"
#include "data/records/records_test.hpp"

using namespace concord;

TEST_CASE("names of shards expand as in a shell", "[data]") {
  using data::expand_braces;
  CHECK(expand_braces("a.tar") == std::vector<std::string>{"a.tar"});
  CHECK(expand_braces("t-{008..011}.tar") ==
        std::vector<std::string>{"t-008.tar", "t-009.tar", "t-010.tar", "t-011.tar"});
  CHECK(expand_braces("{9..11}") == std::vector<std::string>{"9", "10", "11"});
  CHECK(expand_braces("{2..0}") == std::vector<std::string>{"2", "1", "0"});
  CHECK(expand_braces("{a,b}{0..1}") == std::vector<std::string>{"a0", "a1", "b0", "b1"});
  CHECK(expand_braces("{a,b{1,2}c,}x") == std::vector<std::string>{"ax", "b1cx", "b2cx", "x"});
  CHECK(expand_braces("{a}..{b..c}") == std::vector<std::string>{"{a}..{b..c}"});
  CHECK(expand_braces("train-{000000..000146}.tar").size() == 147);
  CHECK(expand_braces("{0..99999}").size() == 100'000);
  for (const char* const bad :
       {"", "a{b", "a}b", "{a,{b}", "{0..100000}", "{0..999}{0..999}", "{0..18446744073709551615}"}) {
    CHECK_THROWS_AS(expand_braces(bad), ArgumentError);
  }
  CHECK_THROWS_AS(expand_braces(std::string(100, '{') + std::string(100, '}')), ArgumentError);
}
