// Lines to fields; label_column.cpp says what the labels are.
#include "concord/data/records/sample_list.hpp"

#include <algorithm>
#include <deque>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/label_column.hpp"

namespace concord::data {
namespace {

class ListReader {
 public:
  ListReader(std::string_view text, const std::filesystem::path& file, const RecordOptions& options)
      : text_(text), file_(printable(file.string())), options_(options) {}

  SampleList read() {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    while (!text_.empty()) {
      ++line_;
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      read_line(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
    }
    CONCORD_CHECK(!lines_.empty(), FormatError, "{}: the list has no line", file_);
    for (std::size_t column = 0; column < columns_; ++column) list_.labels.push_back(column_of(column));
    return std::move(list_);
  }

 private:
  [[nodiscard]] std::string place_of(std::size_t line) const { return fmt::format("{}, line {}", file_, line); }
  [[noreturn]] void fail(std::size_t line, std::string_view message) const {
    throw FormatError(fmt::format("{}: {}", place_of(line), message));
  }

  void read_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find('\0') != std::string_view::npos) fail(line_, "has a zero byte; a list is a text in UTF-8");
    if (std::all_of(line.begin(), line.end(), is_space)) return;
    fields_.clear();
    const char separator = line.find('\t') == std::string_view::npos ? ' ' : '\t';
    while (true) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (line.empty()) break;
      fields_.push_back(line.starts_with('"') ? quoted(line) : plain(line, separator));
    }
    for (const std::string_view& field : fields_) {
      if (field.empty()) fail(line_, &field == fields_.data() ? "the path is empty" : "the label is empty");
    }
    const std::size_t labels = fields_.size() - 1;
    if (lines_.empty()) {
      if (labels == 0 && options_.masks.empty()) fail(line_, "there is no label after the path");
      columns_ = labels;
    } else if (labels != columns_) {
      fail(line_,
           fmt::format("has {} label{}, line {} has {}; a path with blanks stands in quotes, or tabs separate it",
                       labels, labels == 1 ? "" : "s", lines_[0], columns_));
    }
    list_.paths.add(fields_[0]);
    lines_.push_back(line_);
    labels_.insert(labels_.end(), fields_.begin() + 1, fields_.end());
  }

  static std::string_view plain(std::string_view& line, char separator) {
    std::string_view field = line.substr(0, std::min(line.find(separator), line.size()));
    line.remove_prefix(field.size());
    field.remove_suffix(field.size() - 1 - field.find_last_not_of(' '));
    return field;
  }

  std::string_view quoted(std::string_view& line) {
    std::string content;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] != '"') {
        content += line[i];
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        content += line[i++];
      } else {
        if (i + 1 < line.size() && !is_space(line[i + 1])) fail(line_, "there is text right after the closing quote");
        line.remove_prefix(i + 1);
        return unquoted_.emplace_back(std::move(content));
      }
    }
    fail(line_, "the closing quote is missing");
  }

  Column column_of(std::size_t index) {
    std::vector<std::string> names = index == 0 ? options_.class_names : std::vector<std::string>();
    Column column = label_column({.count = lines_.size(),
                                  .text = [&](std::size_t row) { return labels_[row * columns_ + index]; },
                                  .place = [&](std::size_t row) { return place_of(lines_[row]); }},
                                 names);
    if (index > 0) column.name = fmt::format("label{}", index + 1);
    if (index == 0 && column.values.dtype() == DType::i32) list_.class_names = std::move(names);
    return column;
  }

  std::string_view text_;
  std::string file_;
  const RecordOptions& options_;
  std::size_t line_ = 0, columns_ = 0;
  std::vector<std::size_t> lines_;  // of each row
  std::vector<std::string_view> labels_, fields_;
  std::deque<std::string> unquoted_;
  SampleList list_;
};

}  // namespace

SampleList parse_sample_list(std::string_view text, const std::filesystem::path& file, const RecordOptions& options) {
  return ListReader(text, file, options).read();
}

}  // namespace concord::data
