#!/usr/bin/env bash
# `run --limits` of a bundle (scripts/bundle-entry) with programs that only pretend to test: every test case is run under every
# description, whatever its name; one that fails, hangs or is not found fails the run and is named.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,lib,system-lib,share}
cp "$root/scripts/bundle-entry" "$folder/run"
printf '' | gzip >"$folder/lib/none.so.gz"
cp "$folder/lib/none.so.gz" "$folder/system-lib/"
cat >"$folder/bin/concord" <<'STUB'
#!/usr/bin/env bash
echo '  "id": "opencl:0"'
STUB
# Catch2's ways: names are listed with their number as the exit code, filters of a file have commas and brackets escaped.
cat >"$folder/bin/concord_tests" <<'STUB'
#!/usr/bin/env bash
names=('a sum' 'a sum, of two' 'an index x[0]' 'a "word"' 'a product' 'one that fails' 'one that hangs' 'one that is lost')
if [[ $1 == --list-test-names-only ]]; then
  [[ $2 == "[$ROOM]" ]] || exit 0
  ((KIND == 0)) || { printf '%s\n' "${names[@]}"; exit ${#names[@]}; }
  printf '%s\n' "${names[@]:0:5}"
  exit 5
fi
[[ $1 == -d && $3 == -f ]] || exit 9
passed=0 failed=0
while IFS= read -r filter; do
  case $filter in
    'a sum' | 'a sum\, of two' | 'an index x\[0\]' | 'a \"word\"' | 'a product') ((passed += 1)); echo "$CONCORD_DEBUG $filter" >>"$LOG" ;;
    *fails) ((KIND != 1)) || { ((failed += 1)); line=$(printf -- '-%.0s' {1..79}); printf '%s\n%s\n%s\nx.cpp:1\n\nx.cpp:2: FAILED:\n' "$line" "$filter" "$line"; } ;;
    *hangs) ((KIND != 2)) || sleep 60 ;;
  esac
done <"$4"
if ((failed > 0)); then echo "test cases: $((passed + failed)) | $passed passed | $failed failed"; exit 1; fi
echo "All tests passed (9 assertions in $passed test cases)"
STUB
chmod +x "$folder"/bin/* "$folder/run"

export ROOM=ops LOG=$folder/log KIND
# ends KIND STATUS TEXT ARGUMENT…: what the run ends with, and what it prints
ends() {
  local status=0 printed
  KIND=$1
  : >"$LOG"
  printed=$("$folder/run" --out "$folder/results" --jobs 3 "${@:4}" 2>&1) || status=$?
  if [[ $status != "$2" || $printed != *"$3"* ]]; then
    printf 'run %s: exit code %s, wanted %s and "%s"; it printed\n%s\n' "${*:4}" "$status" "$2" "$3" "$printed" >&2
    exit 1
  fi
}
ends 0 0 "5 of 5 test cases passed" --limits least-64,opencl12 --rooms ops
[[ $(wc -l <"$LOG") == 10 && $(grep -c '^kernels=gpu,limit.extensions=0 ' "$LOG") == 5 && $(grep -c '^kernels=gpu,limit.work_group=64,' "$LOG") == 5 ]]
[[ $(grep -c '^opencl12 \[ops\] *ok ' "$folder/results/summary.txt") == 1 ]]
ends 1 1 "5 of 8 test cases passed; FAILED: one that fails" --limits least-64 --rooms ops
grep -q '^least-64 \[ops\] *FAILED ' "$folder/results/summary.txt"
ends 2 1 "least-256 [ops]                              timeout" --limits least-256 --rooms ops --limit 1
ends 3 1 "5 of 8 test cases passed" --limits least-256 --rooms ops
ends 0 0 "no-subgroups [ops]" --limits all --rooms ops
[[ $(wc -l <"$LOG") == 30 ]]
ends 0 2 "no test is of the room operators" --limits all --rooms ops,operators
ends 0 2 "run --limits NAMES" --limits least-32
ends 0 2 "run --limits NAMES" --only test
ends 0 2 "run --limits NAMES" --only tests,banch
ends 0 0 "all 4 steps passed" --only compare,bench --devices cpu
ends 0 2 "no test is of the room opencl" --limits least-64  # there is no program of the room faults
