// What a piece of work throws, as text.
#pragma once

#include <functional>
#include <string>

#include "concord/core/error.hpp"

namespace concord::test {

/// What the work throws: "ArgumentError: …"; "nothing" without. An exception that is no concord::Error is named so.
inline std::string thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const ArgumentError& error) {
    return std::string("ArgumentError: ") + error.what();
  } catch (const ShapeError& error) {
    return std::string("ShapeError: ") + error.what();
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("no Error of Concord: ") + error.what();
  }
  return "nothing";
}

}  // namespace concord::test
