// Tuning tables: keys, files, and choices that are obeyed.
#include "concord/opencl/gemm/tuning/table.hpp"

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "concord/core/platform.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/driver/limits.hpp"
#include "files.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::Gemm;
using opencl::GemmChoice;
using opencl::GemmTiling;
using opencl::TuningEntries;
using opencl::TuningOrigin;

const TuningOrigin kOrigin{"a card", "1.2", 8, "gpu"};
const TuningEntries kEntries{{"one", {{"tiled", GemmTiling{"64x64", 3}}, 1e-3, 2e-3, "clblast"}},
                             {"two", {{"clblast", std::nullopt}, 0.5, 0.5, "clblast"}}};

/// C(12, 20) = A(12, 300) · B(300, 20), its kernel's name and its result, on a device that reads its tables anew.
struct Product {
  std::string key, kernel;
  Tensor result;
};
Product product_on(const DeviceInfo& info, const CompileOptions& options = {}) {
  const DevicePtr device = Device::open(info.id);
  const Tensor a = Tensor::of(Shape{12, 300}, std::vector<float>(3600, 1)),
               b = Tensor::of(Shape{300, 20}, std::vector<float>(6000, 2));
  Graph graph;
  const Value c = matmul(graph.input("a", a.spec()), graph.input("b", b.spec()));
  std::vector<TunableProduct> products;
  std::optional<Program> program;
  products = device->tuner()->products_of(
      [&] { program = compile(graph, std::vector{c}, std::make_shared<Variables>(device, 1), options); });
  program->write("a", a);
  program->write("b", b);
  const std::string kernel = program->run_traced().front().kernel;
  return {products.front().key, kernel, program->read(c)};
}

}  // namespace

