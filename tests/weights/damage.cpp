// Files of weights that were cut or changed: each is read, or refused as a FormatError that names the file and a byte.
// Small files do not make the reader take much memory, whatever they say.
#include <sys/resource.h>

#include "concord/core/philox.hpp"
#include "concord/weights/file.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "io/zip_file.hpp"
#include "weights/hdf5_reader.hpp"
#include "weights/model_files.hpp"
#include "weights/torch_file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr const char* kSamples[] = {"zip.pth",          "legacy.pth", "newer.pth",    "checkpoint.pth",
                                    "nested.pth",       "keras.h5",   "keras3.keras", "keras3.weights.h5",
                                    "caffe.caffemodel", "evil.pkl",   "module.pth"};

/// True if the file was refused.
bool is_refused(const std::filesystem::path& path) {
  try {
    static_cast<void>(weights::read(path));
  } catch (const FormatError& error) {
    const std::string message = error.what();
    if (!contains(message, path.filename().string()) || !contains(message, "byte ")) FAIL_CHECK(message);
    return true;
  } catch (const NotSupported&) {  // without the reader of HDF5
    return true;
  } catch (const std::exception& error) {
    FAIL_CHECK("another exception: " << error.what());
  }
  return false;
}

std::uint32_t drawn_below(PhiloxSequence& random, std::size_t limit) {
  return random.below(static_cast<std::uint32_t>(limit));
}

void check_truncations(const std::string& whole, const std::filesystem::path& path, std::size_t trials) {
  std::size_t refused = 0, count = 0;
  for (std::size_t i = 0; i < trials; ++i) {
    const std::size_t size = whole.size() * i / trials;
    write_file(path, std::string_view(whole).substr(0, size));
    refused += is_refused(path) ? 1U : 0U;
    ++count;
  }
  INFO(path.string());
  CHECK(refused == count);
}

void check_changes(const std::string& whole, const std::filesystem::path& path, int trials) {
  PhiloxSequence random(Philox(7, philox_purpose("damage")));
  for (int trial = 0; trial < trials; ++trial) {
    std::string text = whole;
    const std::uint32_t changes = 1 + random.below(4);
    for (std::uint32_t change = 0; change < changes; ++change) {
      // Headers are at the begin, directories of zip archives at the end.
      const std::uint32_t place = random.below(3);
      const std::size_t near = std::min<std::size_t>(text.size(), 2000);
      std::size_t at = drawn_below(random, place == 0 ? text.size() : near);
      if (place == 2) at = text.size() - 1 - at;
      text[at] = static_cast<char>(random.below(2) == 0 ? text[at] ^ (1 << random.below(8)) : random.below(256));
    }
    write_file(path, text);
    static_cast<void>(is_refused(path));
  }
}

std::string refusal_of(const std::string& content) {
  const TemporaryFolder folder;
  write_file(folder / "net.pth", content);
  return message_of<FormatError>([&] { static_cast<void>(weights::read(folder / "net.pth")); });
}

}  // namespace

TEST_CASE("truncated files of weights are refused with a byte", "[weights]") {
  const TemporaryFolder folder;
  for (const char* name : kSamples) {
    check_truncations(content_of(golden_path(std::string("weights/") + name)), folder / name, 200);
  }
}

TEST_CASE("changed files of weights are read or refused with a byte", "[weights]") {
  const TemporaryFolder folder;
  for (const char* name : kSamples) {
    check_changes(content_of(golden_path(std::string("weights/") + name)), folder / name, 1000);
  }
}

TEST_CASE("truncated and changed published files are read or refused with a byte", "[weights]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"crepe_tiny.pth", "lpips_alex.pth", "lpips_squeeze.pth", "onet.pt", "pnet.pt", "rnet.pt", "fer_emotion.hdf5"}) {
    const auto path = model_file(name);
    if (!path) continue;
    const std::string whole = content_of(*path);
    check_truncations(whole, folder / name, 20);
    check_changes(whole, folder / name, 40);
  }
}

