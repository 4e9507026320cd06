# Programs a newcomer runs first.
