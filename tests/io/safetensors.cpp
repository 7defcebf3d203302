// safetensors: round trips, a recorded file of the Python package, every kind of damage, a write that fails.
#include "concord/io/safetensors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

std::string with_header(const std::string& header, const std::string& data = {}) {
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return text + header + data;
}

io::Safetensors read(const std::string& content) {
  static const TemporaryFolder folder;  // one for all the thousands of damaged files
  write_file(folder / "file.safetensors", content);
  return io::read_safetensors(folder / "file.safetensors");
}

std::string refusal(const std::string& content) {
  return message_of<FormatError>([&] { (void)read(content); });
}

// The header's entry of a tensor "w".
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("w":{{"dtype":{},"shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

std::string object(const std::string& entries) { return fmt::format("{{{}}}", entries); }

io::TensorMap examples() {
  io::TensorMap tensors;
  tensors["weights"] = Tensor::of<float>({2, 3}, std::vector<float>{1, -2, 3, 4, 5.5f, 1e-30f});
  tensors["bytes"] = Tensor::of<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 127, 255});
  tensors["count"] = Tensor::of<std::int32_t>({}, std::vector<std::int32_t>{-7});
  tensors["half"] = Tensor(DType::f16, {2, 2});
  tensors["brain"] = Tensor(DType::bf16, {5});
  tensors["empty"] = Tensor(DType::f32, {3, 0});
  tensors["na\"me \xc3\xa4"] = Tensor(DType::u8, {1});
  return tensors;
}

void check_equal(const io::TensorMap& a, const io::TensorMap& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) {
    INFO(name);
    REQUIRE(b.contains(name));
    CHECK(tensor.spec() == b.at(name).spec());
    CHECK(std::ranges::equal(tensor.bytes(), b.at(name).bytes()));
  }
}

}  // namespace

TEST_CASE("safetensors come back as they were written", "[io]") {
  const TemporaryFolder folder;
  const io::TensorMap tensors = examples();
  io::write_safetensors(folder / "a", tensors, {{"key", "value \"quoted\""}, {"other", ""}});
  const io::Safetensors file = io::read_safetensors(folder / "a");
  check_equal(file.tensors, tensors);
  CHECK(file.metadata == std::map<std::string, std::string>{{"key", "value \"quoted\""}, {"other", ""}});
  io::write_safetensors(folder / "b", file.tensors, file.metadata);
  CHECK(content_of(folder / "a") == content_of(folder / "b"));

  io::write_safetensors(folder / "a", {});  // replaced, and empty is a file too
  CHECK(io::read_safetensors(folder / "a").tensors.empty());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);  // no temporary file is left
}

TEST_CASE("a safetensors file has the header and the data of the format", "[io]") {
  const TemporaryFolder folder;
  io::write_safetensors(folder / "a", {{"z", Tensor::of<float>({1}, std::vector<float>{1.0f})},
                                       {"a", Tensor::of<std::uint8_t>({1}, std::vector<std::uint8_t>{9})}});
  const std::string content = content_of(folder / "a");
  const auto header = static_cast<unsigned char>(content[0]);
  CHECK(header % 8 == 0);
  CHECK(content.size() == 8u + header + 5u);
  CHECK(content.substr(8 + header) == std::string("\0\0\x80\x3f\x09", 5));  // aligned: f32 before u8
}

TEST_CASE("a file of the Python package is read", "[io]") {
  // safetensors.torch.save({"linear.weight": torch.tensor([[1., 2.]]), "n": torch.tensor(3, dtype=torch.int32)})
  const std::string content = with_header(R"({"linear.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                                          R"("n":{"dtype":"I32","shape":[],"data_offsets":[8,12]}}       )",
                                          std::string("\0\0\x80\x3f\0\0\0\x40\3\0\0\0", 12));
  const io::Safetensors file = read(content);
  CHECK(file.tensors.at("linear.weight").shape() == Shape{1, 2});
  CHECK(file.tensors.at("linear.weight").values<float>()[1] == 2.0f);
  CHECK(file.tensors.at("n").values<std::int32_t>()[0] == 3);
}

