"""The DataClaw benchmark (arXiv 2605.02503): one gold answer per task; Acc, EE, GPR, TPE."""
