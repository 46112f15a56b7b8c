"""Results apart by how far apart the cores were.

Some hosts move the processors of a virtual machine about, so that a cache line takes 50 ns one way in one
minute and 250 in the next. A median over both says nothing about either.
"""

import math

from .rounds import Summary

# Farther apart than measuring at one place ever is.
LEAST_STEP = 1.6
# Of all readings, on each side of the step: fewer are outliers.
LEAST_SHARE = 0.1
# Fewer rounds than this at one distance have no median to speak of.
LEAST_ROUNDS = 3


def step(readings_ns):
    """Between which two readings the near ones end: their geometric mean, or None if all are alike."""
    readings = sorted(readings_ns)
    least = max(1, math.ceil(LEAST_SHARE * len(readings)))
    steps = [(far / near, math.sqrt(near * far))
             for near, far in zip(readings[least - 1:-least], readings[least:len(readings) - least + 1])]
    widest, limit = max(steps, default=(0.0, 0.0))
    return limit if widest >= LEAST_STEP else None


def _readings(rows):
    return [reading for row in rows for around in row["cache_lines_ns"] for reading in around]


def _group(row, limit_ns):
    """The row's values from rounds that were near at both ends, and from those that were far."""
    near, far = [], []
    for value, (before, after) in zip(row["values"], row["cache_lines_ns"]):
        if max(before, after) < limit_ns:
            near.append(value)
        elif min(before, after) > limit_ns:
            far.append(value)
    return near, far


def apart(rows):
    """None where the cores kept their distance; else {"near_ns", "far_ns": Summary of the readings;
    "rows": [(row, near, far)], each a Summary, or None where there were too few such rounds}."""
    readings = _readings(rows)
    limit = step(readings)
    if limit is None:
        return None
    groups = []
    for row in rows:
        near, far = (Summary.of(values) if len(values) >= LEAST_ROUNDS else None for values in _group(row, limit))
        if near or far:
            groups.append((row, near, far))
    return {"near_ns": Summary.of([reading for reading in readings if reading < limit]),
            "far_ns": Summary.of([reading for reading in readings if reading > limit]), "rows": groups}
