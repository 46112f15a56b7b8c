"""Which source file belongs to which stage of a message, and what each stage costs."""

import fnmatch
import os
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

STAGES = ("append", "check", "send", "poll", "match", "deliver", "acknowledge", "wait", "program", "other")
# Serves several stages: counts where its callers do.
CALLER = "caller"

# The first row counts whose patterns fit: of the file, below the root of the project, and of the
# function (optional). Code that was inlined counts by the file that it comes from; where that file
# says CALLER, by the function that it was inlined into. Files in no row are shown as "other".
TABLE = (
    ("src/api/data_movement*", "", "check"),
    ("src/api/triggered*", "", "check"),
    ("src/api/list_entries*", "", "append"),
    ("src/*.h", "PtlEQ", "wait"),
    ("src/*.h", "PtlCT", "wait"),
    ("src/api/resolve.h", "", CALLER),
    ("src/api/*", "", "wait"),
    ("src/core/operations/initiator_answers*", "", "acknowledge"),
    ("src/core/operations/initiator_events*", "", "acknowledge"),
    ("src/core/operations/answer*", "", "acknowledge"),
    ("src/core/operations/awaited_puts*", "", "acknowledge"),
    ("src/core/operations/operation.h", "", CALLER),
    ("src/core/operations/operation_table*", "", CALLER),
    ("src/core/operations/send_queues*", "", CALLER),
    ("src/core/operations/peer*", "", CALLER),
    ("src/core/operations/physical_interface*", "", "poll"),
    ("src/core/operations/initiator*", "", "send"),
    ("src/core/operations/*", "find_entry", "match"),
    ("src/core/operations/*", "", "deliver"),
    ("src/core/matching/*", "", "match"),
    ("src/core/request.h", "", CALLER),
    ("src/core/events/*", "", CALLER),
    ("src/core/objects/list_operations*", "append", "append"),
    ("src/core/objects/delivery*", "", "deliver"),
    ("src/core/library/*", "", CALLER),
    ("src/core/objects/*", "", CALLER),
    ("src/core/progress/wait*", "", "wait"),
    ("src/core/progress/*", "", "poll"),
    ("src/reliable/sender*", "::take_", "acknowledge"),
    ("src/reliable/sender*", "::acknowledge(", "acknowledge"),
    ("src/reliable/sender*", "", "send"),
    ("src/reliable/transmitter*", "acknowledge", "acknowledge"),
    ("src/reliable/transmitter*", "", "send"),
    ("src/reliable/reliable_transport.cc", "::send(", "send"),
    ("src/reliable/message_batch*", "", "deliver"),
    ("src/reliable/data_receiver*", "", "deliver"),
    ("src/reliable/reliable_transport.cc", "", "poll"),
    ("src/reliable/connection_timers.h", "", CALLER),
    ("src/reliable/acknowledger*", "", "acknowledge"),
    ("src/reliable/peer_watch*", "", "poll"),
    ("src/reliable/quiet_link*", "", "poll"),
    ("src/reliable/send_window*", "::acknowledge(", "acknowledge"),
    ("src/reliable/congestion*", "", "acknowledge"),
    ("src/reliable/retransmission_timer*", "", "acknowledge"),
    ("src/reliable/*", "", CALLER),
    ("src/*", "Transport::send(", CALLER),
    ("src/*", "Transport::publish(", CALLER),
    ("src/lane/*", "", CALLER),
    ("src/transport/*", "", CALLER),
    ("src/util/*", "", CALLER),
    ("src/*/*transport.h", "", CALLER),
    ("src/local/*", "", "poll"),
    ("src/shm/*", "", "poll"),
    ("src/udp/*", "", "poll"),
    ("include/*", "", CALLER),
    ("perf/*", "", "program"),
)


def in_project(file):
    """The part of a path below the root of the project; None: a file of others.

    Objects from a compiler cache bear the path of another checkout.
    """
    parts = Path(os.path.normpath(file)).parts
    for i in range(len(parts) - 1, -1, -1):
        if parts[i] in ("src", "perf", "include") and ROOT.joinpath(*parts[i:]).is_file():
            return "/".join(parts[i:])
    return None


def fits(pattern, file):
    return fnmatch.fnmatchcase(file, pattern)


def _stage_of_file(file, function):
    name = in_project(file)
    if name is None:
        return CALLER
    for pattern, part, stage in TABLE:
        if fits(pattern, name) and part in function:
            return stage
    return "other"


class Stages:
    """Distributes a profile over the stages."""

    def __init__(self, profile):
        self._profile = profile
        self._callers = defaultdict(list)
        for (caller, file, called), count in profile.calls.items():
            if count > 0:
                self._callers[called].append(((caller, file), count))
        self._shares = {}
        self.cost = Counter()
        self.others = Counter()  # file or function without a stage -> instructions
        for place, count in profile.own.items():
            for stage, share in self._shares_of(*place).items():
                self.cost[stage] += count * share
                if stage == "other":
                    function, file = place
                    self.others[in_project(file) or in_project(function.file) or function.name] += count * share

    def _shares_of(self, function, file):
        for source in (file, function.file):
            stage = _stage_of_file(source, function.name)
            if stage != CALLER:
                return {stage: 1.0}
        return self._shares_by_caller(function)

    def _shares_by_caller(self, function):
        if function in self._shares:
            return self._shares[function]
        self._shares[function] = {}  # while a cycle of calls leads back here
        shares = Counter()
        for place, count in self._callers[function]:
            for stage, share in self._shares_of(*place).items():
                shares[stage] += share * count
        total = sum(shares.values())
        # "other" for those without a caller.
        first = "program" if in_project(function.file) is None else "other"
        self._shares[function] = {stage: part / total for stage, part in shares.items()} or {first: 1.0}
        return self._shares[function]
