# libFuzzer targets, built by ./configure CC=clang --enable-fuzzing. fuzz/seeds.sh makes their initial corpora.
EXTRA_DIST += fuzz/seeds.sh
if FUZZING
noinst_PROGRAMS += fuzz/fuzz_line fuzz/fuzz_settings fuzz/fuzz_tune
fuzz_fuzz_line_SOURCES = fuzz/fuzz_line.c
fuzz_fuzz_line_LDADD = $(QUERN_INSIDE)
fuzz_fuzz_line_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_fuzz_settings_SOURCES = fuzz/fuzz_settings.c
fuzz_fuzz_settings_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
fuzz_fuzz_settings_LDADD = $(QUERN_INSIDE)
fuzz_fuzz_settings_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_fuzz_tune_SOURCES = fuzz/fuzz_tune.c
fuzz_fuzz_tune_CPPFLAGS = $(fuzz_fuzz_settings_CPPFLAGS)
fuzz_fuzz_tune_LDADD = $(QUERN_INSIDE)
fuzz_fuzz_tune_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif
