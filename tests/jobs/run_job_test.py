#!/usr/bin/env python3
"""Tests of jobs as a user starts them: alone, by hand, with mpirun, with srun, over several hosts.

Usage: run_job_test.py --list [--without-tools]
       run_job_test.py <directory of programs> <case>

The cases are in the files cases_*.py.
SPDX-License-Identifier: BSD-3-Clause
"""
import os
import sys

import cases_alone  # noqa: F401 (they register their cases)
import cases_by_hand  # noqa: F401
import cases_hosts  # noqa: F401
import cases_mpirun  # noqa: F401
import cases_slurm  # noqa: F401
from support import CASES, CASES_WITH_TOOLS, Programs


def main():
    if sys.argv[1:] in (["--list"], ["--list", "--without-tools"]):
        print("\n".join(name for name in CASES if len(sys.argv) == 2 or name not in CASES_WITH_TOOLS))
        return
    if len(sys.argv) != 3 or sys.argv[2] not in CASES:
        sys.exit(__doc__)
    # The tests must not depend on a job in which they run themselves.
    for name in list(os.environ):
        if name.startswith(("PTL_", "PMIX_", "PMI_", "OMPI_", "SLURM_")):
            del os.environ[name]
    CASES[sys.argv[2]](Programs(sys.argv[1]))


if __name__ == "__main__":
    main()
