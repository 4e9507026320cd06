# Engines from elsewhere, each a backend of its own.
