// The subcommands of `concord data`.
#pragma once

#include <CLI/CLI.hpp>

namespace concord::cli {

void add_data_check(CLI::App& data);
void add_data_pack(CLI::App& data);
void add_data_bench(CLI::App& data);

/// SPEC, as --data takes it.
CLI::Option* add_spec(CLI::App& command, std::string& spec);

/// --loader-threads: 0 for "auto" becomes the processors that the process may use.
struct ReaderThreads {
  std::string text = "auto";
  void add(CLI::App& command);
  [[nodiscard]] int get() const;
};

}  // namespace concord::cli
