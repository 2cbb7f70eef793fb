"""The formulas: pure arithmetic on verdicts and trajectories."""
