# The public headers: those of src/ that open with `namespace CONCORD_PUBLIC concord {` (src/core/export.hpp), and the two that
# hold macros for them. From these follow what is installed and the umbrella header <concord/concord.hpp>, which is generated.
# A header that becomes public or ceases to be so is noticed when CMake configures anew.
set(CONCORD_UMBRELLA_DIR "${PROJECT_BINARY_DIR}/generated/include")
set(CONCORD_PUBLIC_HEADERS core/export.hpp graph/scalar_function_list.hpp)

file(GLOB_RECURSE _headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/src/*.hpp")
set(_includes "")
foreach(_header IN LISTS _headers)
  file(STRINGS "${PROJECT_SOURCE_DIR}/src/${_header}" _marker LIMIT_COUNT 1 REGEX "^namespace CONCORD_PUBLIC concord {")
  if(_marker)
    list(APPEND CONCORD_PUBLIC_HEADERS "${_header}")
    string(APPEND _includes "#include \"concord/${_header}\"\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT "${CONCORD_UMBRELLA_DIR}/concord/concord.hpp" @ONLY CONTENT
"// Everything a program that uses Concord needs: #include <concord/concord.hpp>.
#pragma once

${_includes}")
