#!/usr/bin/env bash
# Runs shellcheck over every tracked shell script.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

mapfile -t files < <(git ls-files 'scripts/*.sh' '.ci/run' 'benchmarks/*.sh' 'test/*.sh')
exec shellcheck -x "${files[@]}"
