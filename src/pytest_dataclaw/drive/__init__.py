"""Agents: they work on a brief in a sandbox."""
