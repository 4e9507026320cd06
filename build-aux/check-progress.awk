# check-progress.awk -- condenses the output of `make check`: failures in full, of each test's skips the first
# two and their number, a count of the rest. Ends with "N passed, N failed, N skipped".
# -v width=COLUMNS keeps a running count on one line of a terminal.

function clear() { if (width) printf "\r%-*s\r", width - 1, "" }
function note() { if (width) { printf "\r%-*s", width - 1, substr(passed + failed + skipped " tests, " $2, 1, width - 1); fflush() } }

/^(PASS|XFAIL): /        { passed++; note(); next }
/^(FAIL|XPASS|ERROR): /  { failed++; clear(); print; fflush(); next }
/^SKIP: /                { skipped++; if (++skips[$2] <= 2) { clear(); print; fflush() } next }
/^[^ ]*: error: /        { clear(); print; fflush() }
END {
  clear()
  for (test in skips) if (skips[test] > 2) printf "SKIP: %s: %d in all; its log names each\n", test, skips[test]
  printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
