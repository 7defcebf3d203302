// Bytes to rows of fields: what kind of file it is, the separator, quotes.
#include "concord/data/table/csv_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/input_file.hpp"
#include "concord/data/table/csv_number.hpp"

namespace concord::data {
namespace {

constexpr std::size_t kMostCsvFields = std::size_t{1} << 20;  // of a row
// In the order in which they are believed when several split alike: a comma may be part of numbers.
constexpr std::string_view kCsvSeparators = "\t;|,";
constexpr std::size_t kSampledCsvRows = 100, kSampledCsvBytes = std::size_t{1} << 20;

/// Refuses what is no text before its bytes make strange messages.
void check_csv_bytes(std::string_view text, const std::string& file) {
  using namespace std::string_view_literals;
  CONCORD_CHECK(!text.starts_with("\xff\xfe"sv) && !text.starts_with("\xfe\xff"sv), FormatError,
                "{}, byte 0: this is text in UTF-16. Save the table as CSV in UTF-8", file);
  CONCORD_CHECK(!text.starts_with("PK\x03\x04"sv) && !text.starts_with("\xd0\xcf\x11\xe0"sv), FormatError,
                "{}, byte 0: this is a workbook or an archive and no text. Save the table as CSV", file);
  const std::size_t zero = text.find('\0');
  CONCORD_CHECK(zero == std::string_view::npos, FormatError, "{}, byte {}: a zero byte; this is no text", file, zero);
}

std::size_t count_csv_lines(std::string_view text) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) ? 1 : 0;
  }
  return lines;
}

}  // namespace

std::string read_csv_text(const std::filesystem::path& path) {
  InputFile file(path);
  const std::uint64_t bytes = file.remaining(), memory = physical_memory_bytes();
  CONCORD_CHECK(memory == 0 || bytes <= memory, OutOfMemory,
                "{}: a table is read as a whole, and this one has {}, more than the memory of {}. Cut it into several "
                "files, or store it as arrays",
                printable(path.string()), human_bytes(bytes), human_bytes(memory));
  std::string text(bytes, '\0');
  file.read(std::as_writable_bytes(std::span(text)), "text");
  file.expect_end();
  check_csv_bytes(text, printable(path.string()));
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

char find_csv_separator(std::string_view text) {
  char best = ',';
  std::size_t most_alike = 0;
  double most_numbers = -1;
  // A row that it cuts has another number of fields; nor may a quote without end be an error here.
  const std::string sample(text.substr(0, kSampledCsvBytes));
  for (const char separator : kCsvSeparators) {
    CsvRows rows(sample, 0, "", separator);
    std::size_t expected = 0, alike = 0, fields = 0, numbers = 0;
    try {
      for (std::size_t row = 0; row < kSampledCsvRows && rows.next(); ++row) {
        if (row == 0) expected = rows.fields().size();
        if (expected < 2) break;
        alike += rows.fields().size() == expected && rows.problem().empty() ? 1 : 0;
        fields += rows.fields().size();
        numbers += static_cast<std::size_t>(std::ranges::count_if(rows.fields(), [&](std::string_view field) {
          return parse_csv_number(field, separator != ',').kind == CsvFieldKind::number;
        }));
      }
    } catch (const FormatError&) {
    }
    // "1,5;2,5" and "7,red;blue" are split alike by both: what yields more numbers is right.
    const double share = fields > 0 ? static_cast<double>(numbers) / static_cast<double>(fields) : 0;
    if (alike > most_alike || (alike == most_alike && alike > 0 && share > most_numbers)) {
      best = separator;
      most_alike = alike;
      most_numbers = share;
    }
  }
  return best;
}

CsvRows::CsvRows(const std::string& text, std::size_t begin, std::string file, char separator, std::int64_t line)
    : at_(text.data() + begin),
      end_(text.data() + text.size()),
      file_(std::move(file)),
      separator_(separator),
      line_(line),
      row_line_(line) {
  for (const char stop : {separator, '\n', '\r', '\0'}) stops_[static_cast<unsigned char>(stop)] = true;
  for (const char begins : {' ', '\t', '"'}) begins_[static_cast<unsigned char>(begins)] = begins != separator;
}

const char* CsvRows::skip_spaces(const char* at) const {
  while (at != end_ && (*at == ' ' || (*at == '\t' && separator_ != '\t'))) ++at;
  return at;
}

const char* CsvRows::end_line(const char* at) {
  if (at == end_) return at;
  ++line_;
  return at + (*at == '\r' && at + 1 != end_ && at[1] == '\n' ? 2 : 1);
}

const char* CsvRows::read_quoted(const char* at) {
  const std::int64_t opened = line_;
  const char* const first = ++at;
  bool has_doubled = false;
  for (;;) {
    at = at == end_ ? nullptr : static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end_ - at)));
    CONCORD_CHECK(at != nullptr, FormatError, "{}, line {}: the quote that opens here is not closed", file_, opened);
    if (at + 1 == end_ || at[1] != '"') break;
    has_doubled = true;
    at += 2;
  }
  std::string_view text(first, static_cast<std::size_t>(at - first));
  line_ += static_cast<std::int64_t>(count_csv_lines(text));
  if (has_doubled) {
    std::string& single = unquoted_.emplace_back();
    for (std::size_t i = 0; i < text.size(); ++i) {
      single += text[i];
      if (text[i] == '"') ++i;
    }
    text = single;
  }
  fields_.push_back(text);
  at = skip_spaces(at + 1);
  if (at != end_ && !stops_[static_cast<unsigned char>(*at)]) {
    if (problem_.empty()) problem_ = fmt::format("text behind the closing quote of field {}", fields_.size());
    while (at != end_ && !stops_[static_cast<unsigned char>(*at)]) ++at;
  }
  return at;
}

bool CsvRows::next() {
  fields_.clear();
  unquoted_.clear();
  problem_.clear();
  const char* at = skip_spaces(at_);
  while (at != end_ && (*at == '\n' || *at == '\r')) at = skip_spaces(end_line(at));
  row_line_ = line_;
  if (at == end_) {
    at_ = end_;
    return false;
  }
  const auto is_stop = [this](const char* place) { return stops_[static_cast<unsigned char>(*place)]; };
  for (;;) {
    if (begins_[static_cast<unsigned char>(*at)]) at = skip_spaces(at);
    if (*at == '"') {
      at = read_quoted(at);
    } else {
      const char* const first = at;
      while (!is_stop(at)) ++at;
      const char* last = at;
      while (last != first && (last[-1] == ' ' || last[-1] == '\t')) --last;
      fields_.emplace_back(first, static_cast<std::size_t>(last - first));
    }
    if (*at != separator_) break;
    ++at;
    if (fields_.size() == kMostCsvFields) {
      throw FormatError(fmt::format("{}, line {}: more than {} fields", file_, row_line_, kMostCsvFields));
    }
  }
  at_ = end_line(at);
  return true;
}

}  // namespace concord::data
