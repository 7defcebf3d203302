// Folders and lists of images: classes, order, what is left out, and the sentence for what is wrong.
#include <sys/stat.h>

#include "concord/core/log.hpp"
#include "concord/data/records/open.hpp"
#include "data/records/records_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

data::RecordsPtr open_folder_of(const TemporaryFolder& folder, const data::RecordOptions& options = {}) {
  return data::open_folder(folder.path(), {}, options);
}

/// Writes `text` as list.txt and opens it; the folder holds a.jpg.
data::RecordsPtr open_list_of(const TemporaryFolder& folder, std::string_view text,
                              const data::RecordOptions& options = {}) {
  write_file(folder / "list.txt", text);
  if (!std::filesystem::exists(folder / "a.jpg")) write_file(folder / "a.jpg", "A");
  return data::open_folder(folder.path(), folder / "list.txt", options);
}

std::string refused_list(std::string_view text, const data::RecordOptions& options = {}) {
  const TemporaryFolder folder;
  return message_of<FormatError>([&] { (void)open_list_of(folder, text, options); });
}

std::vector<std::string> names_in(const data::Records& records, const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (std::int64_t row = 0; row < records.size(); ++row) {
    names.push_back(records.name_of(row).substr(folder.path().string().size() + 1));
  }
  return names;
}

}  // namespace

TEST_CASE("a folder of images: the class is the first folder, the order that of bytes", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "b/z.jpg", "bz");
  write_in(folder, "b/deep/er/X.JPEG", "bx");
  write_in(folder, "a/2.png", "a2");
  write_in(folder, "a/10.PPM", "a10");
  write_in(folder, "a-b/1.bmp", "ab1");
  write_in(folder, "a/notes.txt", "no");
  write_in(folder, "a/.hidden.jpg", "no");
  write_in(folder, ".git/x.jpg", "no");
  write_in(folder, "direct.jpg", "no");
  std::filesystem::create_directories(folder / "empty");
  const WarningsHeard warnings;
  const auto records = open_folder_of(folder);
  CHECK(records->class_names == std::vector<std::string>{"a", "a-b", "b", "empty"});
  CHECK(names_in(*records, folder) ==
        std::vector<std::string>{"a-b/1.bmp", "a/10.PPM", "a/2.png", "b/deep/er/X.JPEG", "b/z.jpg"});
  CHECK(classes_of(*records) == std::vector<std::int32_t>{1, 0, 0, 2, 2});
  CHECK(records->labels[0].classes == 4);
  CHECK(content_of_row(*records, 1) == "a10");
  CHECK(content_of_row(*records, 3) == "bx");
  CHECK(warnings.one("1 files with other extensions are left out, such as a/notes.txt"));
  CHECK(warnings.one("2 hidden files and folders are left out, such as .git/"));
  CHECK(warnings.one("1 images that lie in no subfolder are left out, such as direct.jpg"));
  CHECK(warnings.one("1 of 4 classes have no sample: empty"));
  CHECK(warnings.all().size() == 4);
}

TEST_CASE("a folder of images follows links, and no circle of them twice", "[data]") {
  const TemporaryFolder folder, elsewhere;
  write_in(folder, "a/1.jpg", "one");
  write_in(elsewhere, "far.jpg", "far");
  std::filesystem::create_symlink(elsewhere / "far.jpg", folder / "a/2.jpg");
  std::filesystem::create_symlink(folder / "a/nothing", folder / "a/3.jpg");
  std::filesystem::create_symlink(folder / "a", folder / "a/again");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "b");
  REQUIRE(mkfifo((folder / "a/4.jpg").c_str(), 0600) == 0);
  const WarningsHeard warnings;
  const auto records = open_folder_of(folder);
  CHECK(names_in(*records, folder) == std::vector<std::string>{"a/1.jpg", "a/2.jpg", "b/far.jpg"});
  CHECK(content_of_row(*records, 1) == "far");
  CHECK(warnings.one("1 links that lead nowhere are left out, such as a/3.jpg"));
  CHECK(warnings.one("1 folders that a link reaches once more are left out, such as a/again/"));
}

