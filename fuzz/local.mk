# libFuzzer targets, built by ./configure CC=clang --enable-fuzzing.
if FUZZING
endif
