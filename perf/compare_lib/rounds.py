"""Alternating runs, and what is said about them.

The distance between two cores of a virtual machine changes within minutes, so that only neighbouring
runs compare: every round runs each of the programs once, briefly; a ratio is taken within a round, and
the median over the rounds is reported with its quartiles.
"""

import statistics
from collections.abc import Callable
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


class Alternated(dict):
    """name -> list of values, one a round; and what a cache line took one way around each round."""

    def __init__(self, names):
        super().__init__((name, []) for name in names)
        self.cache_lines_ns = []  # (before, after), one a round

    def tell(self, rows):
        """The same rows, which know now how far apart the cores were in each of their rounds."""
        for row in rows:
            row.cache_lines_ns = self.cache_lines_ns
        return rows


@dataclass
class Schedule:
    """Who takes turns how often."""

    rounds: int
    progress: Callable  # is told what runs
    cache_line_ns: Callable  # measures how far apart the cores are

    def alternate(self, measurements):
        """Runs every one of `measurements` (name -> function without arguments) once a round.

        Every second round goes backwards, so that nobody always has the same neighbour.
        """
        values = Alternated(measurements)
        names = list(measurements)
        before = self.cache_line_ns()
        for index in range(self.rounds):
            for name in names if index % 2 == 0 else reversed(names):
                self.progress(f"round {index + 1} of {self.rounds}: {name}")
                values[name].append(measurements[name]())
            after = self.cache_line_ns()
            values.cache_lines_ns.append((before, after))
            before = after
        return values

    def at_most(self, rounds):
        return Schedule(min(self.rounds, rounds), self.progress, self.cache_line_ns)


def ratios(numerators, denominators):
    return [a / b for a, b in zip(numerators, denominators, strict=True)]