TEST_CASE("a link in a class to the folder of all classes reads no other class", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "cat/1.jpg", "cat");
  write_in(folder, "dog/1.jpg", "dog");
  std::filesystem::create_directory_symlink(folder.path(), folder / "cat/all");
  const WarningsHeard warnings;
  const auto records = open_folder_of(folder);
  CHECK(names_in(*records, folder) == std::vector<std::string>{"cat/1.jpg", "dog/1.jpg"});
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 1});
  CHECK(warnings.one("1 folders that a link reaches once more are left out, such as cat/all/"));
}

TEST_CASE("a folder of images: names with newlines or in other encodings", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "two\nlines/a\nb.jpg", "newline");
  write_in(folder, "x/\xFF\xFE.jpg", "latin");
  const auto records = open_folder_of(folder);
  CHECK(content_of_row(*records, 0) == "newline");
  CHECK(content_of_row(*records, 1) == "latin");
  std::filesystem::remove(folder / "x/\xFF\xFE.jpg");
  CHECK(message_of<IoError>([&] { (void)content_of_row(*records, 1); }).find("x/\\xff\\xfe.jpg") != std::string::npos);
  write_in(folder, "caf\xE9/1.jpg", "");
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_folder_of(folder); }),
             contains("\"caf\\xe9\" is not UTF-8") && contains("rename it"));
}

TEST_CASE("a folder of images: what is refused, and one class", "[data]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_folder(folder / "none", {}, {}); }),
             contains("none: No such file or directory"));
  write_in(folder, "a/x.txt", "");
  write_in(folder, "lies.png", "");
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_folder(folder / "lies.png", {}, {}); }),
             contains("cannot read the folder") && contains("Not a directory"));
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_folder_of(folder); }),
             contains("no image was found") && contains(".jpg, .jpeg, .png, .bmp, .ppm, .pgm and .pnm") &&
                 contains("1 images lie directly in it"));
  write_in(folder, "a/1.jpg", "");
  const WarningsHeard warnings;
  CHECK(open_folder_of(folder)->labels[0].classes == 1);
  CHECK(warnings.one("there is one class only, a"));
}

TEST_CASE("a folder of images takes the classes of a model", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "a/1.jpg", "");
  write_in(folder, "b/1.jpg", "");
  const WarningsHeard warnings;
  const auto records = open_folder_of(folder, {.class_names = {"c", "b", "a"}});
  CHECK(classes_of(*records) == std::vector<std::int32_t>{2, 1});
  CHECK(records->labels[0].classes == 3);
  CHECK(warnings.one("1 of 3 classes have no sample: c"));
  CHECK_THAT(message_of<ArgumentError>([&] {
               (void)open_folder_of(folder, {.class_names = {"a", "c"}});
             }),
             contains("the folder \"b\" is not one of the classes of the model: a, c"));
}

