// Tuning: loads the choices of a device and stores new ones.
#include "concord/opencl/gemm/tuning/table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/log.hpp"
#include "concord/core/open_file.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/private_files.hpp"
#include "concord/core/text.hpp"
#include "concord/opencl/driver/matrix_cores.hpp"

namespace concord::opencl {
namespace {

bool tables_are_off() { return !debug_flag("tuning", true); }

std::vector<std::filesystem::path> tables_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = paths_in(folder);
  std::erase_if(files, [](const std::filesystem::path& file) { return file.extension() != ".json"; });
  return files;
}

/// "pthread-skylake_2_3.1+debian_cpu.json"
std::string file_name(const TuningOrigin& origin) {
  std::string name = fmt::format("{}_{}_{}_{}", origin.device, origin.compute_units, origin.driver, origin.kind);
  for (char& c : name) {
    const bool is_plain = is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '+';
    if (!is_plain) c = '_';
  }
  return name + ".json";
}

std::filesystem::path file_in_first_folder(const TuningOrigin& origin) {
  const bool has_own = environment("CONCORD_TUNING_DIR") || !private_cache_directory("tuning").empty();
  CONCORD_CHECK(has_own, IoError, "there is no folder for tuning tables: set CONCORD_TUNING_DIR or CONCORD_CACHE_DIR");
  const std::filesystem::path folder = tuning_folders().front();
  create_private_directories(folder);
  return folder / file_name(origin);
}

/// Holds the lock on "FILE.lock" (flock) while it lives, against other threads and processes. The file goes away with
/// it. On a file system without locks, nothing is locked.
class TableLock {
 public:
  explicit TableLock(const std::filesystem::path& file) : path_(file.string() + ".lock") {
    do {
      open_ = OpenFile(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
      CONCORD_CHECK(open_.is_open(), IoError, "cannot write {}: no file can be created in its folder: {}: {}",
                    file.string(), path_.string(), std::strerror(errno));
      while (::flock(open_.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
    } while (is_removed());
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  ~TableLock() { ::unlink(path_.c_str()); }

 private:
  /// Whether the owner before removed the file.
  [[nodiscard]] bool is_removed() const {
    struct stat status {};
    return ::fstat(open_.get(), &status) == 0 && status.st_nlink == 0;
  }

  std::filesystem::path path_;
  OpenFile open_;
};

/// The entries of a table that was measured with the origin's driver. Logs how many others it leaves out.
std::optional<TuningEntries> entries_of_driver(const std::filesystem::path& file, std::string_view text,
                                               const TuningOrigin& origin, LogLevel level) {
  std::optional<TuningTable> table = tuning_in(text, origin);
  if (!table || table->driver != origin.driver) return std::nullopt;
  if (table->outdated > 0) {
    log(level, fmt::format("tuning: {} entries of {} are dropped, because their kernels have changed or do not exist "
                           "in this version",
                           table->outdated, file.string()));
  }
  return std::move(table->entries);
}

/// The entries of the device's own file. None for a file that is damaged or that another user may have written: it will
/// be replaced.
TuningEntries entries_of_own(const std::filesystem::path& file, const TuningOrigin& origin) {
  try {
    const std::optional<std::string> text = read_private_file(file);
    if (!text) return {};
    return entries_of_driver(file, *text, origin, LogLevel::info).value_or(TuningEntries{});
  } catch (const NewerTable& error) {
    throw IoError(
        fmt::format("{} is not replaced: {}; set CONCORD_TUNING_DIR to another folder", file.string(), error.what()));
  } catch (const FormatError& error) {
    log(LogLevel::warning, fmt::format("tuning: {} is replaced: {}", file.string(), error.what()));
    return {};
  }
}

/// The entries of a file that the user named.
TuningEntries entries_of_named(const std::filesystem::path& file, const TuningOrigin& origin) {
  try {
    std::optional<TuningEntries> entries = entries_of_driver(file, read_file(file), origin, LogLevel::warning);
    CONCORD_CHECK(entries, FormatError, "it belongs to another device or driver");
    return *std::move(entries);
  } catch (const FormatError& error) {
    throw IoError(fmt::format("{} is not replaced: {}; name another file", file.string(), error.what()));
  }
}

}  // namespace

TuningOrigin tuning_origin(const Context& context) {
  const bool has_units = context.capability().has_matrix_cores();
  const bool has_waves = context.wave_units() != WaveUnits::none;
  return {context.name(), context.device().driver_version(), context.limits().compute_units,
          context.limits().is_cpu ? "cpu"
          : has_units             ? "nvidia"
          : has_waves             ? "wave"
                                  : "gpu"};
}

std::vector<std::filesystem::path> tuning_folders() {
  std::vector<std::filesystem::path> folders;
  if (const auto own = environment("CONCORD_TUNING_DIR")) folders.emplace_back(*own);
  if (const std::filesystem::path own = private_cache_directory("tuning"); !own.empty()) folders.push_back(own);
  if (const std::filesystem::path shared = shared_data_directory(); !shared.empty())
    folders.push_back(shared / "tuning");
  return folders;
}

const TuningEntries& Tuning::entries() {
  if (entries_) return *entries_;
  entries_.emplace();
  if (tables_are_off()) return *entries_;
  for (const std::filesystem::path& folder : tuning_folders()) {
    for (const std::filesystem::path& file : tables_in(folder)) add(file);
  }
  return *entries_;
}

// Entries of an earlier file take precedence.
void Tuning::add(const std::filesystem::path& file) {
  if (!origin_) origin_ = tuning_origin(context_);
  try {
    const std::optional<std::string> text = read_private_file(file);
    if (!text) return;
    std::optional<TuningTable> table = tuning_in(*text, *origin_);
    if (!table) return;
    if (table->outdated > 0) {
      log(LogLevel::info, fmt::format("tuning: {} entries of {} are not used, because their kernels have changed or do "
                                      "not exist in this version; `concord tune` measures them again",
                                      table->outdated, file.string()));
    }
    TuningEntries& to = table->driver == origin_->driver ? *entries_ : of_other_drivers_;
    to.merge(std::move(table->entries));
  } catch (const Error& error) {
    log(LogLevel::warning, fmt::format("tuning: {} is ignored: {}", file.string(), error.what()));
  }
}

std::optional<GemmChoice> Tuning::choice_of(const Gemm& gemm) {
  if (listener) listener(gemm);
  return known(gemm);
}

std::optional<GemmChoice> Tuning::known(const Gemm& gemm) {
  if (entries().empty() && of_other_drivers_.empty()) return std::nullopt;
  const std::string key = tuning_key(gemm);
  for (const TuningEntries* const list : {&*entries_, &of_other_drivers_}) {
    if (const auto found = list->find(key); found != list->end()) return found->second.choice;
  }
  return std::nullopt;
}

void Tuning::put(const std::string& key, TuningEntry entry) {
  static_cast<void>(entries());
  own_.insert_or_assign(key, entry);
  entries_->insert_or_assign(key, std::move(entry));
}

std::filesystem::path Tuning::store(const std::filesystem::path& wanted) {
  if (!origin_) origin_ = tuning_origin(context_);
  const bool is_named = !wanted.empty();
  const std::filesystem::path file = is_named ? wanted : file_in_first_folder(*origin_);
  const TableLock lock(file);
  TuningEntries all = own_;
  if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
    all.merge(is_named ? entries_of_named(file, *origin_) : entries_of_own(file, *origin_));
  }
  write_tuning(file, *origin_, all, is_named ? Readers::by_umask : Readers::owner);
  return file;
}

}  // namespace concord::opencl
