"""What the counts look like, as text and as JSON."""

from collections import Counter

from .rows import UCX_INSTRUCTIONS
from .stages import STAGES, Stages, in_project


class Counted:
    """A row and what one of its messages costs."""

    def __init__(self, row, profile):
        self.row = row
        self.profile = profile
        self.total = profile.total
        self.stages = Stages(profile) if row.has_stages else None


def table(counted, ucx):
    """`ucx`: instructions of a message of UCX as counted; None: those known from elsewhere."""
    lines = [f"{'':15}{'total':>8}{'x UCX':>8}  " + "".join(f"{stage:>{len(stage) + 3}}" for stage in STAGES)]
    for one in counted:
        line = f"{one.row.name:15}{one.total:8.0f}{one.total / (ucx or UCX_INSTRUCTIONS):8.2f}  "
        if one.stages:
            line += "".join(f"{round(one.stages.cost[stage]):{len(stage) + 3}}" for stage in STAGES)
        lines.append(line.rstrip())
    lines.append("")
    lines += [f"{one.row.name:15}{one.row.title}" for one in counted]
    lines.append(f"{'x UCX':15}" + (f"the row ucx, {ucx:.0f} instructions" if ucx else
                                    f"UCX was not counted here: the constant {UCX_INSTRUCTIONS}"))
    totals = {one.row.name: one.total for one in counted}
    if {"mpi_mtl", "mpi_ob1"} <= totals.keys():
        lines.append(f"{'x ob1':15}mpi_mtl takes {totals['mpi_mtl'] / totals['mpi_ob1']:.2f} times mpi_ob1")
    return "\n".join(lines)


def others(one):
    """Files in no row of the table of stages, so that they are added to it."""
    if not one.stages or one.stages.cost["other"] < 1:
        return ""
    names = "  ".join(f"{name} ({count:.0f})" for name, count in one.stages.others.most_common() if count >= 1)
    return f"{one.row.name}: other: {names}\n"


def _own_of_functions(profile):
    costs = Counter()
    for (function, _), count in profile.own.items():
        costs[function] += count
    return costs


def functions(one, most):
    lines = [f"{one.row.name}: functions by their own instructions, with what is inlined into them"]
    for function, cost in _own_of_functions(one.profile).most_common(most):
        name = function.name if len(function.name) <= 80 else function.name[:77] + "..."
        lines.append(f"{cost:8.1f} {cost / one.total:6.1%}  {in_project(function.file) or function.object}: {name}")
    return "\n".join(lines)


def as_dict(counted, messages, ucx):
    return {
        "messages": list(messages),
        "ucx": {"instructions": ucx or UCX_INSTRUCTIONS, "counted": ucx is not None},
        "rows": [{
            "name": one.row.name,
            "title": one.row.title,
            "instructions": round(one.total, 1),
            "stages": {stage: round(one.stages.cost[stage], 1) for stage in STAGES} if one.stages else None,
            "functions": [{"name": function.name, "file": in_project(function.file) or function.object,
                           "instructions": round(cost, 1)}
                          for function, cost in _own_of_functions(one.profile).most_common() if cost >= 0.5],
        } for one in counted],
    }
