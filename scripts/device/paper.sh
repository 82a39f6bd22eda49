#!/bin/sh
# Trains the paper's tables in full, on a GPU where there is one, several runs at once. Runs that are finished are not
# trained again, and those that were interrupted resume, so that it may be stopped and started at will.
#
#   scripts/device/paper.sh [TABLE...]   1 to 5 (all); runs go to runs/paper, what they gave to docs/results/paper
#
# Where a run fails the others are trained all the same, and so are the other tables; at the end a line names the tables that
# lack something, and the exit status is 1. Ctrl-C ends it.
#
# JOBS says how many runs at once (6), STRAIT which program (build/strait).
set -eu
cd "$(dirname "$0")/../.."

strait=${STRAIT:-build/strait}
[ $# -gt 0 ] || set -- 1 2 3 4 5
mkdir -p docs/results/paper
failed=""
for table in "$@"; do
  runs=runs/paper/table$table
  status=0
  "$strait" sweep "experiments/paper/table$table.toml" --jobs "${JOBS:-6}" --out "$runs" || status=$?
  [ "$status" -lt 128 ] || exit "$status"  # it was stopped
  scripts/collect_runs "$runs" "docs/results/paper/table$table.jsonl" || status=$?
  [ "$status" -eq 0 ] || failed="$failed table$table"
done
[ -z "$failed" ] || { echo "paper.sh: failed, as said above:$failed" >&2; exit 1; }
