#!/usr/bin/env bash
# The installed headers: concord.hpp reaches each, each compiles as the only include and includes nothing but the standard
# library and other installed headers, and each exports what it declares. Run by CTest.
#   public_headers.sh SOURCE BUILD CMAKE COMPILER [FLAG…]
set -euo pipefail
source=$1 build=$2 cmake=$3 compiler=$4
shift 4
source "$source/tests/consumers/installed.sh"
install_moved public_headers
include=$prefix/include

headers=$(cd "$include/concord" && find . -type f -printf '%P\n' | LC_ALL=C sort)
(($(wc -l <<<"$headers") > 100)) || fail "only these headers are installed:"$'\n'"$headers"

reachable=$(cd "$include" && "$compiler" -std=c++20 "$@" -I. -MM -MT headers concord/concord.hpp |
  tr -s ' \\' '\n\n' | sed -n 's,^\(\./\)\?concord/,,p')
unreached=$(LC_ALL=C comm -23 - <(LC_ALL=C sort <<<"$reachable") <<<"$headers")
[[ -z $unreached ]] || fail "concord.hpp does not reach, so that they are not public:"$'\n'"$unreached"

foreign=$(grep -rnE '^ *# *include' "$include" | grep -vE '#include (<[a-z_]+>|"concord/)' || true)
[[ -z $foreign ]] || fail "public headers may include the standard library and each other alone:"$'\n'"$foreign"

internal=$(grep -rniE '^//.*\binternal\b' "$include" || true)
[[ -z $internal ]] || fail "headers that call themselves internal are installed:"$'\n'"$internal"

unmarked=$(grep -rLE '^namespace CONCORD_PUBLIC concord \{' "$include" |
  grep -vE '/(concord|core/export|graph/scalar_function_list)\.hpp$' || true)
[[ -z $unmarked ]] || fail "nothing of these is exported (src/core/export.hpp):"$'\n'"$unmarked"

# compile_alone HEADER FLAG…
compile_alone() {
  local header=$1
  shift
  "$compiler" -std=c++20 -fsyntax-only "$@" -x c++ - <<<"#include <concord/$header>" || {
    echo "concord/$header does not compile as the only include"
    return 1
  }
}
export -f compile_alone
export compiler
xargs -P "$(nproc)" -I '{}' bash -c 'compile_alone "$@"' compile_alone '{}' "-I$include" -Wall -Wextra -Werror "$@" \
  <<<"$headers" || fail "see above"
say "$(wc -l <<<"$headers") public headers compile alone"
rm -rf "$work"
