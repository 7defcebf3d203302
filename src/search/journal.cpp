// The file of a journal. The lock on it (flock) ends with the process.
#include "concord/search/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"

namespace concord::search {
namespace {

constexpr int kJournalVersion = 1;

std::string system_reason() { return std::generic_category().message(errno); }

}  // namespace

Journal::Journal(std::filesystem::path file, const Identity& identity) : file_(std::move(file)) {
  open();
  parse(read(), identity);
}

void Journal::open() {
  open_ = OpenFile(::open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  CONCORD_CHECK(open_.is_open(), IoError, "{}: cannot be opened for writing: {}", file_.string(), system_reason());
  CONCORD_CHECK(::flock(open_.get(), LOCK_EX | LOCK_NB) == 0, IoError, "{}: {}", file_.string(),
                errno == EWOULDBLOCK ? "another search is writing to it" : system_reason());
}

std::string Journal::read() const {
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t bytes = ::read(open_.get(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    CONCORD_CHECK(bytes >= 0, IoError, "{}: cannot be read: {}", file_.string(), system_reason());
    if (bytes == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(bytes));
  }
}

void Journal::parse(const std::string& text, const Identity& identity) {
  for (std::int64_t line = 1; whole_ < text.size(); ++line) {
    const std::size_t end = text.find('\n', whole_);
    if (end == std::string::npos) break;
    try {
      events_.push_back(parse_json(std::string_view(text).substr(whole_, end - whole_),
                                   fmt::format("{}, line {}", file_.string(), line)));
    } catch (const FormatError&) {
      if (end + 1 < text.size()) throw;
      break;
    }
    whole_ = end + 1;
  }
  if (whole_ < text.size()) {
    CONCORD_CHECK(::ftruncate(open_.get(), static_cast<off_t>(whole_)) == 0, IoError, "{}: cannot be written: {}",
                  file_.string(), system_reason());
  }
  if (!events_.empty()) {
    check(events_.front(), identity);
    events_.erase(events_.begin());
    return;
  }
  nlohmann::ordered_json header{{"event", "search"}, {"version", kJournalVersion}};
  for (const auto& [name, value] : identity) header[name] = value;
  append(header);
}

void Journal::check(const nlohmann::json& header, const Identity& identity) const {
  const JsonFields fields(header, fmt::format("{}, line 1", file_.string()));
  CONCORD_CHECK(fields.get<std::string>("event") == "search", FormatError, "{}: is not the journal of a search",
                file_.string());
  const int version = fields.get<int>("version");
  CONCORD_CHECK(version == kJournalVersion, FormatError,
                "{}: has version {} of the format; this program reads version {}", file_.string(), version,
                kJournalVersion);
  for (const auto& [name, value] : identity) {
    const auto before = fields.get<std::string>(name.c_str());
    CONCORD_CHECK(before == value, ArgumentError,
                  "{} is the journal of another search: its {} is '{}', that of this one is '{}'. Use another folder",
                  file_.string(), name, before, value);
  }
}

void Journal::append(const nlohmann::ordered_json& event) {
  CONCORD_CHECK(!is_broken_, IoError, "{}: takes no line behind one that could not be written", file_.string());
  const std::string line = event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t bytes = ::write(open_.get(), line.data() + done, line.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      const std::string reason = system_reason();
      is_broken_ = true;
      // Where this fails too, the next Journal cuts the line off.
      static_cast<void>(!::ftruncate(open_.get(), static_cast<off_t>(whole_)));
      throw IoError(fmt::format("{}: cannot be written: {}", file_.string(), reason));
    }
    done += static_cast<std::size_t>(bytes);
  }
  whole_ += line.size();
}

}  // namespace concord::search
