# quern-info.
