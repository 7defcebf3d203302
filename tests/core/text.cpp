// Text does not depend on the locale: numbers with a comma, letters as Turkish has them, a decimal point of two bytes.
#include "concord/core/text.hpp"

#include <cmath>
#include <limits>

#include "concord/core/types.hpp"
#include "files.hpp"
#include "locale.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const char* const kLocales[] = {"de_DE", "tr_TR", "ps_AF"};

}  // namespace

TEST_CASE("a float is written exactly, under every locale", "[core]") {
  for (const char* name : kLocales) {
    const ProcessLocale locale(name);
    CHECK(hexadecimal(0.3F) == "0x1.333334p-2");
    CHECK(hexadecimal(-0.75F) == "-0x1.8p-1");
    CHECK(hexadecimal(0.0F) == "0x0p+0");
    CHECK(hexadecimal(-0.0F) == "-0x0p+0");
    CHECK(hexadecimal(-std::numeric_limits<float>::infinity()) == "-inf");
    for (const float value : {0.1F, 1e-45F, 1.5e-39F, 3.4028235e38F, 1234567.9F}) {
      const auto back = [](const std::string& text) {
        float number = 0;
        std::from_chars(text.data() + 2, text.data() + text.size(), number, std::chars_format::hex);
        return number;
      };
      CHECK(back(hexadecimal(value)) == value);
    }
  }
}

TEST_CASE("numbers are read with a point, and whole", "[core]") {
  for (const char* name : kLocales) {
    const ProcessLocale locale(name);
    CHECK(number_in_text<double>("0.5") == 0.5);
    CHECK(number_in_text<float>("1e-3") == 1e-3F);
    CHECK(number_in_text<std::int64_t>("-12") == -12);
    for (const char* wrong : {"", "0,5", "1.5x", " 1", "1.000,5", "1e999"}) CHECK(!number_in_text<double>(wrong));
    CHECK(!number_in_text<std::int32_t>("3000000000"));
  }
}

TEST_CASE("letters are ASCII's, in Turkish too", "[core]") {
  const ProcessLocale locale("tr_TR");
  CHECK(lower("OPENCL:INTEL") == "opencl:intel");
  CHECK(upper('i') == 'I');
  CHECK((is_letter('z') && is_digit('0') && is_space('\t')));
  CHECK((!is_letter('\xc4') && !is_letter('_') && !is_digit('a') && !is_space('x')));
  // The selector of a device is read so, whatever the case.
  CHECK_THROWS_WITH(static_cast<void>(Device::open("OPENCL:NO SUCH DEVICE I")), contains("no device matches"));
  CHECK(Device::list().size() >= 1);
}

TEST_CASE("a text is cut at its separators", "[core]") {
  CHECK(split("", ',').empty());
  CHECK(split("a,b,", ',') == std::vector<std::string>{"a", "b"});
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
}

TEST_CASE("numbers in kernels and files are the same under every locale", "[core][locale]") {
  for (const char* name : kLocales) {
    const ProcessLocale locale(name);
    const TemporaryFolder folder;
    for (const DevicePtr& device : devices()) {
      INFO(name << " on " << device->info().id);
      Graph graph;
      // A number of its own for each locale: a kernel that no cache has.
      const float factor = 0.3F + static_cast<float>(name[0]) * 1e-4F;
      const Value y = graph.input("x", {DType::f32, Shape{3}}) * factor + 0.7F;
      Program program = compile(graph, {&y, 1}, std::make_shared<Variables>(device, 1));
      program.write("x", Tensor::of(Shape{3}, std::vector<float>{0, 1, -2.5F}));
      program.run();
      const Tensor result = program.read(y);
      CHECK(result.values<float>()[1] == Approx(factor + 0.7F).epsilon(1e-6));
      CHECK(result.values<float>()[2] == Approx(-2.5F * factor + 0.7F).epsilon(1e-6));
    }
    // What a checkpoint says beside its tensors is JSON.
    io::CheckpointInfo info;
    info.network = "small";
    info.schedule = {{"base_rate", "0.125"}};
    io::save_checkpoint(folder / "a.ckpt", {{"weight", Tensor::of(Shape{2}, std::vector<float>{0.5F, -1.25F})}}, info);
    const io::Checkpoint back = io::load_checkpoint(folder / "a.ckpt");
    CHECK(back.info.schedule.at("base_rate") == "0.125");
    CHECK(back.tensors.at("weight").values<float>()[1] == -1.25F);
  }
}
