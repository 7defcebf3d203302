// Reading and writing what machines say about themselves.
#include "concord/collective/machines.hpp"

#include <fmt/format.h>

#include "concord/core/check.hpp"
#include "concord/core/json.hpp"
#include "concord/core/text.hpp"

namespace concord::collective {

std::string Machines::place() const { return fmt::format("{}:{}", host, port); }

std::string Machines::number() const {
  return fewest > 0 ? fmt::format("{}:{}", fewest, count) : std::to_string(count);
}

Machines machines_at(const std::string& place, int count, int fewest) {
  const std::size_t colon = place.rfind(':');
  Machines machines{count, place.substr(0, colon), 0, fewest};
  if (machines.host.starts_with('[') && machines.host.ends_with(']'))
    machines.host = machines.host.substr(1, machines.host.size() - 2);
  const auto port = number_in_text<std::uint16_t>(colon == std::string::npos ? "" : place.substr(colon + 1));
  CONCORD_CHECK(!machines.host.empty() && port && *port > 0, ArgumentError,
                "\"{}\" is no place for machines to meet; it must be HOST:PORT, such as node0:29400", place);
  machines.port = *port;
  return machines;
}

std::string Machine::text() const {
  return nlohmann::json{{"version", version}, {"host", host},   {"address", address},     {"machines", machines},
                        {"ranks", ranks},     {"least", least}, {"serves", serves_store}, {"id", id}}
      .dump();
}

Machine Machine::of(const std::string& text, int place) {
  const nlohmann::json json = parse_json(text, fmt::format("what machine {} says about itself", place));
  CONCORD_CHECK(json.is_object(), ArgumentError, "machine {} does not run Concord", place);
  return {.version = json.value("version", ""),
          .host = json.value("host", ""),
          .address = json.value("address", ""),
          .machines = json.value("machines", ""),
          .id = json.value("id", ""),
          .ranks = json.value("ranks", 0),
          .least = json.value("least", 0),
          .place = place,
          .serves_store = json.value("serves", false)};
}

std::string Machine::mismatch(const Machine& other) const {
  if (other.version != version) {
    return fmt::format("{} has version {} of Concord, and {} has version {}; all machines need the same", host, version,
                       other.host, other.version);
  }
  if (other.machines != machines) {
    return fmt::format("{} was started with --nodes {}, and {} with --nodes {}", host, machines, other.host,
                       other.machines);
  }
  if (other.least != least) {
    return fmt::format("{} was started with --min-ranks {}, and {} with {}; 0 is without it", host, least, other.host,
                       other.least);
  }
  return {};
}

}  // namespace concord::collective
