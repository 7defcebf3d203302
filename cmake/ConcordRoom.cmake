# Rooms are object libraries named concord_<room>, joined into the shared library `concord`. Headers of the rooms are
# included as "concord/<room>/<file>.hpp", in the tree and after installation alike.

set(CONCORD_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${CONCORD_INCLUDE_DIR}")
if(NOT EXISTS "${CONCORD_INCLUDE_DIR}/concord")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src" "${CONCORD_INCLUDE_DIR}/concord" COPY_ON_ERROR SYMBOLIC)
endif()

add_library(concord_settings INTERFACE)
target_include_directories(concord_settings INTERFACE "${CONCORD_INCLUDE_DIR}")
target_compile_features(concord_settings INTERFACE cxx_std_20)

# Warnings are errors on our own code.
add_library(concord_strict INTERFACE)
target_compile_options(concord_strict INTERFACE
  $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  # GCC 12 reports members of aggregates whose construction may throw; -Wuninitialized stays on.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(CONCORD_SANITIZE)
  # GCC 12 reports fmt's headers once sanitizers keep it from seeing through them.
  target_compile_options(concord_strict INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  add_compile_options(-fsanitize=${CONCORD_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CONCORD_SANITIZE})
endif()

define_property(GLOBAL PROPERTY CONCORD_ROOMS BRIEF_DOCS "Rooms" FULL_DOCS "All object libraries of the shared library")

function(_concord_objects target directory)
  file(GLOB sources CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/${directory}/*.cpp" "${PROJECT_SOURCE_DIR}/${directory}/*/*.cpp")
  if(NOT sources)
    file(WRITE "${PROJECT_BINARY_DIR}/generated/${target}.cpp" "")
    set(sources "${PROJECT_BINARY_DIR}/generated/${target}.cpp")
  endif()
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE concord_settings concord_strict)
  set_property(GLOBAL APPEND PROPERTY CONCORD_ROOMS ${target})
endfunction()

# concord_room(NAME USES rooms… LINK targets…)
function(concord_room name)
  cmake_parse_arguments(ROOM "" "" "USES;LINK" ${ARGN})
  _concord_objects(concord_${name} src/${name})
  target_link_libraries(concord_${name} PRIVATE fmt::fmt ${ROOM_LINK})
  target_include_directories(concord_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cl_kernels")  # formulas.h, philox.h
  set_property(GLOBAL PROPERTY CONCORD_USES_${name} "${ROOM_USES}")
endfunction()

# concord_backend(NAME DIRECTORY dir [KERNELS] LINK targets…): only the registry (device/registry.cpp) knows its name.
function(concord_backend name)
  cmake_parse_arguments(BACKEND "KERNELS" "DIRECTORY" "LINK" ${ARGN})
  _concord_objects(concord_${name} ${BACKEND_DIRECTORY})
  target_link_libraries(concord_${name} PRIVATE fmt::fmt ${BACKEND_LINK})
  target_include_directories(concord_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cl_kernels")
  string(TOUPPER ${name} upper)
  target_compile_definitions(concord_${name} PRIVATE CONCORD_BACKEND_${upper})
  target_compile_definitions(concord_device PRIVATE CONCORD_WITH_${upper})
  if(BACKEND_KERNELS)
    concord_embed_kernels(concord_${name})
  endif()
endfunction()

# The shared library, its export and its installation.
function(concord_library)
  get_property(rooms GLOBAL PROPERTY CONCORD_ROOMS)
  add_library(concord SHARED)
  add_library(concord::concord ALIAS concord)
  foreach(room IN LISTS rooms)
    target_sources(concord PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  target_link_libraries(concord PRIVATE fmt::fmt ZLIB::ZLIB PNG::PNG)
  if(TARGET concord_opencl_dependencies)
    target_link_libraries(concord PRIVATE $<BUILD_INTERFACE:concord_opencl_dependencies>)
  endif()
  if(TARGET concord_cpu_dependencies)
    target_link_libraries(concord PRIVATE $<BUILD_INTERFACE:concord_cpu_dependencies>)
  endif()
  target_compile_features(concord PUBLIC cxx_std_20)
  target_include_directories(concord PUBLIC
    $<BUILD_INTERFACE:${CONCORD_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(concord PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX)

  include(CMakePackageConfigHelpers)
  install(TARGETS concord EXPORT concord-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/concord
    FILES_MATCHING PATTERN "*.hpp" PATTERN "opencl" EXCLUDE PATTERN "cli" EXCLUDE)
  install(EXPORT concord-targets NAMESPACE concord:: FILE concord-targets.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/concord)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/concord-config.cmake.in"
    "${PROJECT_BINARY_DIR}/concord-config.cmake" INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/concord)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/concord-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/concord-config.cmake" "${PROJECT_BINARY_DIR}/concord-config-version.cmake"
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/concord)
endfunction()
