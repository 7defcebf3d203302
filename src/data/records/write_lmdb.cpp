// The writer of databases, by liblmdb. Values are kept until there are some megabytes of them; then they are one
// transaction, which is done again if the map proves too small.
#include "concord/data/records/write_lmdb.hpp"

#include <lmdb.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/utf8.hpp"

namespace concord::data {
namespace {

constexpr std::uint64_t kLeastMapBytes = std::uint64_t{16} << 20;
constexpr std::size_t kTransactionBytes = std::size_t{8} << 20;
constexpr std::size_t kMostKeyBytes = 511;  // of LMDB

}  // namespace

struct LmdbWriter::Database {
  explicit Database(std::filesystem::path path) : folder(std::move(path)), name(printable(folder.string())) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    if (environment != nullptr) mdb_env_close(environment);
    if (is_finished || environment == nullptr) return;
    std::error_code ignored;
    std::filesystem::remove(folder / "data.mdb", ignored);
    if (is_folder_new) std::filesystem::remove(folder, ignored);
  }

  void check(int status) const {
    CONCORD_CHECK(status != ENOMEM, OutOfMemory, "cannot write {}: {}", name, mdb_strerror(status));
    CONCORD_CHECK(status == MDB_SUCCESS, IoError, "cannot write {}: {}", name, mdb_strerror(status));
  }

  // Puts what is kept. Returns MDB_MAP_FULL for another try.
  int put_all() {
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(environment, nullptr, 0, &transaction));
    MDB_dbi database{};
    int status = mdb_dbi_open(transaction, nullptr, 0, &database);
    for (auto entry = kept.begin(); entry != kept.end() && status == MDB_SUCCESS; ++entry) {
      MDB_val key{entry->first.size(), const_cast<char*>(entry->first.data())};
      MDB_val value{entry->second.size(), entry->second.data()};
      status = mdb_put(transaction, database, &key, &value, MDB_NOOVERWRITE);
    }
    if (status == MDB_SUCCESS) return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return status;
  }

  void flush() {
    int status = MDB_SUCCESS;
    while ((status = put_all()) == MDB_MAP_FULL) {
      map_bytes *= 2;
      check(mdb_env_set_mapsize(environment, static_cast<std::size_t>(map_bytes)));
    }
    check(status);
    if (!kept.empty()) last = std::max(last, std::prev(kept.end())->first);
    kept.clear();
    kept_bytes = 0;
  }

  // Keys beyond the last one need no search.
  [[nodiscard]] bool has(std::string_view key) const {
    if (kept.find(key) != kept.end()) return true;
    if (key > last) return false;
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction));
    MDB_dbi database{};
    MDB_val wanted{key.size(), const_cast<char*>(key.data())}, value{};
    int status = mdb_dbi_open(transaction, nullptr, 0, &database);
    if (status == MDB_SUCCESS) status = mdb_get(transaction, database, &wanted, &value);
    mdb_txn_abort(transaction);
    if (status != MDB_NOTFOUND) check(status);
    return status == MDB_SUCCESS;
  }

  std::filesystem::path folder;
  std::string name, last;  // the largest key in the database
  MDB_env* environment = nullptr;
  std::map<std::string, std::string, std::less<>> kept;
  std::size_t kept_bytes = 0;
  std::uint64_t map_bytes = 0;
  bool is_finished = false, is_folder_new = false;
};

LmdbWriter::LmdbWriter(const std::filesystem::path& directory, std::uint64_t bytes)
    : database_(std::make_unique<Database>(directory)) {
  Database& database = *database_;
  std::error_code error;
  database.is_folder_new = std::filesystem::create_directories(directory, error);
  CONCORD_CHECK(!error, IoError, "cannot make the folder {}: {}", database.name, error.message());
  CONCORD_CHECK(!std::filesystem::exists(directory / "data.mdb", error), IoError,
                "cannot write {}: it holds a database already; remove it first", database.name);
  MDB_env* environment = nullptr;
  database.check(mdb_env_create(&environment));
  std::unique_ptr<MDB_env, void (*)(MDB_env*)> opening(environment, mdb_env_close);
  constexpr std::uint64_t kPage = 4096;
  database.map_bytes = std::max(kLeastMapBytes, (bytes + kPage - 1) / kPage * kPage);
  database.check(mdb_env_set_mapsize(environment, static_cast<std::size_t>(database.map_bytes)));
  // Nobody else knows the database yet: it needs no locks, and one flush at the end.
  database.check(mdb_env_open(environment, directory.c_str(), MDB_NOLOCK | MDB_NOSYNC, 0666));
  database.environment = opening.release();
}

LmdbWriter::~LmdbWriter() = default;

void LmdbWriter::add(std::string_view key, std::span<const std::byte> value) {
  Database& database = *database_;
  CONCORD_CHECK(!database.is_finished, ArgumentError, "{}: the database is finished", database.name);
  CONCORD_CHECK(!key.empty() && key.size() <= kMostKeyBytes, ArgumentError, "{}: a key has 1 to {} bytes; got \"{}\"",
                database.name, kMostKeyBytes, printable(key));
  CONCORD_CHECK(!database.has(key), ArgumentError, "{}: there are two values of the key {}", database.name,
                printable(key));
  database.kept.try_emplace(std::string(key), reinterpret_cast<const char*>(value.data()), value.size());
  database.kept_bytes += key.size() + value.size();
  if (database.kept_bytes >= kTransactionBytes) database.flush();
}

void LmdbWriter::finish() {
  Database& database = *database_;
  CONCORD_CHECK(!database.is_finished, ArgumentError, "{}: the database is finished", database.name);
  database.flush();
  database.check(mdb_env_sync(database.environment, 1));
  database.is_finished = true;
}

}  // namespace concord::data
