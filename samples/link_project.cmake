# Installs the library below its build folder, builds link_project against it and runs that: the test of what a user
# does who has Concord installed. Run by CTest.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

set(prefix "${BUILD}/link_project/installed")
set(build "${BUILD}/link_project/build")
file(REMOVE_RECURSE "${BUILD}/link_project")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${build}")
run("${build}/two_steps")