TEST_CASE("products that one choice serves have one key, others have others", "[opencl][tuning]") {
  const Gemm gemm = opencl::dense_gemm(64, 96, 128);
  const std::string key = tuning_key(gemm);
  Gemm elsewhere = gemm;
  elsewhere.a.buffer = opencl::input(7);
  elsewhere.c.buffer = opencl::workspace(256);
  CHECK(tuning_key(elsewhere) == key);
  const std::vector<std::function<void(Gemm&)>> changes{
      [](Gemm& g) { g.m = 63; },
      [](Gemm& g) { g.n = 95; },
      [](Gemm& g) { g.k = 127; },
      [](Gemm& g) { g.batch = 2; },
      [](Gemm& g) { g.precision = Precision::bf16; },
      [](Gemm& g) {
        g.a = {opencl::input(0), 0, 1, 64};
      },
      [](Gemm& g) { g.a.row = 129; },
      [](Gemm& g) { g.a.block = 16; },
      [](Gemm& g) { g.a.is_patch = true; },
      [](Gemm& g) { g.a.is_channels_last = true; },
      [](Gemm& g) { g.c.is_channels_last = true; },
      [](Gemm& g) { g.b.along_k = true; },
      [](Gemm& g) { g.b.k = 97; },
      [](Gemm& g) { g.b.block = 16; },
      [](Gemm& g) { g.b.is_patch = true; },
      [](Gemm& g) { g.c.row = 97; },
      [](Gemm& g) { g.c.block = 16; },
      [](Gemm& g) { g.c.block = g.c.line = g.c.page = 16; },
      [](Gemm& g) { g.epilogue.text = "#define EPILOGUE"; },
      [](Gemm& g) { g.partial = true; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    Gemm other = gemm;
    changes[i](other);
    CHECK(tuning_key(other) != key);
  }
  Gemm patch = gemm, shifted = gemm;
  patch.b.is_patch = shifted.b.is_patch = true;
  shifted.patch.shift[1] = -1;
  CHECK(tuning_key(patch) != tuning_key(shifted));
  Gemm stored = patch;
  stored.b.is_channels_last = true;
  CHECK(tuning_key(patch) != tuning_key(stored));
}

TEST_CASE("a tuning table comes back from its file, for its own device alone", "[opencl][tuning]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "table.json";
  write_tuning(file, kOrigin, kEntries);
  for (const char* driver : {"1.2", "1.3"}) {
    const auto table = opencl::read_tuning(file, {"a card", driver, 8, "gpu"});
    REQUIRE(table.has_value());
    CHECK(table->driver == "1.2");
    CHECK(table->entries == kEntries);
  }
  for (const TuningOrigin& other :
       {TuningOrigin{"another card", "1.2", 8, "gpu"}, {"a card", "1.2", 9, "gpu"}, {"a card", "1.2", 8, "cpu"}}) {
    CHECK_FALSE(opencl::read_tuning(file, other).has_value());
  }
  // A choice holds while its own kernels do.
  std::string text = content_of(file);
  const std::string digest = opencl::kernel_digests().at("tiled");
  text.replace(text.find(digest), digest.size(), "01234567");
  write_file(file, text);
  const auto left = opencl::read_tuning(file, kOrigin);
  REQUIRE(left.has_value());
  CHECK(left->entries.size() == 1);
  CHECK(left->entries.contains("two"));
  CHECK(left->outdated == kEntries.size() - 1);
}

TEST_CASE("a tuning table from before the kernels changed without their times holds", "[opencl][tuning]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "table.json";
  for (const char* earlier : {"78990084", "b9e50fe1"}) {  // of tiled
    write_tuning(file, kOrigin, kEntries);
    std::string text = content_of(file);
    const std::string digest = opencl::kernel_digests().at("tiled");
    text.replace(text.find(digest), digest.size(), earlier);
    write_file(file, text);
    CHECK(opencl::read_tuning(file, kOrigin).value().entries == kEntries);
  }
  const opencl::KernelDigests digests = opencl::kernel_digests();
  for (const opencl::EarlierDigests& earlier : opencl::earlier_digests()) {
    INFO(earlier.implementation);
    CHECK(earlier.now == digests.at(std::string(earlier.implementation)));
  }
}

TEST_CASE("the tuning tables beside the library hold for its kernels", "[opencl][tuning]") {
  const std::filesystem::path folder = shared_data_directory() / "tuning";
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    INFO(file.path().string());
    const auto json = nlohmann::json::parse(content_of(file.path()));
    const TuningOrigin origin{json["device"], json["driver"], json["compute_units"], json["kind"]};
    const auto table = opencl::read_tuning(file.path(), origin);
    REQUIRE(table.has_value());
    CHECK(table->entries.size() == json["products"].size());
    CHECK(table->outdated == 0);
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("a damaged tuning table says what is wrong with it", "[opencl][tuning]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "table.json";
  write_tuning(file, kOrigin, kEntries);
  const std::string whole = content_of(file);
  struct Damage {
    std::string from, to, message;
  };
  for (const Damage& damage :
       {Damage{"\"format\"", "format", "not JSON"}, Damage{"concord-tuning", "tunes", "format"},
        Damage{"\"version\": 1", "\"version\": 2", "version is 2"},
        Damage{"\"driver\"", "\"diver\"", "has no \"driver\""},
        Damage{"\"compute_units\": 8", "\"compute_units\": -8", "compute_units"},
        Damage{"\"compute_units\": 8", "\"compute_units\": 4294967304", "from 1 to 4294967295"},
        Damage{"\"parts\": 3", "\"parts\": 9223372036854775808", "parts"},
        Damage{"\"parts\": 3", "\"parts\": 0", "parts"}, Damage{"\"parts\": 3", "\"parts\": 2.5", "parts"},
        Damage{"\"implementation\": \"tiled\"", "\"implementation\": 3", "\"one\""},
        Damage{"\"seconds\": 0.5", "\"seconds\": \"fast\"", "\"two\""}}) {
    INFO(damage.from << " -> " << damage.to);
    std::string text = whole;
    text.replace(text.find(damage.from), damage.from.size(), damage.to);
    write_file(file, text);
    CHECK_THAT(message_of<FormatError>([&] { static_cast<void>(opencl::read_tuning(file, kOrigin)); }),
               contains(damage.message));
  }
  write_file(file, whole.substr(0, whole.size() / 2));
  CHECK_THAT(message_of<FormatError>([&] { static_cast<void>(opencl::read_tuning(file, kOrigin)); }),
             contains("not JSON"));
  CHECK_THAT(message_of<IoError>([&] { static_cast<void>(opencl::read_tuning(folder / "none.json", kOrigin)); }),
             contains("none.json"));
}

TEST_CASE("a product is computed as its entry in a table says", "[opencl][tuning]") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const TuningOrigin origin = tuning_origin(context_of(device));
    const Product planned = product_on(device->info());
    const auto with = [&](const GemmChoice& choice) {
      write_tuning(folder / "table.json", origin, {{planned.key, {choice, 1, 1, "another"}}});
      return product_on(device->info());
    };
    std::vector<GemmChoice> choices{{"reference", std::nullopt}, {"tiled", GemmTiling{"32x32", 1}}};
    if (opencl::device_limits() == opencl::DeviceLimits{})
      choices.push_back({"clblast", std::nullopt});  // which knows no limits
    for (const GemmChoice& choice : choices) {
      INFO(choice.implementation << " on " << device->info().id);
      const Product chosen = with(choice);
      CHECK_THAT(chosen.kernel, contains(choice.implementation));
      for (const float value : chosen.result.values<float>()) CHECK(value == 600);
    }
    CHECK_THAT(with({"tiled", GemmTiling{"32x32", 2}}).kernel, contains("tiled 32x32, k in 2"));
    // What does not serve is as if it were not there.
    CHECK(with({"tiled", GemmTiling{"31x33", 1}}).kernel == planned.kernel);
    CHECK(with({"tiled", GemmTiling{"32x32", 1000}}).kernel == planned.kernel);
    for (const GemmChoice& choice :
         std::vector<GemmChoice>{{"sliced", GemmTiling{"16x32", kMost}}, {"tiled", GemmTiling{"32x32", kMost}}}) {
      CHECK(with(choice).kernel == planned.kernel);
    }
    CHECK(with({"abacus", std::nullopt}).kernel == planned.kernel);
    // The option gemm goes before; tuning=0 leaves tables unread.
    CHECK_THAT(with({"tiled", std::nullopt}).kernel, contains("tiled"));
    {
      const DebugOption forced("gemm", "reference");
      CHECK_THAT(product_on(device->info()).kernel, contains("reference"));
    }
    const DebugOption off("tuning", "0");
    CHECK(product_on(device->info()).kernel == planned.kernel);
  }
}

