# concord_families(TARGET DIRECTORY dir NAMESPACE namespace HEADER header): a file of an operator family ends with a function
#   void add_<family>(Kernels& kernels) …
# which enters the family's kernels into its backend's table. This collects them: a generated source defines
# add_families(Kernels&), which calls all of those in `dir`. So a family is a file, and no list names it.
function(concord_families target)
  cmake_parse_arguments(FAMILIES "" "DIRECTORY;NAMESPACE;HEADER" "" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FAMILIES_DIRECTORY}/*.cpp")
  set(output "${PROJECT_BINARY_DIR}/generated/${target}_families.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/collect_families.cmake")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DSOURCES=${sources}" "-DNAMESPACE=${FAMILIES_NAMESPACE}"
      "-DHEADER=${FAMILIES_HEADER}" -P "${script}"
    DEPENDS ${sources} "${script}"
    COMMENT "Collecting the operator families of ${target}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
