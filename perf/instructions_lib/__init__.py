"""What perf/instructions is made of: callgrind's files, the rows, the stages, the report."""
