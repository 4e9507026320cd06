# quern-info.

bin_PROGRAMS += info/quern-info
info_quern_info_SOURCES = info/info.h info/output.h info/quern-info.c info/list.c info/explain.c info/gradient.c info/doctor.c info/wrap.c
info_quern_info_CPPFLAGS = $(AM_CPPFLAGS) -DQN_PLUGINDIR='"$(plugindir)"'
