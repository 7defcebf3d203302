# The libraries Concord is built with. A missing one is named with the Debian package that has it.
macro(_concord_need package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. On Debian and Ubuntu: apt-get install ${debian}")
  endif()
endmacro()

_concord_need(fmt libfmt-dev)
_concord_need(ZLIB zlib1g-dev)
_concord_need(nlohmann_json nlohmann-json3-dev)
_concord_need(CLI11 libcli11-dev)
_concord_need(Threads libc6-dev)

if(CONCORD_OPENCL)
  _concord_need(OpenCL ocl-icd-opencl-dev)
  _concord_need(Boost libboost-dev)
  find_library(CONCORD_CLBLAST clblast)
  find_path(CONCORD_CLBLAST_INCLUDE clblast.h)
  if(NOT CONCORD_CLBLAST OR NOT CONCORD_CLBLAST_INCLUDE)
    message(FATAL_ERROR "CLBlast was not found. On Debian and Ubuntu: apt-get install libclblast-dev")
  endif()
  add_library(concord_opencl_dependencies INTERFACE)
  target_include_directories(concord_opencl_dependencies SYSTEM INTERFACE "${CONCORD_CLBLAST_INCLUDE}")
  # 1.2 is what every device offers; nothing newer is called.
  target_compile_definitions(concord_opencl_dependencies INTERFACE
    CL_TARGET_OPENCL_VERSION=120 BOOST_COMPUTE_MAX_CL_VERSION=102
    BOOST_ALLOW_DEPRECATED_HEADERS BOOST_BIND_GLOBAL_PLACEHOLDERS CONCORD_VERSION="${PROJECT_VERSION}")
  target_link_libraries(concord_opencl_dependencies INTERFACE
    "${CONCORD_CLBLAST}" OpenCL::OpenCL Boost::boost ZLIB::ZLIB Threads::Threads)
endif()

if(CONCORD_CPU)
  find_package(dnnl QUIET CONFIG)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(NOT TARGET DNNL::dnnl)
    message(FATAL_ERROR "oneDNN was not found. On Debian and Ubuntu: apt-get install libdnnl-dev")
  endif()
  if(NOT OpenMP_CXX_FOUND)
    message(FATAL_ERROR "The compiler has no OpenMP. On Debian and Ubuntu: apt-get install g++")
  endif()
  add_library(concord_cpu_dependencies INTERFACE)
  target_link_libraries(concord_cpu_dependencies INTERFACE DNNL::dnnl OpenMP::OpenMP_CXX Threads::Threads)
endif()
