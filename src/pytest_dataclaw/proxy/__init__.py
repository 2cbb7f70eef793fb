"""The model proxy: all model traffic of a run passes through it."""