TEST_CASE("classes that a model has as numbers are no names in the order of their bytes", "[data]") {
  const TemporaryFolder folder;
  for (const int number : {0, 2, 10, 11}) write_in(folder, std::to_string(number) + "/1.jpg", "");
  const data::RecordOptions twelve{.numbered_classes = 12};
  const auto records = open_folder_of(folder, twelve);
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 10, 11, 2});
  CHECK(records->labels[0].classes == 12);
  CHECK(records->class_names.empty());
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_folder_of(folder, {.numbered_classes = 11}); }),
             contains("the class \"11\" is unknown") && contains("0 to 10 as classes"));
  write_in(folder, "02/1.jpg", "");
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_folder_of(folder, twelve); }),
             contains("two classes are the number 2"));
  CHECK(classes_of(*open_list_of(folder, "a.jpg 10\na.jpg 2\n", twelve)) == std::vector<std::int32_t>{10, 2});
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_list_of(folder, "a.jpg zebra\na.jpg ant\n", twelve); }),
             contains("the class \"zebra\" is unknown") && contains("one a line from number 0 on"));

  const TemporaryFolder named;
  write_in(named, "ant/1.jpg", "");
  write_in(named, "zebra/1.jpg", "");
  write_file(named / "classes.txt", "zebra\nant\n");
  CHECK(classes_of(*open_folder_of(named, {.numbered_classes = 2})) == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("masks lie beside a folder of images", "[data]") {
  const TemporaryFolder folder, masks;
  write_in(folder, "1.jpg", "");
  write_in(folder, "x/2.tar.jpg", "");
  write_in(masks, "1.png", "mask1");
  const auto records = open_folder_of(folder, {.masks = masks.path()});
  REQUIRE(records->size() == 2);
  CHECK(records->has_mask());
  CHECK(classes_of(*records) == std::vector<std::int32_t>{0, 0});
  std::vector<std::byte> scratch;
  CHECK(text_of(records->read_mask(0, scratch).bytes) == "mask1");
  CHECK_THAT(message_of<IoError>([&] { (void)records->read_mask(1, scratch); }),
             contains("x/2.tar.jpg: there is no mask: cannot open") && contains("x/2.tar.png: No such file"));
  write_file(folder / "list", "x/2.tar.jpg\n1.jpg\n");
  const auto listed = data::open_folder(folder.path(), folder / "list", {.masks = masks.path()});
  CHECK(text_of(listed->read_mask(1, scratch).bytes) == "mask1");
  const auto without = data::open_folder(folder.path(), {}, {});
  CHECK_FALSE(without->has_mask());
  CHECK_THAT(message_of<ArgumentError>([&] { (void)without->read_mask(0, scratch); }), contains("has no mask"));
}

TEST_CASE("a list of images: classes by number, by name, and targets", "[data]") {
  const TemporaryFolder folder;
  write_in(folder, "with blank/b.jpg", "B");
  const auto numbers = open_list_of(folder,
                                    "\xEF\xBB\xBF"
                                    "a.jpg 2\r\n\r\n  \"with blank/b.jpg\"   0\r\n");
  CHECK(classes_of(*numbers) == std::vector<std::int32_t>{2, 0});
  CHECK(numbers->labels[0].classes == 3);
  CHECK(numbers->class_names.empty());
  CHECK(content_of_row(*numbers, 1) == "B");

  const auto words = open_list_of(folder, "a.jpg\tblue whale\nwith blank/b.jpg\tant");
  CHECK(words->class_names == std::vector<std::string>{"ant", "blue whale"});
  CHECK(classes_of(*words) == std::vector<std::int32_t>{1, 0});
  CHECK(content_of_row(*words, 1) == "B");

  const auto several = open_list_of(folder, "a.jpg 1 -2 n\na.jpg 0 3.5 m\na.jpg 1 1e-3 n\n");
  REQUIRE(several->labels.size() == 3);
  CHECK(several->labels[0].name.empty());
  CHECK(several->labels[1].name == "label2");
  CHECK(several->labels[2].name == "label3");
  const auto targets = several->labels[1].values.values<float>();
  CHECK(std::vector<float>(targets.begin(), targets.end()) == std::vector<float>{-2, 3.5f, 1e-3f});
  CHECK(several->labels[1].values.shape() == Shape{3, 1});
  CHECK(several->labels[2].classes == 2);

  const auto tiny = open_list_of(folder, "a.jpg 0.5\na.jpg 1e-50\na.jpg -1e-400\n");
  CHECK(tiny->labels[0].values.values<float>()[1] == 0);
  CHECK(tiny->labels[0].values.values<float>()[2] == 0);

  const auto quote = open_list_of(folder, "a.jpg \"a \"\"b\"\"\"\na.jpg c\n");
  CHECK(quote->class_names == std::vector<std::string>{"a \"b\"", "c"});

  // "7" is a name here.
  const auto known = open_list_of(folder, "a.jpg 7\na.jpg 5\n", {.class_names = {"5", "6", "7"}});
  CHECK(classes_of(*known) == std::vector<std::int32_t>{2, 0});
  const auto indices = open_list_of(folder, "a.jpg 2\n", {.class_names = {"x", "y", "z"}});
  CHECK(classes_of(*indices) == std::vector<std::int32_t>{2});
  CHECK(indices->class_names.size() == 3);
}

TEST_CASE("a list of images: every bad line is named", "[data]") {
  CHECK_THAT(refused_list("a.jpg 1\na.jpg 1 2\n"), contains("list.txt, line 2: has 2 labels, line 1 has 1"));
  CHECK_THAT(refused_list("a.jpg 1\n\nmy photo.jpg 1\n"), contains("line 3") && contains("quotes"));
  CHECK_THAT(refused_list("a.jpg\n"), contains("line 1: there is no label"));
  CHECK_THAT(refused_list(" \n\r\n"), contains("the list has no line"));
  CHECK_THAT(refused_list("\"a.jpg 1\n"), contains("line 1: the closing quote is missing"));
  CHECK_THAT(refused_list("\"a.jpg\"x 1\n"), contains("right after the closing quote"));
  CHECK_THAT(refused_list("\"\" 1\n"), contains("the path is empty"));
  CHECK_THAT(refused_list("a.jpg \"\"\n"), contains("the label is empty"));
  CHECK_THAT(refused_list("a.jpg 1\na.jpg 1x\n"),
             contains("line 2: the label \"1x\" is a word, but \"1\" is a whole number ("));
  CHECK_THAT(refused_list("a.jpg x\na.jpg 1\n"), contains("line 2: the label \"1\" is a whole number"));
  CHECK_THAT(refused_list("a.jpg 1\na.jpg 0\na.jpg -1\n"), contains("line 3: the class -1 is negative"));
  CHECK_THAT(refused_list("a.jpg 2147483647\n"), contains("too large"));
  CHECK_THAT(refused_list("a.jpg 99999999999999999999\n"), contains("too large"));
  CHECK_THAT(refused_list("a.jpg 1.5\na.jpg nan\n"), contains("line 2: the target nan is not finite"));
  CHECK_THAT(refused_list("a.jpg 1.5\na.jpg 1e50\n"), contains("line 2: the target 1e50 is not finite"));
  CHECK_THAT(refused_list("a.jpg 1.5\na.jpg 1,5\n"), contains("line 2: the label \"1,5\" is a word"));
  CHECK_THAT(refused_list(std::string_view("a\0.\0j\0", 6)), contains("has a zero byte"));
  const TemporaryFolder folder;
  CHECK_THAT(message_of<ArgumentError>([&] { (void)open_list_of(folder, "a.jpg caf\xE9\n"); }),
             contains("line 1: the label \"caf\\xe9\" is not UTF-8"));
  CHECK_THAT(message_of<ArgumentError>([&] {
               (void)open_list_of(folder, "a.jpg 3\n", {.class_names = {"a", "b"}});
             }),
             contains("line 1: the class 3 is not one of the 2 classes"));
  CHECK_THAT(message_of<ArgumentError>([&] {
               (void)open_list_of(folder, "a.jpg c\n", {.class_names = {"a", "b"}});
             }),
             contains("line 1: \"c\" is not one of the classes of the model: a, b"));
  CHECK_THAT(message_of<IoError>([&] { (void)open_list_of(folder, "x/a.jpg 0\nx/b.jpg 1\n"); }),
             contains("there is no file x/a.jpg, nor those of the next lines"));
  CHECK_THAT(message_of<IoError>([&] { (void)data::open_folder(folder.path(), folder / "no.txt", {}); }),
             contains("no.txt: No such file"));
}
