# check-progress.awk -- condenses the output of `make check`: failures in full, for each test with skips their number and the first
# reason, a count of the rest. Ends with "N passed, N failed, N skipped".
# -v width=COLUMNS keeps a running count on one line of a terminal.

function clear() { if (width) printf "\r%-*s\r", width - 1, "" }
function note(  line)
{
  if (!width) return
  line = sprintf("%d tests, %d failed: %s", passed + failed + skipped, failed, substr($0, index($0, " ") + 1))
  gsub(/[^ -~]/, " ", line)
  printf "\r%-*s", width - 1, substr(line, 1, width - 1)
  fflush()
}
function reason(line) { sub(/.*# SKIP */, "", line); sub(/^SKIP: [^ ]* - /, "", line); return line }
function short(text, most) { return length(text) <= most ? text : substr(text, 1, most - 3) "..." }

/^(PASS|XFAIL): /        { passed++; note(); next }
/^(FAIL|XPASS|ERROR): /  { failed++; clear(); print; fflush(); next }
/^SKIP: /                { skipped++; if (!skips[$2]++) why[$2] = reason($0); note(); next }
/^[^ ]*: error: /        { clear(); print; fflush() }
END {
  clear()
  for (test in skips) print short(sprintf("SKIP: %s: %d (%s)", test, skips[test], why[test]), 100)
  printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
