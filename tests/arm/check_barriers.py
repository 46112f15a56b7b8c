#!/usr/bin/env python3
"""Finds full barriers (dmb ish) of 64-bit Arm in the functions of the path of a short message, and
atomic operations that do not use the processor's own (LSE) where it has them.

Usage: check_barriers.py <objdump> <addr2line> <library with line numbers>

The latter are in functions that the compiler calls, __aarch64_ldadd8_rel and the like, which choose at
run time. Each barrier must come from a function of the table `allowed`, which names the models (tests/model)
that fail without it. The compiler makes this instruction from fences with more than acquire.
"""
import pathlib
import re
import subprocess
import sys

# Of the path between two processes of a node: a put of a few bytes, its delivery with event and
# count, its acknowledgment.
path = [
    # The initiator, down to the cell of the lane.
    "PtlPut",
    "lintel::Initiator::start_to_another",
    "lintel::Initiator::send_first",
    "lintel::ShmTransport::publish",
    "lintel::ShmTransport::send",
    "lintel::LaneProducer::push_in_general",
    # Both sides poll.
    "lintel::Poller::poll_once",
    "lintel::ShmTransport::poll",
    "lintel::ReceiveLanes::poll_hot",
    "lintel::ReceiveLanes::take_burst",
    # The target delivers and acknowledges.
    "lintel::PhysicalInterface::on_put",
    "lintel::PhysicalInterface::on_messages",
    "lintel::PhysicalInterface::take_message",
    "lintel::report_delivery",
    "lintel::AnswerSender::answer",
    # The initiator takes the acknowledgment.
    "lintel::PhysicalInterface::on_acknowledgements",
    "lintel::PhysicalInterface::on_acknowledgement",
    "lintel::InitiatorAnswers::take_single_ack",
    "lintel::InitiatorAnswers::end_single",
    "lintel::InitiatorAnswers::take_acks",
    "lintel::report_ack",
    # Counts and events are read.
    "PtlCTGet",
    "PtlEQGet",
    "lintel::CountingEvent::follow_up",
    "lintel::EventQueue::get_slowly",
]

# Functions with a fence: where it runs, and the models that demand it.
allowed = {
    "lintel::Doorbell::ring_if_sleeping": ("only without membarrier", ["doorbell"]),
    "lintel::EventQueue::fill_made": ("once per event", ["event_queue"]),
}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short_name(function):
    """Without arguments, results and those of templates."""
    while "<" in function:
        shorter = re.sub(r"<[^<>]*>", "", function)
        if shorter == function:
            break
        function = shorter
    return function.split("(")[0].split(" ")[-1]


def barriers(objdump, library):
    """The addresses of full barriers, by function of the path; the functions of it that are missing;
    the number of calls of functions that choose, and the functions with loops of their own."""
    found = {name: [] for name in path}
    seen = set()
    choosing = 0
    loops = set()
    function = None
    for line in output_of(objdump, "-d", "-C", library).splitlines():
        if start := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            # A part that the compiler moves apart (".cold") belongs to its function.
            function = short_name(start[1]).split(".")[0]
            seen.add(function)
        elif instruction := re.match(r"\s*([0-9a-f]+):\s+[0-9a-f]+\s+dmb\s+ish$", line.rstrip()):
            if function in found:
                found[function].append(instruction[1])
        elif re.search(r"\tbl\t.*<__aarch64_(cas|swp|ld(add|set|clr|eor))\d", line):
            choosing += 1
        elif re.search(r"\tlda?xr[bh]?\t", line) and not function.startswith("__aarch64_"):
            loops.add(function)
    return found, [name for name in path if name not in seen], choosing, loops


def origins(addr2line, library, addresses):
    """For each address, the innermost function that is not of the C++ library, with its line."""
    result = []
    lines = output_of(addr2line, "-a", "-f", "-i", "-C", "-e", library, *addresses).splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith("0x"):
            result.append(("?", "?"))
            continue
        place = lines.pop(0)
        if result[-1][0] == "?" and "/c++/" not in place:
            result[-1] = (short_name(line), place.split("/src/")[-1])
    return result


def main():
    objdump, addr2line, library = sys.argv[1:]
    models = pathlib.Path(__file__).parent.parent / "model" / "protocols"
    wrong = [f"no model {model}" for _, names in allowed.values() for model in names
             if not (models / f"{model}.cc").exists()]
    found, missing, choosing, loops = barriers(objdump, library)
    wrong += [f"no function {name} in {library}" for name in missing]
    wrong += [f"{function} has an atomic operation that is a loop" for function in sorted(loops)]
    print(f"{choosing} atomic operations use those of the processor where it has them")
    if choosing == 0:
        wrong.append("no atomic operation chooses (-moutline-atomics)")
    used = set()
    for function, addresses in found.items():
        counts = {}
        for origin in origins(addr2line, library, addresses) if addresses else []:
            counts[origin] = counts.get(origin, 0) + 1
        print(f"{function}: {len(addresses)} full barriers")
        for (source, place), count in sorted(counts.items()):
            used.add(source)
            where, demanded_by = allowed.get(source, ("NOT ALLOWED", []))
            print(f"    {count} of {source} ({place}): {where}" +
                  (f"; model {', '.join(demanded_by)}" if demanded_by else ""))
            if source not in allowed:
                wrong.append(f"{function} has a full barrier of {source} ({place})")
    wrong += [f"{source} has no full barrier: remove it from the table" for source in allowed
              if source not in used]
    for text in wrong:
        print(f"check_barriers: {text}", file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
