"""Alternating runs, and what is said about them.

The distance between two cores of a virtual machine changes within minutes, so that only neighbouring
runs compare: every round runs each of the programs once, briefly; a ratio is taken within a round, and
the median over the rounds is reported with its quartiles.
"""

import statistics
from dataclasses import asdict, dataclass


@dataclass
class Summary:
    median: float
    lower_quartile: float
    upper_quartile: float
    minimum: float
    maximum: float
    count: int

    @staticmethod
    def of(values):
        values = sorted(values)
        lower = upper = values[0]
        if len(values) > 1:
            lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
        return Summary(statistics.median(values), lower, upper, values[0], values[-1], len(values))

    as_dict = asdict


def alternate(measurements, rounds, progress):
    """Runs every one of `measurements` (name -> function without arguments) once a round.

    Every second round goes backwards, so that nobody always has the same neighbour. Returns name ->
    list of values, one a round.
    """
    values = {name: [] for name in measurements}
    names = list(measurements)
    for index in range(rounds):
        for name in names if index % 2 == 0 else reversed(names):
            progress(f"round {index + 1} of {rounds}: {name}")
            values[name].append(measurements[name]())
    return values


def ratios(numerators, denominators):
    return [a / b for a, b in zip(numerators, denominators, strict=True)]
