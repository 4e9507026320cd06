# check-progress.awk -- reads what `make check` prints and keeps it short: failures and skips in full, a count of the rest.
# Ends with "N passed, N failed, N skipped". -v width=COLUMNS keeps a running count on one line of a terminal.

function clear() { if (width) printf "\r%-*s\r", width - 1, "" }
function note() { if (width) { printf "\r%-*s", width - 1, substr(passed + failed + skipped " tests, " name, 1, width - 1); fflush() } }

/^(PASS|XFAIL): /        { passed++;  name = $2; if (width || !(passed % 1000)) note(); next }
/^(FAIL|XPASS|ERROR): /  { failed++;  clear(); print; fflush(); next }
/^SKIP: /                { skipped++; clear(); print; fflush(); next }
/^[^ ]*: error: |^make.*\*\*\* .*Error [0-9]+$/ { clear(); print; fflush() }
END { clear(); printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
