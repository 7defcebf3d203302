// Names from outside, as a terminal or a file may have them.
#include "concord/core/utf8.hpp"

#include "concord_test.hpp"

using namespace concord;

TEST_CASE("control characters of a name are escaped for a terminal", "[core]") {
  CHECK(printable("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\x7f");
  CHECK(printable("\xC2\x9B"
                  "31m") == "\\xc2\\x9b31m");  // C1: a terminal may take it for ESC [
  CHECK(printable("caf\xC3\xA9 \xFF") == "caf\xC3\xA9 \\xff");
  CHECK(printable(std::string(1000, 'a')).size() < 400);
  CHECK(escaped(std::string(1000, 'a')).size() == 1000);
  CHECK(escaped("a\n\tb\r\x1b", "\n\t") == "a\n\tb\\x0d\\x1b");
  CHECK(escaped("a\n\tb") == "a\\x0a\\x09b");
}

TEST_CASE("a name that is not UTF-8 becomes UTF-8 for a file, and all else stays", "[core]") {
  CHECK(in_utf8("a\xFF\nb\x1b,\xC3\xA9") == "a\\xff\nb\x1b,\xC3\xA9");
  CHECK(is_utf8(in_utf8("\xED\xA0\x80\xC3")));
}