TEST_CASE("a table of another driver serves where there is none of this one", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const TuningOrigin origin = tuning_origin(context_of(device));
    TuningOrigin older = origin;
    older.driver += " of old";
    const std::string key = product_on(device->info()).key;
    const auto write = [&](const char* name, const TuningOrigin& of, const char* implementation) {
      write_tuning(folder / name, of, {{key, {{implementation, std::nullopt}, 1, 1, "another"}}});
    };
    write("a.json", older, "reference");
    CHECK_THAT(product_on(device->info()).kernel, contains("reference"));
    opencl::Tuning tuning(context_of(device));
    CHECK_FALSE(tuning.knows(key));  // so that it is measured anew
    write("b.json", origin, "tiled");
    CHECK_THAT(product_on(device->info()).kernel, contains("tiled"));
  }
}

TEST_CASE("a damaged table is named in a warning and left out, a foreign one is passed by", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const Product planned = product_on(device->info());
    write_tuning(folder / "a_card.json", kOrigin, {{planned.key, {{"reference", std::nullopt}, 1, 1, "another"}}});
    write_file(folder / "broken.json", "{\"format\": ");
    std::vector<std::string> warnings;  // of tables: a denylist that a doctor wrote meanwhile is another matter
    set_log(
        [&](LogLevel, std::string_view text) {
          if (text.find(folder.path().string()) != std::string_view::npos) warnings.emplace_back(text);
        },
        LogLevel::warning);
    const Product found = product_on(device->info());
    set_log({});
    CHECK(found.kernel == planned.kernel);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings.front(), contains("broken.json"));
  }
}

TEST_CASE("a first use within a budget tunes, stores and obeys", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    const TemporaryFolder folder;
    const std::filesystem::path tables = folder / "made" / "anew";
    const Setting setting("CONCORD_TUNING_DIR", tables.string());
    static_cast<void>(product_on(device->info()));
    CHECK_FALSE(std::filesystem::exists(tables));
    const Product tuned = product_on(device->info(), {.tune_seconds = 30});
    REQUIRE(std::filesystem::exists(tables));
    const std::filesystem::path file = std::filesystem::directory_iterator(tables)->path();
    const auto table = opencl::read_tuning(file, tuning_origin(context_of(device)));
    REQUIRE(table.has_value());
    REQUIRE(table->entries.contains(tuned.key));
    CHECK_THAT(tuned.kernel, contains(table->entries.at(tuned.key).choice.implementation));
    CHECK(product_on(device->info()).kernel == tuned.kernel);
  }
  for (const char* wrong : {"soon", "-1", "nan", "5s"}) {
    const Setting setting("CONCORD_TUNE_SECONDS", wrong);
    for (const DevicePtr& device : opencl_devices()) {
      CHECK_THAT(message_of<ArgumentError>([&] { static_cast<void>(product_on(device->info())); }),
                 contains("CONCORD_TUNE_SECONDS") && contains(wrong));
    }
  }
}

}  // namespace concord::test