TEST_CASE("a type that tensors do not have becomes the one that holds its numbers", "[io]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& dtype, const std::string& shape, const std::string& bytes) {
    write_file(
        folder / "a",
        with_header(object(entry("\"" + dtype + "\"", shape, "[0," + std::to_string(bytes.size()) + "]")), bytes));
    return io::read_safetensors(folder / "a").tensors.at("w");
  };
  CHECK(read("F64", "[1]", std::string("\0\0\0\0\0\0\xf8\x3f", 8)).values<float>()[0] == 1.5F);
  CHECK(read("I64", "[]", std::string("\7\0\0\0\0\0\0\0", 8)).values<std::int32_t>()[0] == 7);
  CHECK(read("I8", "[]", "\xff").values<std::int32_t>()[0] == -1);
  CHECK(read("BOOL", "[2]", std::string("\1\0", 2)).values<std::uint8_t>()[0] == 1);
  const Tensor e4m3 = read("F8_E4M3", "[5]", std::string("\x38\xb8\x01\x7e\x7f", 5));
  CHECK(e4m3.values<float>()[0] == 1.0F);
  CHECK(e4m3.values<float>()[1] == -1.0F);
  CHECK(e4m3.values<float>()[2] == 0x1p-9F);
  CHECK(e4m3.values<float>()[3] == 448.0F);
  CHECK(std::isnan(e4m3.values<float>()[4]));
  const Tensor e5m2 = read("F8_E5M2", "[3]", std::string("\x3c\x7b\x7c", 3));
  CHECK(e5m2.values<float>()[0] == 1.0F);
  CHECK(e5m2.values<float>()[1] == 57344.0F);
  CHECK(std::isinf(e5m2.values<float>()[2]));
  const std::string large("\0\0\0\0\1\0\0\0", 8);
  CHECK_THAT(message_of<FormatError>([&] { (void)read("I64", "[]", large); }),
             contains("w: element 0 is 4294967296, outside the range of i32"));
}

TEST_CASE("only wanted tensors are read", "[io]") {
  const TemporaryFolder folder;
  write_file(folder / "a", with_header(R"({"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)" +
                                           entry("\"F32\"", "[1]", "[8,12]") + "}",
                                       std::string(12, '\0')));
  CHECK(io::read_safetensors(folder / "a").tensors.size() == 2);
  const auto file = io::read_safetensors(folder / "a", [](std::string_view name) { return name == "w"; });
  CHECK(file.tensors.size() == 1);
}

TEST_CASE("a safetensors file cut at any byte is refused", "[io]") {
  const TemporaryFolder folder;
  io::write_safetensors(folder / "whole", examples(), {{"key", "value"}});
  const std::string whole = content_of(folder / "whole");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO("cut after " << bytes);
    CHECK(contains(refusal(whole.substr(0, bytes)), "file.safetensors, byte "));
  }
  CHECK(contains(refusal(whole + "x"), "data: 1 bytes belong to no tensor"));
}

TEST_CASE("a damaged byte never crashes the safetensors reader", "[io]") {
  const TemporaryFolder folder;
  io::write_safetensors(folder / "whole", examples(), {{"key", "value"}});
  const std::string whole = content_of(folder / "whole");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      try {
        (void)read(damaged);  // a changed value or name is not damage that a reader can see
      } catch (const FormatError& error) {
        CHECK(contains(error.what(), ", byte "));
      }
    }
  }
}

