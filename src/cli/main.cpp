// The command `concord`: parses, runs a subcommand, turns errors into one line and an exit code.
// 0 done, 1 failed, 2 wrong usage, 130 interrupted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "concord/cli/command.hpp"
#include "concord/compare/run/compared_fit.hpp"
#include "concord/concord.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/device/registry.hpp"

namespace {

// Results count once they have arrived: on a full disk they are lost.
int printed(int code) {
  if (std::cout.flush() || code != 0) return code;
  concord::cli::say("concord: standard output cannot be written; is the disk full?");
  return 1;
}

/// "; did you mean --epochs?" where a name is near.
std::string suggestion(const std::string& given, const std::vector<std::string>& names) {
  const auto nearest = concord::nearest_name(given, names);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : std::string();
}

/// The innermost subcommand of a line, and how it is called: "data check".
std::pair<const CLI::App*, std::string> innermost(const CLI::App* app) {
  std::string name = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands()[0];
    name += " " + app->get_name();
  }
  return {app, name};
}

/// "'chek'; did you mean check? There are check, pack, bench", of a command that has no subcommand of that name.
std::string no_subcommand(const CLI::App& command, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands({})) names.push_back(one->get_name());
  const std::string meant = suggestion(given, names);
  return fmt::format("'{}'{} {}", concord::printable(given), meant.empty() ? ":" : meant + " There are",
                     fmt::join(names, ", "));
}

/// Whether a word names data: perhaps one of those that the shell made of a pattern.
bool is_data(const std::string& word) {
  return word.starts_with("tar:") || word.starts_with("folder:") || word.starts_with("lmdb:") || word.ends_with(".tar");
}

/// What is wrong in a line, and where to read on: the whole help would push the line off the screen.
std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> named = app->get_subcommands();
  const std::vector<std::string> given = app->remaining(true);
  if (!named.empty()) {
    const auto [command, name] = innermost(named[0]);
    const auto is_option = [](const std::string& word) { return word.starts_with("-"); };
    const auto unknown = std::ranges::find_if(given, is_option);
    std::string message = error.what();
    if (unknown != given.end()) {
      const std::string option = unknown->substr(0, unknown->find('='));
      std::vector<std::string> names;
      for (const CLI::Option* one : command->get_options()) {
        for (const std::string& known : one->get_lnames()) names.push_back("--" + known);
      }
      message = fmt::format("{} has no option {}{}", name, concord::printable(option), suggestion(option, names));
    } else if (!given.empty() && !command->get_subcommands({}).empty()) {
      message = fmt::format("{} has no subcommand {}", name, no_subcommand(*command, given[0]));
    } else if (!given.empty() && std::ranges::any_of(given, is_data)) {
      message = fmt::format(
          "{} takes one set, and there is another word, {}. A shell makes several words of a pattern "
          "with braces; put it in quotes: 'tar:x-{{000..001}}.tar'",
          name, concord::printable(given[0]));
    }
    return fmt::format("concord: {}\n`concord {} --help` lists the options.\n", message, name);
  }
  if (given.empty()) return fmt::format("concord: {}\n\n{}", error.what(), app->help());
  return fmt::format("concord: {}, not {}\n", error.what(), no_subcommand(*app, given[0]));
}

int run(int argc, char** argv) {
  using namespace concord;
  compare_fits_on_request();
  const NeutralNumbers neutral;  // options are read as the locale wants, which a library may have set
  if (const auto code = serve_as_builder({argv, static_cast<std::size_t>(argc)})) return *code;
  std::vector<char*> words(argv, argv + argc);
  CLI::App app{"Concord trains and runs neural networks on any OpenCL device and on the CPU, with the same result."};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(kVersion));
  app.failure_message(usage_message);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Print on standard error what is cached, built and chosen")
      ->each([](const std::string&) { cli::log_to_standard_error(true); });
  app.fallthrough();
  cli::log_to_standard_error(false);
  cli::add_devices(app);
  cli::add_doctor(app);
  cli::add_train(app);
  cli::add_crossval(app);
  cli::add_search(app);
  cli::add_evaluate(app);
  cli::add_predict(app);
  cli::add_convert(app);
  cli::add_run(app);
  const std::vector<std::string> program = cli::cut_program_arguments(words);
  cli::add_launch(app, program);
  cli::add_compare(app, program);
  cli::add_replay(app);
  cli::add_bench(app);
  cli::add_profile(app);
  cli::add_models(app);
  cli::add_check(app);
  cli::add_export(app);
  cli::add_summary(app);
  cli::add_tune(app);
  cli::add_data(app);
  cli::add_plan(app);
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return printed(app.exit(error) == 0 ? 0 : 2);
  } catch (const ArgumentError& error) {
    cli::say(fmt::format("concord: {}", error.what()));
    return 2;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::filesystem::filesystem_error& error) {
    cli::say(fmt::format("concord: {}: {}", error.path1().string(), error.code().message()));
    return 1;
  } catch (const std::exception& error) {
    cli::say(fmt::format("concord: {}", error.what()));
    return 1;
  }
  return printed(cli::stop_requested() ? 130 : 0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {  // nothing here may want memory
    std::fputs("concord: host memory is too small; use a smaller --batch\n", stderr);
    return 1;
  }
}
