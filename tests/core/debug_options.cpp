#include "concord/core/debug_options.hpp"

#include "concord_test.hpp"
#include "files.hpp"
#include "setting.hpp"

namespace concord::test {

TEST_CASE("options of CONCORD_DEBUG are read by key, and the later value counts", "[core]") {
  const Setting debug("CONCORD_DEBUG", "gemm=tiled,tuning=0,gemm=wave,kernel_dir=/a=b,limit.work_group=64");
  CHECK(debug_option("gemm") == "wave");
  CHECK(debug_option("kernel_dir") == "/a=b");
  CHECK(debug_option("conv") == std::nullopt);
  CHECK_FALSE(debug_flag("tuning", true));
  CHECK(debug_flag("portable", true));
  CHECK(debug_number("limit.work_group", 1, 64) == 64U);
  CHECK(debug_number("build_processes", 0, 64) == std::nullopt);
  CHECK_NOTHROW(check_debug_options());
  const DebugOption more("kernels", "gpu");
  CHECK(debug_choice("kernels", {"cpu", "gpu"}) == "gpu");
  CHECK(debug_option("gemm") == "wave");
}

TEST_CASE("a wrong CONCORD_DEBUG is an error that names the key", "[core]") {
  const auto message = [](const char* options, auto&& read) {
    const Setting debug("CONCORD_DEBUG", options);
    return message_of<ArgumentError>(read);
  };
  const auto check = [] { check_debug_options(); };
  for (const char* const text : {"gemm", "gemm=", "=", "kernels=gpu,tuning"}) {
    CHECK_THAT(message(text, check), contains("is not KEY=VALUE"));
  }
  const std::string unknown = message("tunning=0", check);
  CHECK_THAT(unknown, contains("no key \"tunning\"; did you mean tuning?"));
  for (const std::string_view key : debug_keys()) CHECK_THAT(unknown, contains(std::string(key)));
  CHECK_THAT(message("tuning=no", [] { static_cast<void>(debug_flag("tuning", true)); }),
             contains("tuning is \"no\"; it must be 0, 1"));
  for (const char* const text : {"build_processes=65", "build_processes=-1", "build_processes=3 "}) {
    CHECK_THAT(message(text, [] { static_cast<void>(debug_number("build_processes", 0, 64)); }),
               contains("an integer from 0 to 64"));
  }
}

}  // namespace concord::test
