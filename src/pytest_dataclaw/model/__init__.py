"""The data that crosses stages: frozen, typed, free of I/O."""
