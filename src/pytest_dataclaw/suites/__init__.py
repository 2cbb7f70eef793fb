"""The benchmarks: which formulas apply to a task and what is asked of the judge."""
