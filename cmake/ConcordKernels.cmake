# Embeds every cl_kernels/*.cl and *.h into the OpenCL backend: a generated source with one table, name → text, read
# through src/opencl/program/source.hpp. A kernel file that C++ asks for by a wrong name fails the test "opencl/source".
function(concord_embed_kernels target)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/cl_kernels/*.cl" "${PROJECT_SOURCE_DIR}/cl_kernels/*.h")
  set(output "${PROJECT_BINARY_DIR}/generated/kernel_sources.cpp")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DROOT=${PROJECT_SOURCE_DIR}/cl_kernels"
      "-DKERNELS=${kernels}" -P "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
    DEPENDS ${kernels} "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
    COMMENT "Embedding OpenCL kernels" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
