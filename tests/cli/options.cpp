// The values of the command's options: what is refused before any work (exit code 2), and what is warned of.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Arguments train() { return {"train", "mlp", "--data", "random", "--device", cheap_device(), "--max-steps", "1"}; }

/// Weights of mlp, trained for a step on random data.
std::string weights_in(const TemporaryFolder& folder) {
  const std::string file = (folder / "net.safetensors").string();
  REQUIRE(run_command(with(train(), {"--out", file, "--quiet"})).code == 0);
  return file;
}

int times(const std::string& text, const std::string& words) {
  int count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("numbers that an option does not take end with 2 and a sentence", "[cli]") {
  if (!command_is_there()) return;
  const Arguments bench{"bench", "mlp", "--device", cheap_device()};
  const Arguments predict{"predict", "mlp", "--data", "random", "--weights", "/dev/null", "--device", cheap_device()};
  const Arguments compare{"compare", "mlp", "--devices", cheap_device()};
  const auto refused = [](const Arguments& command, const std::string& option, const std::vector<std::string>& numbers,
                          const std::string& words) {
    for (const std::string& number : numbers) {
      check_refusal(with(command, {option, number}), 2,
                    {fmt::format("concord: {}: {} is not {}", option, number, words)});
    }
  };
  refused(train(), "--lr", {"0", "-1", "nan", "inf", "1e999", "fast"}, "a finite number above 0");
  refused(train(), "--momentum", {"-0.1", "1.5", "nan"}, "a finite number from 0 to 1");
  refused(train(), "--weight-decay", {"-0.1", "nan", "inf"}, "a finite number of 0 or more");
  refused(train(), "--clip-norm", {"0", "nan", "-1"}, "a finite number above 0");
  refused(train(), "--clip-value", {"0", "inf"}, "a finite number above 0");
  refused(train(), "--ema", {"1", "-0.5", "nan"}, "a finite number from 0 to below 1");
  for (const char* option : {"--batch", "--epochs", "--max-steps", "--accumulate", "--patience"}) {
    refused(train(), option, {"0", "-3", "1.5", "many", "2147483648", "99999999999999999999"}, "an integer from 1 to");
  }
  refused(train(), "--batch", {"064", "0x10", "+5"}, "an integer from 1 to");
  refused(train(), "--threads", {"0", "-1", "many", "5000"}, "an integer from 1 to 4096");
  refused(train(), "--seed", {"-1", "18446744073709551616", "1.5"}, "an integer from 0 to 18446744073709551615");
  refused(bench, "--seconds", {"nan", "inf", "0"}, "a finite number above 0");
  refused(compare, "--seconds", {"nan", "inf", "-1"}, "a finite number above 0");
  refused(compare, "--steps", {"0", "-1", "1e3"}, "an integer from 1 to");
  refused(predict, "--first", {"-3", "1.5"}, "an integer from 0 to");
  refused(predict, "--count", {"0", "-3"}, "an integer from 1 to");
  refused({"evaluate", "mlp", "--data", "random", "--weights", "/dev/null"}, "--batch", {"0"}, "an integer from 1 to");
  refused({"summary", "mlp"}, "--classes", {"0", "99999999999"}, "an integer from 1 to");
  refused({"models"}, "--batch", {"0"}, "an integer from 1 to");
  CHECK(run_command(with(train(), {"--seed", "18446744073709551615", "--quiet"})).code == 0);
}

TEST_CASE("a device that cannot be read ends with 2, one that is missing with 1", "[cli]") {
  if (!command_is_there()) return;
  for (const char* selector : {"foo:bar", "opencl:", "nonsense", "vulkan", "cpu:0"}) {
    const std::string words = fmt::format("\"{}\" is not a device selector; use \"auto\"", selector);
    for (const char* command : {"bench", "profile", "summary"}) {
      check_refusal({command, "mlp", "--device", selector}, 2, {"concord: --device: " + words, "`concord devices`"});
    }
    check_refusal({"doctor", "--device", selector}, 2, {words});
    check_refusal({"compare", "mlp", "--devices", fmt::format("{},{}", cheap_device(), selector)}, 2,
                  {"concord: --devices: " + words});
  }
  const Ended of_environment = run_command({"bench", "mlp"}, {{"CONCORD_DEVICE", "vulkan"}});
  CHECK(of_environment.code == 2);
  CHECK_THAT(of_environment.err, test::contains("concord: CONCORD_DEVICE: \"vulkan\" is not a device selector"));
  // The first may be a part of a name.
  for (const char* selector : {"opencl:99x", "opencl:no-such-card", "opencl:4000000000"}) {
    check_refusal({"bench", "mlp", "--device", selector}, 1, {fmt::format("no device matches \"{}\"", selector)});
  }
}

TEST_CASE("an empty name stands for no default", "[cli]") {
  if (!command_is_there()) return;
  for (const char* command : {"bench", "summary"}) {
    check_refusal({command, "mlp", "--device", ""}, 2, {"concord: --device: the name of the device is empty"});
    check_refusal({command, "mlp", "--input", ""}, 2, {"concord: --input: it is empty"});
  }
  for (const std::string& list : {std::string(), cheap_device() + ",", "," + cheap_device()}) {
    check_refusal({"compare", "mlp", "--devices", list}, 2, {fmt::format("'{}' contains an empty device name", list)});
  }
  const auto data = [](const std::string& name) {
    return Arguments{"train", "mlp", "--data", name, "--device", cheap_device(), "--max-steps", "1"};
  };
  check_refusal(data(""), 2, {"concord: --data: the name of the data set is empty"});
  check_refusal(data("mnist:"), 2, {"concord: --data: mnist: needs the name of a folder after the colon"});
  check_refusal(data("text:"), 2, {"concord: --data: text: needs the name of a file after the colon"});
  check_refusal(data("random:"), 2, {"concord: --data: random data"});
  check_refusal({"compare", "mlp", "--devices", cheap_device(), "--data", "mnist:"}, 2, {"needs the name of a folder"});
  check_refusal({"evaluate", "mlp", "--weights", "/dev/null", "--data", "mnist:"}, 2, {"needs the name of a folder"});
  check_refusal(with(train(), {"--log", ""}), 2, {"concord: --log: the name of a file is empty"});
  check_refusal({"compare", "mlp", "--devices", cheap_device(), "--save-case", ""}, 2, {"--save-case", "empty"});
}

TEST_CASE("evaluate tells the top-k accuracy that was asked for, or refuses", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const Arguments evaluate{"evaluate",         "mlp",      "--data",      "random", "--weights",
                           weights_in(folder), "--device", cheap_device()};
  check_refusal(with(evaluate, {"--top", "50"}), 2, {"concord: --top 50: ", "has 10 classes"});
  const Ended all = run_command(with(evaluate, {"--top", "10", "--json"}));
  REQUIRE(all.code == 0);
  CHECK(nlohmann::json::parse(all.out)["k"] == 10);
  CHECK(run_command(evaluate).code == 0);
}

TEST_CASE("a precision that a device has no units for is told once", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string weights = weights_in(folder);
  for (const DevicePtr& device : devices()) {
    const DeviceInfo& info = device->info();
    const std::vector<Arguments> commands{
        {"bench", "mlp", "--batch", "2", "--seconds", "0.001", "--device", info.id},
        {"train", "mlp", "--data", "random", "--max-steps", "1", "--quiet", "--device", info.id},
        {"evaluate", "mlp", "--data", "random", "--weights", weights, "--device", info.id},
        {"predict", "mlp", "--data", "random", "--weights", weights, "--device", info.id},
        {"compare", "mlp", "--batch", "2", "--steps", "1", "--seconds", "0.001", "--devices", info.id}};
    for (const Arguments& command : commands) {
      INFO(command.front() << " on " << info.id);
      const bool has_units = std::ranges::find(info.precisions, "bf16") != info.precisions.end();
      const Ended ended = run_command(with(command, {"--precision", "bf16"}));
      CHECK(ended.code == 0);
      const std::string warning =
          fmt::format("warning: --precision bf16: {} ({}) has no matrix cores", info.name, info.id);
      CHECK(times(ended.err, warning) == (has_units ? 0 : 1));
      CHECK(has_units != contains(ended.err, "matrix multiplications use fp32"));
      CHECK_THAT(run_command(command).err, !test::contains("--precision"));
    }
  }
}

TEST_CASE("a damaged file is told in words of one's own", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string file = (folder / "w.safetensors").string();
  write_file(file, std::string("\5\0\0\0\0\0\0\0{\"a\":", 13));
  const Arguments evaluate{"evaluate", "mlp", "--data", "random", "--weights", file, "--device", cheap_device()};
  check_refusal(evaluate, 1, {file + ", byte 13: header: ", "damaged, or not a safetensors file"});
  CHECK_THAT(run_command(evaluate).err, !test::contains("json.exception"));
  const std::string name(300, 'a');
  for (const std::string& place : {name, name + "/file"}) {
    check_refusal(with(train(), {"--out", (folder / place).string()}), 1,
                  {" cannot be written: ", "File name too long"});
  }
  CHECK_THAT(run_command({"doctor", "--device", cheap_device()}, {{"CONCORD_CACHE_DIR", "/dev/null/cache"}}).out,
             test::contains("cannot be stored in /dev/null/cache: Not a directory. Each start"));
}
