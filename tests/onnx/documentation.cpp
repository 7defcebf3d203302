// The list of operators in docs/guide/onnx.md is that of the table.
#include <algorithm>
#include <set>

#include "concord/onnx/table.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("the guide lists the operators of ONNX that there are", "[onnx]") {
  const std::string page = content_of(folder_of_tests() / "../docs/guide/onnx.md");
  std::size_t at = page.find("<!-- operators -->");
  REQUIRE(at != std::string::npos);
  at = page.find('\n', at);
  std::string list = page.substr(at, page.find("<!-- end -->", at) - at);
  std::ranges::replace(list, '\n', ' ');
  std::set<std::string> listed;
  std::string name;
  for (const char c : list + ",") {
    if (c == ',') {
      listed.insert(name);
      name.clear();
    } else if (c != ' ' && c != '.') {
      name += c;
    }
  }
  std::set<std::string> known;
  std::string text;
  for (const auto& [key, since] : onnx::Table::all().operators()) {
    known.insert(key.second);
    text += (text.empty() ? "" : ", ") + key.second;
  }
  INFO("the table has: " << text);
  CHECK(listed == known);
}
