// classes.txt: names beside shards, in databases and folders.
#include "concord/data/records/class_file.hpp"

#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("a file of classes comes back, and a damaged one is refused with its line", "[data]") {
  const TemporaryFolder folder;
  CHECK(data::read_class_file(folder.path()).empty());
  const std::vector<std::string> names{"T-shirt/top", "7", "möwe "};
  write_in(folder, "classes.txt", data::class_file_text(names));
  CHECK(data::read_class_file(folder.path()) == names);
  write_in(folder, "classes.txt", "\xEF\xBB\xBFone\r\ntwo");
  CHECK(data::read_class_file(folder.path()) == std::vector<std::string>{"one", "two"});
  const auto refused = [&](const char* content) {
    write_in(folder, "classes.txt", content);
    return message_of<FormatError>([&] { static_cast<void>(data::read_class_file(folder.path())); });
  };
  CHECK(contains(refused("a\n\nb\n"), "classes.txt, line 2: the name of a class is empty"));
  CHECK(contains(refused("a\n\xFF\n"), "line 2: \"\\xff\" is no UTF-8"));
  CHECK(contains(refused("a\nb\na\n"), "the class \"a\" is there twice"));
  CHECK(contains(message_of<ArgumentError>([] { static_cast<void>(data::class_file_text({"a\nb"})); }),
                 "has a line end"));
}

TEST_CASE("classes become names of folders that differ", "[data]") {
  CHECK(data::class_folders({"a", "T-shirt/top", "T-shirt_top", ".git", "x\ty", "x_y"}) ==
        std::vector<std::string>{"a", "T-shirt_top_2", "T-shirt_top", "_git", "x_y_2", "x_y"});
}

TEST_CASE("stored indices get names, or the indices of a model", "[data]") {
  const WarningsHeard warnings;
  Column labels = data::class_column({0, 2, 2}, 3);
  CHECK(data::name_classes(labels, {"a", "b", "c", "d"}, {}, "set") == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(labels.classes == 4);
  labels = data::class_column({0, 2, 2}, 3);
  CHECK(data::name_classes(labels, {"a", "b", "c"}, {"c", "x", "a"}, "set") == std::vector<std::string>{"c", "x", "a"});
  CHECK(labels.values.values<std::int32_t>()[0] == 2);
  CHECK(labels.values.values<std::int32_t>()[1] == 0);
  Column more = data::class_column({0, 4}, 5);
  CHECK(data::name_classes(more, {"a"}, {}, "set").empty());
  CHECK(warnings.one("set: classes.txt is not used: it has 1 names, but the labels are up to 4"));
}
