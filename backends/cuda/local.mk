# The CUDA backend: always a plugin. Add to _SOURCES; .cu files are compiled by nvcc, see the top Makefile.am.
