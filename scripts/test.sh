#!/usr/bin/env bash
# Checks everything: set-up, formatting and lint, build, generated pages, the
# lit suite and the unit tests, and the installed package. A step that fails
# does not stop the others. In front of the last line stands what processor time
# each step took, which other work on the machine does not change. The last line
# sums up all steps: "N passed, N failed", with ", N skipped" when some tests do
# not apply here.
#
# usage: scripts/test.sh [--lint-only | --doors [scripts/doors.py options] |
#                         --nightly [scripts/nightly.py options]]
#   --doors     what needs large packages instead: wheels, torch, transformers
#   --nightly   what takes hours instead: whole sweeps, fuzzing, mutants; it goes
#               on where it was stopped. The samples of these are part of the
#               checks above.
set -uo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

passed=0
failed=0
skipped=0
summarised=0
LOGS=$ATTN_BUILD/test-logs
# Processor time that the first build and these checks may take together: 15
# minutes of two cores. Information, since machines differ.
CPU_LIMIT=1800
steps=()

summarise() {
  [ $summarised = 0 ] || return
  summarised=1
  local line="$passed passed, $failed failed"
  [ "$skipped" = 0 ] || line+=", $skipped skipped"
  echo "$line"
}
trap summarise EXIT
trap 'failed=$((failed + 1)); say "interrupted"; exit 130' INT TERM

# note_cpu NAME: the processor time since the last call is that of a step.
cpu=0
note_cpu() {
  local before=$cpu
  read_cpu "$LOGS/times"
  steps+=("$((cpu - before)) $1")
}

# Steps by processor time, and their sum beside the limit.
say_cpu() {
  echo "processor time, in s:"
  printf '%s\n' "${steps[@]}" | sort -rn | awk -v limit=$CPU_LIMIT '
    { sum += $1; seconds = $1; $1 = ""; if (seconds >= 2) printf "%8d %s\n", seconds, $0 }
    END { printf "%8d  in all, limit %d (15 minutes on two cores; no verdict)\n", sum, limit }'
}

# step NAME COMMAND...: one check; its output is shown only when it fails.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  local log=$LOGS/${name// /-}.log
  "$@" >"$log" 2>&1 </dev/null || status=$?
  note_cpu "$name"
  if [ $status = 0 ]; then
    passed=$((passed + 1))
    printf 'ok      %s (%d s)\n' "$name" $((SECONDS - start))
    return 0
  fi
  failed=$((failed + 1))
  printf 'FAILED  %s (%d s): %s\n' "$name" $((SECONDS - start)) "$*"
  tail -n 60 "$log" | sed 's/^/    /'
  return 1
}

# lit_step NAME ARGUMENTS...: a lit run; each test counts as one.
lit_step() {
  local name=$1 start=$SECONDS p f s
  shift
  local log=$LOGS/${name// /-}.log json=$LOGS/${name// /-}.json
  rm -f "$json"
  "$LLVM_BIN/lit" -sv -j "$ATTN_JOBS" -o "$json" "$@" >"$log" 2>&1 </dev/null
  note_cpu "$name"
  read -r p f s < <("$PYTHON" scripts/count-lit.py "$json")
  passed=$((passed + p))
  failed=$((failed + f))
  skipped=$((skipped + s))
  printf '%s %s: %d passed, %d failed, %d skipped (%d s)\n' \
    "$([ "$f" = 0 ] && echo 'ok     ' || echo 'FAILED ')" "$name" "$p" "$f" "$s" \
    $((SECONDS - start))
  if [ "$f" != 0 ]; then
    tail -n 200 "$log" | sed 's/^/    /'
  fi
}

run_lints() {
  step "clang-format" scripts/check-format.sh
  step "shellcheck" scripts/check-shell.sh
  step "whitespace" "$PYTHON" scripts/check-whitespace.py
  step "banned words" "$PYTHON" scripts/check-banned-words.py
  step "file length" "$PYTHON" scripts/check-file-length.py
  step "folder size" "$PYTHON" scripts/check-folder-size.py
  step "class size" "$PYTHON" scripts/check-class-size.py
  step "comment openers" "$PYTHON" scripts/check-comment-openers.py
  step "op arguments" "$PYTHON" scripts/check-op-arguments.py
  step "function length" "$PYTHON" scripts/check-function-length.py
  step "include circles" "$PYTHON" scripts/check-include-circles.py
  step "lists of loops" "$PYTHON" scripts/check-loop-lists.py
  step "names of ops" "$PYTHON" scripts/check-op-names.py
  step "include guards" "$PYTHON" scripts/check-include-guards.py
  step "folder mirror" "$PYTHON" scripts/check-folder-mirror.py
  step "test names" "$PYTHON" scripts/check-test-names.py
  step "clocks in tests" "$PYTHON" scripts/check-test-clocks.py
  step "expected flags" "$PYTHON" scripts/check-expected-flags.py
  step "spec ids" "$PYTHON" scripts/check-spec-ids.py
  step "option names" "$PYTHON" scripts/check-option-names.py
  step "plan parameters" "$PYTHON" scripts/check-plan-parameters.py
  step "messages tested" "$PYTHON" scripts/check-messages-tested.py
  step "lint self-test" "$PYTHON" scripts/test_lints.py
  step "prose" "$PYTHON" scripts/check-prose.py
  step "rationale" "$PYTHON" scripts/check-rationale.py
  step "results" "$PYTHON" scripts/gen-results.py --check
  step "links in docs" "$PYTHON" scripts/check-links.py
  step "excerpts in docs" "$PYTHON" scripts/check-doc-excerpts.py
}

mkdir -p "$LOGS"
if [ "${1:-}" = --doors ]; then
  trap - EXIT INT TERM
  scripts/build.sh AttnC attn-compile attn-sim
  exec "$PYTHON" scripts/doors.py "${@:2}"
fi
if [ "${1:-}" = --nightly ]; then
  trap - EXIT INT TERM
  scripts/build.sh -k 0 all AttnUnitTests
  exec "$PYTHON" scripts/nightly.py "${@:2}"
fi
if [ -f "$ATTN_BUILD_SECONDS" ]; then
  steps+=("$(cat "$ATTN_BUILD_SECONDS") builds before this call")
fi
step "set-up" scripts/install-deps.sh
run_lints
if [ "${1:-}" != --lint-only ]; then
  step "build" scripts/build.sh -k 0 all AttnUnitTests
  step "generated pages" "$PYTHON" scripts/gen-docs.py --check
  step "simulator coverage" "$PYTHON" scripts/sim-coverage.py --check \
    "$ATTN_BUILD/unittests/Simulator/AttnSimulatorTests"
  step "sanitize preset" cmake --preset sanitize -B "$ATTN_BUILD/sanitize"
  if [ -f "$ATTN_BUILD/test/lit.site.cfg.py" ]; then
    lit_step "lit and unit tests" "$ATTN_BUILD/test" "$ATTN_BUILD/unittests"
  fi
  "$PYTHON" scripts/slow-tests.py "$LOGS/lit-and-unit-tests.json"
  step "install" scripts/test-install.sh
  step "wheel" "$PYTHON" scripts/doors.py --sample
  if step "nightly samples" "$PYTHON" scripts/nightly.py --sample; then
    sed -n 's/^ok /        /p' "$LOGS/nightly-samples.log"
  fi
  say_cpu
fi
summarise
[ "$failed" = 0 ]
