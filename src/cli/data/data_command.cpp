// concord data: looks at, packs and measures data sets.
#include "concord/cli/data/data_command.hpp"

#include "concord/cli/command.hpp"
#include "concord/cli/data_spec.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/text.hpp"
#include "concord/core/threads.hpp"

namespace concord::cli {

CLI::Option* add_spec(CLI::App& command, std::string& spec) {
  return command.add_option("spec", spec, std::string("The data set, as --data takes it: ") + kDataHelp)
      ->required()
      ->check(data_name());
}

void ReaderThreads::add(CLI::App& command) {
  command.add_option("--loader-threads", text, "Threads that read and decode; auto: a thread for each processor")
      ->capture_default_str()
      ->check(auto_or_count());
}

int ReaderThreads::get() const {
  if (const auto number = number_in_text<int>(text)) return *number;
  return num_threads();
}

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Check a data set, pack it into shards, or measure how fast it is read");
  data->require_subcommand(1);
  add_data_check(*data);
  add_data_pack(*data);
  add_data_bench(*data);
}

}  // namespace concord::cli
