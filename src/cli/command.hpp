// What every subcommand of `concord` shares: how it is registered, and what users see of numbers and tables.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/log.hpp"

namespace concord::cli {

/// Each adds its subcommand with options and a callback that does the work; errors are exceptions.
void add_devices(CLI::App& app);
void add_doctor(CLI::App& app);
void add_train(CLI::App& app);
void add_crossval(CLI::App& app);
void add_search(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_predict(CLI::App& app);
void add_convert(CLI::App& app);
/// With what stands behind "--" in the command line.
void add_compare(CLI::App& app, std::vector<std::string> program_arguments);
/// Takes it, and "--", out of the command line of `compare` and `launch`: CLI11 would read options among it. `run` with
/// a program becomes `launch`.
[[nodiscard]] std::vector<std::string> cut_program_arguments(std::vector<char*>& words);
void add_run(CLI::App& app);
/// `program` is what stands after "--".
void add_launch(CLI::App& app, std::vector<std::string> program);
void add_replay(CLI::App& app);
void add_bench(CLI::App& app);
void add_profile(CLI::App& app);
void add_models(CLI::App& app);
void add_check(CLI::App& app);
void add_export(CLI::App& app);
void add_summary(CLI::App& app);
void add_tune(CLI::App& app);
void add_data(CLI::App& app);
void add_plan(CLI::App& app);

/// Rows of text as columns, the first row as a header; numbers (cells that begin with a digit) to the right. Control
/// characters, such as those of names of files, are escaped.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);

/// A document as commands print it, with a line end. Names of drivers and files need not be UTF-8.
[[nodiscard]] std::string json_text(const nlohmann::json& document);

/// A message without the name of the sample with which it begins, as `printable` gives it.
[[nodiscard]] std::string without_name(std::string_view message, std::string_view sample);

/// A line on standard error, where there is one, with control characters escaped: a message that cannot be written is
/// no reason to end.
void say(const std::string& line);
void say_log(LogLevel level, std::string_view text);
/// Where the library's messages go: warnings and errors, with `verbose` all.
void log_to_standard_error(bool verbose);

/// Set by SIGINT and SIGTERM once `catch_signals` was called. A second SIGINT ends the process at once, and so does a
/// second SIGTERM after more than 10 seconds. From then on SIGPIPE ends nothing: a reader of progress may go away.
void catch_signals();
[[nodiscard]] bool stop_requested();

}  // namespace concord::cli
