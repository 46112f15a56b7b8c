"""Runs a program as four ranks on two nodes of Slurm, in a cluster that it starts.

Usage: run_by_srun.py <program> <what it must print>
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "jobs"))
from cases_slurm import cluster

program, text = sys.argv[1:]
output, _ = cluster(2).srun(2, 4, program)
print(output, end="")
if text not in output:
    sys.exit(f"{text!r} was not printed")
