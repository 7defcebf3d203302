// The name of this machine, the addresses of its network interfaces, and connections that notice their end. Internal
// to the library.
#pragma once

#include <chrono>
#include <string>

namespace concord::collective {

[[nodiscard]] std::string host_name();

/// The address, as numbers, of an interface that is given by its name ("eth0") or by its address. Throws IoError,
/// which lists the interfaces there are.
[[nodiscard]] std::string address_of_interface(const std::string& name);

/// The address of the only interface that other machines may reach; empty if there is none, or several.
[[nodiscard]] std::string only_outer_address();

/// The address of a host, as numbers, if it is one of this machine; else empty. Throws IoError for a host that
/// does not exist.
[[nodiscard]] std::string own_address_of(const std::string& host);

/// The address, as numbers, at which this machine serves what others find at `host`; empty if that is another machine.
/// Throws IoError for a host that does not exist.
[[nodiscard]] std::string address_to_serve(const std::string& host);

/// Whether only processes of this machine reach the address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// Lets the system end a TCP connection when the other machine does not answer for the time: it asks by itself.
void end_when_silent(int socket, std::chrono::duration<double> time);

}  // namespace concord::collective
