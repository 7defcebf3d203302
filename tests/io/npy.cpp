// .npy files: what numpy writes is read, what is written has numpy's bytes, and damage is an error with its place.
#include "concord/io/npy.hpp"

#include <fstream>

#include "core/thrown.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// A file of version 1 as numpy writes it.
std::string npy(std::string_view descr, std::string_view order, std::string_view shape, std::string_view data) {
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(order) +
                       ", 'shape': " + std::string(shape) + ", }";
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + std::string(data);
}

template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("arrays of numpy's types are read", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  const auto read = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return io::read_npy(path);
  };
  const Tensor floats = read(npy("<f4", "False", "(2, 2)", bytes_of_numbers<float>({1, 2, 3, 4})));
  CHECK(floats.shape() == Shape{2, 2});
  CHECK(floats.values<float>()[3] == 4);
  CHECK(read(npy("<f8", "False", "(1,)", bytes_of_numbers<double>({0.1}))).values<float>()[0] == 0.1F);
  CHECK(read(npy("<f2", "False", "()", std::string("\x00\x3c", 2))).values<float>()[0] == 1);
  CHECK(read(npy(">i4", "False", "(1,)", std::string("\x00\x00\x01\x02", 4))).values<std::int32_t>()[0] == 258);
  CHECK(read(npy("<i8", "False", "(1,)", bytes_of_numbers<std::int64_t>({-5}))).values<std::int32_t>()[0] == -5);
  CHECK(read(npy("|b1", "False", "(2,)", std::string("\x00\x07", 2))).values<std::uint8_t>()[1] == 1);
  CHECK(read(npy("<f4", "False", "(0, 3)", "")).elements() == 0);
  const Tensor columns = read(npy("<i4", "True", "(2, 3)", bytes_of_numbers<std::int32_t>({0, 3, 1, 4, 2, 5})));
  for (std::int32_t i = 0; i < 6; ++i) CHECK(columns.values<std::int32_t>()[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a written array is read again, and has the type that was asked for", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  const Tensor whole = Tensor::of<std::int32_t>(Shape{3}, std::vector<std::int32_t>{1, -2, 3});
  io::write_npy(path, whole);
  CHECK(content_of(path) == npy("<i4", "False", "(3,)", bytes_of_numbers<std::int32_t>({1, -2, 3})));
  CHECK(std::ranges::equal(io::read_npy(path).bytes(), whole.bytes()));
  io::write_npy(path, whole, io::NpyType::int64);
  CHECK(content_of(path) == npy("<i8", "False", "(3,)", bytes_of_numbers<std::int64_t>({1, -2, 3})));
  const Tensor flags = Tensor::of<std::uint8_t>(Shape{1, 2}, std::vector<std::uint8_t>{0, 9});
  io::write_npy(path, flags, io::NpyType::boolean);
  CHECK(content_of(path) == npy("|b1", "False", "(1, 2)", std::string("\x00\x01", 2)));
  CHECK_THAT(thrown([&] { io::write_npy(path, flags, io::NpyType::int64); }), contains("needs i32"));
  io::write_npy(path, Tensor(DType::f16, Shape{}));
  CHECK(io::read_npy(path).spec() == TensorSpec{DType::f32, Shape{}});
}

TEST_CASE("a damaged array is an error that says where", "[io]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  const auto error_of = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return thrown([&] { static_cast<void>(io::read_npy(path)); });
  };
  CHECK_THAT(error_of("PK"), contains("a.npy, byte 0: this is no .npy file"));
  CHECK_THAT(error_of(npy("<c8", "False", "(1,)", "12345678")), contains("element type '<c8'"));
  CHECK_THAT(error_of(npy("<f4", "False", "(2,)", "1234")), contains("[2]") && contains("4 bytes that follow"));
  CHECK_THAT(error_of(npy("<f4", "False", "(9223372036854775807, 9)", "1234")), contains("bytes that follow"));
  CHECK_THAT(error_of(npy("<f4", "False", "(0, 9223372036854775807, 9)", "")), contains("bytes that follow"));
  CHECK_THAT(error_of(npy("|u1", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "1")), contains("9 dimensions"));
  CHECK_THAT(error_of(npy("<i8", "False", "(2,)", bytes_of_numbers<std::int64_t>({1, std::int64_t{1} << 40}))),
             contains("element 1 is 1099511627776"));
  CHECK_THAT(error_of(npy("<f4", "Maybe", "(2,)", "12345678")), contains("True or False"));
  const std::string whole = npy("<f4", "False", "(2, 1)", "12345678");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK_THAT(error_of(whole.substr(0, length)), contains("a.npy, byte "));
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {  // every flip is read or refused, and nothing else
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const std::string message = error_of(flipped);
    CHECK((message == "nothing" || contains(message, "a.npy, byte ")));
  }
  CHECK_THAT(thrown([] { static_cast<void>(io::read_npy("none.npy")); }), contains("none.npy"));
}
