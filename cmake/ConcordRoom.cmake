# Rooms are object libraries named concord_<room>, joined into the shared library `concord` and, for the command and the
# tests, which look inside, into the static library `concord_internal`. Headers of the rooms are included as
# "concord/<room>/<file>.hpp", in the tree and after installation alike.

set(CONCORD_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${CONCORD_INCLUDE_DIR}")
if(NOT EXISTS "${CONCORD_INCLUDE_DIR}/concord")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src" "${CONCORD_INCLUDE_DIR}/concord" COPY_ON_ERROR SYMBOLIC)
endif()

add_library(concord_settings INTERFACE)
target_include_directories(concord_settings INTERFACE "${CONCORD_INCLUDE_DIR}" "${CONCORD_UMBRELLA_DIR}")
target_compile_features(concord_settings INTERFACE cxx_std_20)

# The warnings that our own code is free of.
add_library(concord_strict INTERFACE)
target_compile_options(concord_strict INTERFACE
  $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${CONCORD_WERROR}>:-Werror>>
  # GCC 12 reports members of aggregates whose construction may throw; -Wuninitialized stays on. GCC 13 reports a vector's
  # own memory.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-free-nonheap-object>)
if(CONCORD_SANITIZE)
  # GCC 12 reports fmt's headers once sanitizers keep it from seeing through them.
  target_compile_options(concord_strict INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  add_compile_options(-fsanitize=${CONCORD_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CONCORD_SANITIZE})
endif()

define_property(GLOBAL PROPERTY CONCORD_ROOMS BRIEF_DOCS "Rooms" FULL_DOCS "All object libraries of the shared library")

# Several sources of a target are compiled at once, which reads headers once for all of them: names in anonymous namespaces
# are unique within a module.
function(concord_compile_together)
  if(CONCORD_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CONCORD_UNITY})
  endif()
endfunction()

function(_concord_objects target directory)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.cpp")
  if(NOT sources)
    file(WRITE "${PROJECT_BINARY_DIR}/generated/${target}.cpp" "")
    set(sources "${PROJECT_BINARY_DIR}/generated/${target}.cpp")
  endif()
  add_library(${target} OBJECT ${sources})
  # Only what public headers declare is exported (src/core/export.hpp).
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  concord_compile_together(${target})
  target_link_libraries(${target} PRIVATE concord_settings concord_strict)
  set_property(GLOBAL APPEND PROPERTY CONCORD_ROOMS ${target})
endfunction()

# concord_room(NAME USES rooms… LINK targets…)
function(concord_room name)
  cmake_parse_arguments(ROOM "" "" "USES;LINK" ${ARGN})
  _concord_objects(concord_${name} src/${name})
  target_link_libraries(concord_${name} PRIVATE fmt::fmt ${ROOM_LINK})
  target_include_directories(concord_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cl_kernels")  # shared/
  set_property(GLOBAL PROPERTY CONCORD_USES_${name} "${ROOM_USES}")
endfunction()

# concord_backend(NAME DIRECTORY dir TABLE header [KERNELS] LINK targets…): only the registry (device/registry.cpp) knows its
# name. `header` declares its table of kernels.
function(concord_backend name)
  cmake_parse_arguments(BACKEND "KERNELS" "DIRECTORY;TABLE" "LINK" ${ARGN})
  _concord_objects(concord_${name} ${BACKEND_DIRECTORY})
  target_link_libraries(concord_${name} PRIVATE fmt::fmt ${BACKEND_LINK})
  target_include_directories(concord_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cl_kernels")
  string(TOUPPER ${name} upper)
  target_compile_definitions(concord_${name} PRIVATE CONCORD_BACKEND_${upper})
  target_compile_definitions(concord_device PRIVATE CONCORD_WITH_${upper})
  concord_families(concord_${name} DIRECTORY ${BACKEND_DIRECTORY} NAMESPACE concord::${name}
    HEADER "${PROJECT_SOURCE_DIR}/${BACKEND_DIRECTORY}/${BACKEND_TABLE}")
  if(BACKEND_KERNELS)
    concord_embed_kernels(concord_${name})
  endif()
endfunction()

# What is linked with the objects of all rooms.
function(_concord_join target)
  get_property(rooms GLOBAL PROPERTY CONCORD_ROOMS)
  foreach(room IN LISTS rooms)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  # Strangers get none of these: nothing of them is in a public header.
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:fmt::fmt> $<BUILD_INTERFACE:ZLIB::ZLIB> $<BUILD_INTERFACE:PNG::PNG>
    $<BUILD_INTERFACE:concord_zip> $<BUILD_INTERFACE:JPEG::JPEG> $<BUILD_INTERFACE:LibArchive::LibArchive>
    $<BUILD_INTERFACE:concord_lmdb> $<BUILD_INTERFACE:concord_sndfile>
    $<BUILD_INTERFACE:concord_gloo>)
  foreach(backend opencl cpu)
    if(TARGET concord_${backend}_dependencies)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:concord_${backend}_dependencies>)
    endif()
  endforeach()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${CONCORD_INCLUDE_DIR}> $<BUILD_INTERFACE:${CONCORD_UMBRELLA_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# The libraries, and the installation of the shared one.
function(concord_library)
  add_library(concord SHARED)
  add_library(concord::concord ALIAS concord)
  _concord_join(concord)
  add_library(concord_internal STATIC)
  _concord_join(concord_internal)

  # Until 1.0 a minor version may break programs.
  set(soversion ${PROJECT_VERSION_MAJOR})
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion 0.${PROJECT_VERSION_MINOR})
  endif()
  set_target_properties(concord PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion})

  # Templates of other libraries are compiled into ours as exported, since their headers say so: hidden by a list.
  set(map "${PROJECT_SOURCE_DIR}/cmake/concord.map")
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-Wl,--version-script=${map}" CONCORD_HAS_VERSION_SCRIPT)
  if(CONCORD_HAS_VERSION_SCRIPT)
    target_link_options(concord PRIVATE "-Wl,--version-script=${map}")
    set_target_properties(concord PROPERTIES LINK_DEPENDS "${map}")
  endif()
  _concord_install()
endfunction()

# The shared library, its public headers and the packages of CMake and pkg-config, which all may be moved together.
function(_concord_install)
  include(CMakePackageConfigHelpers)
  install(TARGETS concord EXPORT concord-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

  install(FILES "${CONCORD_UMBRELLA_DIR}/concord/concord.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/concord")
  foreach(header IN LISTS CONCORD_PUBLIC_HEADERS)
    get_filename_component(folder "${header}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/src/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/concord/${folder}")
  endforeach()

  set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/concord)
  install(EXPORT concord-targets NAMESPACE concord:: FILE concord-targets.cmake DESTINATION ${cmake_folder})
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/concord-config.cmake.in"
    "${PROJECT_BINARY_DIR}/concord-config.cmake" INSTALL_DESTINATION ${cmake_folder})
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/concord-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/concord-config.cmake" "${PROJECT_BINARY_DIR}/concord-config-version.cmake"
    DESTINATION ${cmake_folder})

  # Its folder relative to the prefix, and back.
  file(RELATIVE_PATH back "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" back "${back}")
  file(RELATIVE_PATH lib "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  file(RELATIVE_PATH include "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/concord.pc.in" "${PROJECT_BINARY_DIR}/concord.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/concord.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
