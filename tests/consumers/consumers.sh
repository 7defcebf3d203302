#!/usr/bin/env bash
# What strangers do with the library: an installation that was moved is found by CMake and by pkg-config, and the source
# tree is added to a project of another. Each builds samples/link_project/two_steps.cpp, and the first two run it; so
# does the third with --full, which compiles the library anew. Run by CTest.
#   consumers.sh [--full] SOURCE BUILD CMAKE GENERATOR COMPILER DEVICE [FLAG…]
# FLAGs go to the compiler, those that begin with -D to CMake.
set -euo pipefail
full=no
if [[ $1 == --full ]]; then
  full=yes
  shift
fi
source=$1 build=$2 cmake=$3 generator=$4 compiler=$5 device=$6
shift 6
flags=() options=()
for word in "$@"; do
  if [[ $word == -D* ]]; then options+=("$word"); else flags+=("$word"); fi
done
source "$source/tests/consumers/installed.sh"

# quietly COMMAND…: its output only where it fails
quietly() {
  "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }
}
# configure FOLDER [-D…]: in $work/FOLDER, the project tests/consumers/FOLDER
configure() {
  local folder=$1
  shift
  quietly "$cmake" -S "$source/tests/consumers/$folder" -B "$work/$folder" -G "$generator" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_CXX_FLAGS=${flags[*]}" "$@"
}
two_steps() {
  local text
  text=$("$@" "$device") || fail "failed: $*"
  [[ $text =~ ^2\ steps\ on\ .*,\ loss\ [0-9]+\.[0-9]+$ ]] || fail "unexpected from $1: $text"
  say "$consumer: $text"
}

if [[ $full == yes ]]; then
  consumer=add_subdirectory
  work=$build/consumers/full
  rm -rf "$work"
  mkdir -p "$work"
  configure add_subdirectory "${options[@]}"
  "$cmake" --build "$work/add_subdirectory" --target two_steps >"$work/log" || { tail -50 "$work/log"; fail "cannot build"; }
  two_steps "$work/add_subdirectory/two_steps"
  rm -rf "$work"
  exit
fi

install_moved consumers
lib=$(dirname "$(find "$prefix" -name concord.pc)")/..
named=$(grep -rlF -e "$work/first" -e "$source" "$lib" --include=*.cmake --include=*.pc || true)
[[ -z $named ]] || fail "these name a folder of this machine: $named"

consumer=find_package
configure find_package "-DCMAKE_PREFIX_PATH=$prefix"
quietly "$cmake" --build "$work/find_package"
two_steps "$work/find_package/two_steps"
quietly "$work/find_package/boundary" "$device"
say "errors and classes pass the boundary of the library"

consumer=pkg-config
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$lib/pkgconfig
  version=$(pkg-config --modversion concord)
  quietly grep -qE "^project\(concord VERSION $version " "$source/CMakeLists.txt"
  read -ra words < <(pkg-config --cflags --libs concord)
  quietly "$compiler" -std=c++20 "${flags[@]}" "$source/samples/link_project/two_steps.cpp" "${words[@]}" -o "$work/two_steps"
  two_steps env "LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/two_steps"
else
  say "there is no pkg-config: concord.pc is not tested"
fi

# Configured, and one object of the project; the library's are the same as in the build.
configure add_subdirectory "${options[@]}"
if [[ $generator == Ninja ]]; then
  quietly "$cmake" --build "$work/add_subdirectory" --target CMakeFiles/two_steps.dir/two_steps.cpp.o
fi
say "add_subdirectory: the target concord::concord is there"
rm -rf "$work"
