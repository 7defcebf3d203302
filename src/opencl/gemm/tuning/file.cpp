// The JSON files of tuning tables.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "concord-tuning";
constexpr int kVersion = 1;

/// The fields of one object of a file, by name and type. `where` is the start of the message about a missing or wrong
/// field.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    CONCORD_CHECK(object_.is_object(), FormatError, "{} is not an object", where_);
  }
  [[nodiscard]] bool has(const char* name) const { return object_.contains(name); }
  [[nodiscard]] std::string text(const char* name) const {
    const Json& value = at(name);
    CONCORD_CHECK(value.is_string(), FormatError, "{}: \"{}\" is not a string", where_, name);
    return value.get<std::string>();
  }
  /// From 1 to the largest Number.
  template <class Number>
  [[nodiscard]] Number count(const char* name) const {
    constexpr std::int64_t kMost = std::numeric_limits<Number>::max();
    const Json& value = at(name);
    const std::int64_t found = value.is_number_integer() ? value.get<std::int64_t>() : 0;
    CONCORD_CHECK(found >= 1 && found <= kMost, FormatError, "{}: \"{}\" is not an integer from 1 to {}", where_, name,
                  kMost);
    return static_cast<Number>(found);
  }
  [[nodiscard]] double seconds(const char* name) const {
    const Json& value = at(name);
    const bool is_time = value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
    CONCORD_CHECK(is_time, FormatError, "{}: \"{}\" is not a time in seconds", where_, name);
    return value.get<double>();
  }
  [[nodiscard]] const Json& at(const char* name) const {
    const auto found = object_.find(name);
    CONCORD_CHECK(found != object_.end(), FormatError, "{} has no \"{}\"", where_, name);
    return *found;
  }

 private:
  const Json& object_;
  std::string where_;
};

TuningEntry entry_of(const Json& json, const std::string& key) {
  const Fields fields(json, fmt::format("the matrix multiplication \"{}\"", key));
  TuningEntry entry;
  entry.choice.implementation = fields.text("implementation");
  if (fields.has("tile")) entry.choice.tiling = GemmTiling{fields.text("tile"), fields.count<std::int64_t>("parts")};
  entry.seconds = fields.seconds("seconds");
  entry.planned = fields.text("planned");
  entry.planned_seconds = fields.seconds("planned_seconds");
  return entry;
}

Json json_of(const TuningEntry& entry) {
  Json json{{"implementation", entry.choice.implementation}};
  if (entry.choice.tiling) {
    json["tile"] = entry.choice.tiling->tile;
    json["parts"] = entry.choice.tiling->parts;
  }
  json["seconds"] = entry.seconds;
  json["planned"] = entry.planned;
  json["planned_seconds"] = entry.planned_seconds;
  return json;
}

// Files that comments name were renamed, numbers became members of one argument and memories offsets from one, parts of
// k are added up without another launch, or groups claim their tiles.
constexpr std::array<EarlierDigests, 10> kEarlierDigests{
    {{"panel", "274ef3e2", {"8e91d82a", "abc90350", "245a4f0e"}},
     {"mma", "440543a2", {"1a44bcc9", "cea43490", "50bc7ec8", "a8c82a3f"}},
     {"tiled", "dd36e858", {"78990084", "b9e50fe1", "45abd40f"}},
     {"reference", "b75e5f03", {"aadb48a3", "1d8f6a99", "52bd4738"}},
     {"tma", "2cac98e8", {"74f6401e", "5aea7215", "156daf1e", "1d522489"}},
     {"scaled", "72897791", {"8c419f39", "e8614478"}},
     {"wgmma", "fecce313", {"1a439c47"}},
     {"wave", "0c91da53", {"0b3ecb88"}},
     {"sliced", "699b3be1", {"3905651a"}},
     {"lanes", "e39fd24e", {"e6068de9"}}}};

bool is_digest_of(std::string_view digest, std::string_view implementation, std::string_view now) {
  return digest == now || std::ranges::any_of(kEarlierDigests, [&](const EarlierDigests& one) {
           return one.implementation == implementation && one.now == now && !digest.empty() &&
                  std::ranges::find(one.then, digest) != one.then.end();
         });
}

}  // namespace

std::span<const EarlierDigests> earlier_digests() { return kEarlierDigests; }

KernelDigests kernel_digests() {
  KernelDigests digests;
  for (const GemmImplementation* one : gemm_implementations()) {
    uLong digest = 0;
    for (const std::string_view file : one->files) {
      if (file.empty()) continue;
      const std::string text = kernel_source(file);
      digest = crc32_z(digest, reinterpret_cast<const Bytef*>(text.data()), text.size());
    }
    digests.emplace(one->name, fmt::format("{:08x}", digest));
  }
  return digests;
}

std::optional<TuningTable> tuning_in(std::string_view text, const TuningOrigin& origin) {
  const Json json = parse_json(text, "the file");
  const Fields fields(json, "the file");
  CONCORD_CHECK(fields.text("format") == kFormat, FormatError, "its format is not \"{}\"", kFormat);
  const auto version = fields.count<std::int64_t>("version");
  CONCORD_CHECK(version == kVersion, opencl::NewerTable, "its version is {}, this library reads {}", version, kVersion);
  TuningTable table{fields.text("driver"), {}, 0};
  const TuningOrigin found{fields.text("device"), origin.driver, fields.count<std::uint32_t>("compute_units"),
                           fields.text("kind")};
  if (found != origin) return std::nullopt;
  const Json& products = fields.at("products");
  CONCORD_CHECK(products.is_object(), FormatError, "\"products\" is not an object");
  const Fields kernels(fields.at("kernels"), "\"kernels\"");
  const KernelDigests digests = kernel_digests();
  for (const auto& [key, value] : products.items()) {
    TuningEntry entry = entry_of(value, key);
    const auto now = digests.find(entry.choice.implementation);
    const bool holds = now != digests.end() && is_digest_of(kernels.text(now->first.c_str()), now->first, now->second);
    if (holds) {
      table.entries.emplace(key, std::move(entry));
    } else {
      ++table.outdated;
    }
  }
  return table;
}

std::optional<TuningTable> read_tuning(const std::filesystem::path& file, const TuningOrigin& origin) {
  return tuning_in(read_file(file), origin);
}

void write_tuning(const std::filesystem::path& file, const TuningOrigin& origin, const TuningEntries& entries,
                  Readers readers) {
  Json products = Json::object();
  for (const auto& [key, entry] : entries) products[key] = json_of(entry);
  const Json json{{"format", kFormat},
                  {"version", kVersion},
                  {"device", origin.device},
                  {"driver", origin.driver},
                  {"compute_units", origin.compute_units},
                  {"kind", origin.kind},
                  {"kernels", kernel_digests()},
                  {"products", products}};
  const std::string text = json.dump(1) + "\n";
  write_file_atomically(file, std::as_bytes(std::span(text)), Durability::durable, readers);
}

}  // namespace concord::opencl
