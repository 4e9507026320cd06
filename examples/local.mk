# Programs a newcomer runs first.

noinst_PROGRAMS += examples/cnn_digits
examples_cnn_digits_SOURCES = examples/cnn_digits.c examples/cnn_digits_data.h examples/cnn_digits_graphs.h \
  examples/cnn_digits_show.h
examples_cnn_digits_CPPFLAGS = $(AM_CPPFLAGS) -DDIGITS_CSV='"$(abs_top_srcdir)/examples/data/digits.csv"'
examples_cnn_digits_LDADD = $(QUERN_LIBS) $(LIBM)
