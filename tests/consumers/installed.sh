#!/usr/bin/env bash
# Sourced by the tests of what is installed: installs a build and moves it to another place, since nothing in it may name
# the first. Needs $source, $build and $cmake; gives $work, an empty folder, and $prefix, where the installation lies now.
source "$source/scripts/setup"

# install_moved NAME: in build/consumers/NAME
install_moved() {
  work=$build/consumers/$1
  rm -rf "$work"
  mkdir -p "$work"
  "$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; fail "cannot install"; }
  mv "$work/first" "$work/moved"
  prefix=$work/moved
}
