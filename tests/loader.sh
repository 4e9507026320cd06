#!/bin/sh
# loader.sh -- runs t_loader on the plugins of this build.
built=$(cd "${top_builddir-.}" && pwd)/tests/.libs
exec "${top_builddir-.}/tests/t_loader" "$built/plugin.so" "$built/plugin_v2.so" "$built/plugin_none.so"
