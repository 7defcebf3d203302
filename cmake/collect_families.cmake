# Writes OUTPUT: add_families(Kernels&) of NAMESPACE, which calls each add_<family>(Kernels& kernels) that SOURCES define.
set(declarations "")
set(calls "")
foreach(source IN LISTS SOURCES)
  file(STRINGS "${source}" definitions REGEX "^void add_[a-z0-9_]+\\(Kernels& kernels\\)")
  foreach(definition IN LISTS definitions)
    string(REGEX REPLACE "^void (add_[a-z0-9_]+).*" "\\1" name "${definition}")
    string(APPEND declarations "void ${name}(Kernels& kernels);\n")
    string(APPEND calls "  ${name}(kernels);\n")
  endforeach()
endforeach()
set(text "// Generated from the operator families of the backend (cmake/ConcordFamilies.cmake).
#include \"${HEADER}\"

namespace ${NAMESPACE} {
${declarations}
void add_families(Kernels& kernels) {
${calls}}
}  // namespace ${NAMESPACE}
")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT text STREQUAL old)  # a source that changed elsewhere compiles nothing here
  file(WRITE "${OUTPUT}" "${text}")
endif()
