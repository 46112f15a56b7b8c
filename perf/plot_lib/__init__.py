"""Plots and a page of results: perf/plot, and perf/compare at its end."""