TEST_CASE("safetensors errors name the field", "[io]") {
  const std::string data(8, '\0');
  const std::string w = entry("\"F32\"", "[2]", "[0,8]");
  const auto one = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return refusal(with_header(object(entry(dtype, shape, offsets)), data));
  };
  CHECK(read(with_header(object(w), data)).tensors.size() == 1);

  CHECK(contains(refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)),
                 "byte 0: header length: 9223372036854775807"));
  CHECK(contains(refusal(with_header("{\"w\":}")), "byte 13: header: is not JSON from here on"));
  CHECK(contains(refusal(with_header("[]")), "header: is not a JSON object"));
  CHECK(contains(refusal(with_header("")), "byte 8: header: "));
  CHECK(contains(refusal(with_header(std::string(100000, '['))), "nested too deep"));
  CHECK(contains(refusal(with_header("{\"\xff\":1}")), "byte 10: header: "));
  CHECK(contains(refusal(with_header(R"({"w":3})")), "byte 9: w: is not {dtype, shape, data_offsets}"));
  CHECK(contains(refusal(with_header(R"({"w":{"dtype":"F32","shape":[1]}})")), "w: is not"));
  CHECK(contains(refusal(with_header(R"({"__metadata__":3})")), "__metadata__: is not a JSON object"));
  CHECK(contains(refusal(with_header(R"({"__metadata__":{"a":3}})")), "the value of \"a\" is not a string"));
  CHECK(contains(refusal(with_header(object(w + "," + w), data)), "\"w\" occurs twice"));

  CHECK(contains(one("3", "[2]", "[0,8]"), "dtype is not a string"));
  CHECK(contains(one("\"F33\"", "[2]", "[0,8]"), "dtype \"F33\" is unknown"));
  CHECK(contains(one("\"F32\"", "[3]", "[0,8]"), "\"F32\" [3] needs 12 bytes, but data_offsets hold 8"));
  CHECK(contains(one("\"F32\"", "[-2]", "[0,8]"), "shape contains a value that is not a number"));
  CHECK(contains(one("\"F32\"", "[2.0]", "[0,8]"), "shape contains a value that is not a number"));
  CHECK(contains(one("\"F32\"", "2", "[0,8]"), "shape is not a list"));
  CHECK(contains(one("\"U8\"", "[1,1,1,1,1,1,1,1,8]", "[0,8]"), "shape is not a list of at most 8"));
  CHECK(contains(one("\"F32\"", "[4294967296,4294967296]", "[0,8]"), "shape is too large"));
  CHECK(contains(one("\"F32\"", "[0,4294967296,4294967296]", "[0,8]"), "shape is too large"));
  CHECK(contains(one("\"F32\"", "[4611686018427387904]", "[0,8]"), "shape is too large"));
  CHECK(contains(one("\"F32\"", "[2]", "[0]"), "data_offsets are not two numbers"));
  CHECK(contains(one("\"F32\"", "[2]", "[0,-8]"), "data_offsets are not two numbers"));
  CHECK(contains(one("\"F32\"", "[2]", "[8,0]"), "data_offsets [8, 0] are outside"));
  CHECK(contains(one("\"F32\"", "[2]", "[1,9]"), "data_offsets [1, 9] are outside the 8 bytes"));
  CHECK(
      contains(one("\"F32\"", "[1]", "[4,8]"), "w: begins at byte 4 of the data, but the tensor before it ends at 0"));
  CHECK(contains(one("\"F32\"", "[1]", "[0,4]"), "data: 4 bytes belong to no tensor"));
  const std::string overlapping = object(w + R"(,"v":{"dtype":"U8","shape":[4],"data_offsets":[4,8]})");
  CHECK(contains(refusal(with_header(overlapping, data)), "v: begins at byte 4 of the data"));
}

TEST_CASE("safetensors refuses what it cannot open or write", "[io]") {
  const TemporaryFolder folder;
  CHECK(contains(message_of<IoError>([&] { (void)io::read_safetensors(folder / "none"); }), "no such file"));
  CHECK(contains(message_of<IoError>([&] { (void)io::read_safetensors(folder.path()); }), "not a regular file"));
  CHECK_THROWS_AS(io::write_safetensors(folder / "no" / "such", examples()), IoError);
  const auto refused = [&](const std::string& name) {
    return message_of<ArgumentError>([&] { io::write_safetensors(folder / "a", {{name, Tensor(DType::u8, {1})}}); });
  };
  CHECK(contains(refused(""), "a tensor is named \"\""));
  CHECK(contains(refused("__metadata__"), "__metadata__"));
  CHECK(contains(refused("\xff"), "UTF-8"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a write that fails leaves the old file", "[io]") {
  const TemporaryFolder folder;
  io::write_safetensors(folder / "a", examples());
  const std::string before = content_of(folder / "a");

  // The limit on file sizes stands for a full disk: the write stops half way.
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    io::write_safetensors(folder / "a", {{"large", Tensor(DType::f32, {100000})}});
  } catch (const IoError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);

  CHECK(contains(message, "cannot write"));
  CHECK(content_of(folder / "a") == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