TEST_CASE("a tensor outside its storage is refused, and a file's claims cost no memory", "[weights]") {
  const std::string four = "K\x04", one = "K\x01", zero("K\0", 2), huge = "J\xff\xff\xff\x7f";
  const std::string numbers("\4\0\0\0\0\0\0\0", 8), data(16, '\1');
  const std::string keys = "]" + text_of("0") + "a";
  const auto refused = [&](const std::string& storage, const std::string& window) {
    return refusal_of(legacy(tensor_object(storage, window), keys, numbers + data));
  };
  const TemporaryFolder folder;
  write_file(folder / "right.pth",
             legacy(tensor_object(four, zero + four + "\x85" + one + "\x85"), keys, numbers + data));
  CHECK(weights::read(folder / "right.pth").tensors.at("w").elements() == 4);
  CHECK_THAT(refused(four, one + four + "\x85" + one + "\x85"), contains("beyond its storage"));
  CHECK_THAT(refused(four, zero + "K\x02\x85" + four + "\x85"), contains("beyond its storage"));
  CHECK_THAT(refused(four, zero + huge + huge + huge + "\x87" + zero + zero + zero + "\x87"), contains("expanded"));
  CHECK_THAT(refused(huge, zero + huge + "\x85" + one + "\x85"), contains("the file has 16 more bytes"));
  CHECK_THAT(refusal_of(legacy("B\xff\xff\xff\x7f", keys, "")), contains("ends too early"));
  CHECK_THAT(refusal_of(legacy(std::string(3'000'000, ']'), keys, "")), contains("more than 1000000 values"));
  // A list within itself, and lists that are reached on 2^40 ways.
  CHECK_THAT(refusal_of(legacy("]q" + zero.substr(1) + "h" + zero.substr(1) + "a", "]", "")), contains("deep"));
  std::string doubling = "]";
  for (int i = 0; i < 12; ++i) doubling += "((2t2t2t2t2t2t";
  CHECK_THAT(refusal_of(legacy(doubling, "]", "")), contains("byte"));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < 4'000'000);  // kilobytes; nothing of this needs a hundredth
}

TEST_CASE("a part of a storage that no archive has is refused", "[weights]") {
  constexpr std::uint64_t kCount = 3'000'000, kFirst = (std::uint64_t{1} << 61U) - kCount;  // 2^64 bytes to its end
  const std::string part = "(" + text_of("0") + number(kFirst) + number(kCount) + "t";
  const std::string id = "(" + text_of("storage") + "ctorch\nLongStorage\n" + text_of("0") + text_of("cpu") +
                         number(std::uint64_t{1} << 62U) + part + "tQ";
  const std::string window = number(0) + number(kCount) + "\x85" + number(1) + "\x85";
  const std::string object = "}" + text_of("w") + "ctorch._utils\n_rebuild_tensor\n(" + id + window + "tRs";
  CHECK_THAT(refusal_of(zip_content({{"a/data.pkl", pickled(object)}, {"a/version", "3\n"}, {"a/data/0", "12345678"}})),
             contains("entry a/data/0 has 8 bytes"));
}

TEST_CASE("an entry larger than the storage that the pickle names is refused", "[weights]") {
  const std::string right = torch_zip(dict_of({{"w", vector_value(4)}}), {std::string(16, '\1')});
  const TemporaryFolder folder;
  write_file(folder / "right.pth", right);
  CHECK(weights::read(folder / "right.pth").tensors.at("w").elements() == 4);
  // Deflate makes a thousandth of it.
  const std::string large(std::size_t{16} << 20, '\0');
  CHECK_THAT(
      refusal_of(zip_content({{"a/data.pkl", pickled(dict_of({{"w", vector_value(4)}}))}, {"a/data/0", large, true}})),
      contains("w: entry a/data/0 has 16777216 bytes; its storage has 16"));
  CHECK_THAT(refusal_of(zip_content({{"a/data.pkl", pickled(dict_of({{"w", vector_value(4)}}))},
                                     {"a/byteorder", large, true},
                                     {"a/data/0", std::string(16, '\1')}})),
             contains("little-endian"));
  // As PyTorch writes bytes that are no whole number of elements, and tensors of one storage.
  write_file(folder / "rest.pth",
             torch_zip(dict_of({{"v", tensor_value(number(4), number(0) + number(1) + "\x85" + number(1) + "\x85")},
                                {"w", vector_value(4)}}),
                       {std::string(18, '\1')}));
  CHECK(weights::read(folder / "rest.pth").tensors.at("w").elements() == 4);
}

TEST_CASE("a data set of an HDF5 file that claims more than the file has is refused", "[weights]") {
  if (!has_hdf5_reader()) return;
  const auto eight = [](std::uint64_t value) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
    return text;
  };
  std::string file = content_of(golden_path("weights/keras.h5"));
  // The kernel of the layer head, 16 x 5 numbers in one piece, becomes one of 2^28; its shape is there twice.
  const std::string shape = eight(16) + eight(5), claimed = eight(1U << 14U) + eight(1U << 14U);
  for (int i = 0; i < 2; ++i) {
    const std::size_t at = file.find(shape);
    REQUIRE(at != std::string::npos);
    file.replace(at, claimed.size(), claimed);
  }
  std::size_t size_at = file.find("\3\1");  // a layout in one piece: version, class, address, size
  while (size_at != std::string::npos && file.substr(size_at + 10, 8) != eight(320)) {
    size_at = file.find("\3\1", size_at + 1);
  }
  REQUIRE(size_at != std::string::npos);
  file.replace(size_at + 10, 8, eight(std::uint64_t{1} << 30U));
  CHECK_THAT(refusal_of(file), contains("byte 0: a data set is larger than its storage"));
}
