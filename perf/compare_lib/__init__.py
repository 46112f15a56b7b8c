"""Parts of perf/compare: one step of a comparison per module."""
