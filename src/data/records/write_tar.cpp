// The writer of shards, by libarchive: plain headers (ustar), and PAX headers where a name is long or not ASCII.
#include "concord/data/records/write_tar.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {

namespace {

constexpr int kWrittenAtATime = 1 << 20;

}  // namespace

struct TarWriter::Output {
  Output(const std::filesystem::path& path, bool has_ascii_names) : name(printable(path.string())), file(path) {
    if (writer == nullptr || entry == nullptr) throw OutOfMemory("no memory for libarchive");
    check(archive_write_set_format_pax_restricted(writer.get()));
    // Names as they are, under every locale. libarchive says so in front of every file.
    if (!has_ascii_names) check(archive_write_set_options(writer.get(), "hdrcharset=BINARY"));
    // The page cache keeps what is written at a time in pages as large, which are faster to read.
    check(archive_write_set_bytes_per_block(writer.get(), kWrittenAtATime));
    check(archive_write_set_bytes_in_last_block(writer.get(), 1));
    check(archive_write_open(writer.get(), this, nullptr, write_block, nullptr));
  }

  static la_ssize_t write_block(archive* writer, void* data, const void* block, std::size_t bytes) {
    auto& output = *static_cast<Output*>(data);
    try {
      output.file.write({static_cast<const std::byte*>(block), bytes});
      return static_cast<la_ssize_t>(bytes);
    } catch (const Error& problem) {
      output.error = problem.what();
      archive_set_error(writer, EIO, "%s", "write error");
      return ARCHIVE_FATAL;
    }
  }

  void check(la_ssize_t status) const {
    if (status >= 0 || status == ARCHIVE_WARN) return;
    const char* const reason = archive_error_string(writer.get());
    throw IoError(!error.empty() ? error : fmt::format("cannot write {}: {}", name, reason == nullptr ? "" : reason));
  }

  std::string name, error;
  AtomicFile file;  // outlives the writer, which writes the end of the archive even where nobody wants it
  std::unique_ptr<archive, int (*)(archive*)> writer{archive_write_new(), archive_write_free};
  std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry{archive_entry_new(), archive_entry_free};
  bool is_finished = false;
};

TarWriter::TarWriter(const std::filesystem::path& path, bool has_ascii_names)
    : output_(std::make_unique<Output>(path, has_ascii_names)) {}

TarWriter::~TarWriter() = default;

void TarWriter::add(std::string_view key, std::string_view extension, std::span<const std::byte> bytes) {
  CONCORD_CHECK(!output_->is_finished, ArgumentError, "{}: the shard is finished", output_->name);
  const std::string path = fmt::format("{}.{}", key, extension);
  const std::string_view base = key.substr(key.rfind('/') + 1);  // all of it where there is no '/'
  const bool leads_out = key.starts_with('/') || fmt::format("/{}/", key).find("/../") != std::string::npos;
  CONCORD_CHECK(!base.empty() && base.find('.') == std::string_view::npos && !extension.empty() && !leads_out &&
                    path.find('\0') == std::string::npos && extension.find('/') == std::string_view::npos,
                ArgumentError, "\"{}\" cannot be the name of a file of a sample", printable(path));
  archive_entry* const entry = archive_entry_clear(output_->entry.get());
  archive_entry_set_pathname(entry, path.c_str());
  archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_mtime(entry, 0, 0);
  output_->check(archive_write_header(output_->writer.get(), entry));
  for (std::size_t done = 0; done < bytes.size();) {
    const la_ssize_t now = archive_write_data(output_->writer.get(), bytes.data() + done, bytes.size() - done);
    output_->check(now);
    CONCORD_CHECK(now > 0, IoError, "cannot write {}", output_->name);
    done += static_cast<std::size_t>(now);
  }
}

void TarWriter::finish() {
  CONCORD_CHECK(!output_->is_finished, ArgumentError, "{}: the shard is finished", output_->name);
  output_->check(archive_write_close(output_->writer.get()));
  output_->file.commit();
  output_->is_finished = true;
}

}  // namespace concord::data
