"""Runs am_probe as a job. The environment lists its processes.

Usage: run_am_test.py <am_probe> <case> <ranks> <variable=value>...
"""
import os
import re
import signal
import subprocess
import sys

TIMEOUT_S = 100


def main():
    program, case, count = sys.argv[1:4]
    given = dict(argument.split("=", 1) for argument in sys.argv[4:])
    needs_refusals = given.pop("refusals", "0") == "1"
    environment = {**os.environ, **given}
    nid = subprocess.run([program, "nid"], env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    # Pids that PTL_PID_ANY does not return, and that differ in tests that run at the same time.
    first = 41000 + os.getpid() % 1000 * 20
    environment["PTL_NIDMAP"] = ":".join([nid] * int(count))
    environment["PTL_PIDMAP"] = ":".join(str(first + rank) for rank in range(int(count)))
    ranks = [subprocess.Popen([program, case], env={**environment, "PTL_MY_RID": str(rank)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(int(count))]
    output, hung = "", False
    for rank in ranks:
        try:
            output += rank.communicate(timeout=TIMEOUT_S if not hung else 1)[0]
        except subprocess.TimeoutExpired:
            hung = True
            rank.send_signal(signal.SIGABRT)
            rank.send_signal(signal.SIGCONT)
            output += rank.communicate()[0]
    print(output)
    if hung or any(rank.returncode for rank in ranks) or f"{case}: done" not in output:
        sys.exit(f"exit codes {[rank.returncode for rank in ranks]}{', did not end' if hung else ''}")
    if "its process is gone" in output:
        sys.exit("a rank ended while others expected a message of it")
    if needs_refusals and not sum(map(int, re.findall(r"(\d+) refusals", output))):
        sys.exit("no message was refused, so the case has not tested refusals")


main()
