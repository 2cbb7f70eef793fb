"""Judges: they rule on an answer and on milestones; on the host, never with tools."""
