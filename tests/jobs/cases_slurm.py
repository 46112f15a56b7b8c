"""Jobs under Slurm. The test starts slurmctld and several slurmds, without systemd and munge."""
import json
import os
import pathlib
import re
import socket
import subprocess
import time

from support import (await_condition, case, case_with_tools, check, check_examples, check_places,
                     end_with_parent, isolated, need, run, work_directory)

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldLogFile={directory}/log/slurmctld.log
SlurmdLogFile={directory}/log/slurmd.%n.log
PlugStackConfig=/dev/null
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=2
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=30
TmpFS={directory}/tmp/%n
NodeName=n[0-{last}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-{last_port}] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
"""


class Cluster:
    """Daemons in namespaces of the test; they end with it."""

    def __init__(self, directory, nodes):
        self.directory = pathlib.Path(directory)
        host = socket.gethostname().split(".")[0]
        for name in ("state", "log", *(f"{kind}/n{i}" for kind in ("spool", "tmp") for i in range(nodes))):
            (self.directory / name).mkdir(parents=True)
        configuration = self.directory / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(host=host, directory=directory, last=nodes - 1,
                                                      last_port=17000 + nodes))
        os.environ["SLURM_CONF"] = str(configuration)
        self.daemons = [self.daemon("slurmctld", "-D", "-c")]
        self.daemons += [self.daemon("slurmd", "-D", "-N", f"n{i}") for i in range(nodes)]
        await_condition("an idle cluster", self.idle)

    def daemon(self, name, *arguments):
        program = name if subprocess.run(["which", name], stdout=subprocess.DEVNULL).returncode == 0 else "/usr/sbin/" + name
        return subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def idle(self):
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.returncode == 0 and done.stdout.strip() == "idle"

    def srun(self, nodes, size, *command, options=(), code=0, mpi="pmix", changes=None):
        return run(["srun", f"--mpi={mpi}", "--overcommit", "-N", nodes, "-n", size, *options, *command], changes, code)

    def state_of(self, job):
        return re.search(r"JobState=(\w+)", run(["scontrol", "show", "job", job])[0])[1]

    def sbatch(self, *words, changes=None):
        """Runs a batch job to its end. Not by --wait, which asks for the end at intervals of many seconds."""
        job = run(["sbatch", "--parsable", "--overcommit", *words], changes)[0].strip()
        await_condition(f"the end of job {job}", lambda: self.state_of(job) not in ("PENDING", "RUNNING", "COMPLETING"),
                        deadline_s=60)
        check(self.state_of(job) == "COMPLETED", run(["scontrol", "show", "job", job])[0])


def cluster(nodes=4):
    for program, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client")):
        need(program, package)
    isolated()
    directory = work_directory()
    made = Cluster(directory.name, nodes)
    made.temporary = directory
    return made


@case
def slurm(programs):
    slurm = cluster()
    for nodes, size in ((1, 1), (1, 2), (2, 4), (4, 8), (4, 16), (4, 64)):
        output, _ = slurm.srun(nodes, size, programs.probe, "map")
        found = check_places(output, size, "pmix", nodes)
        check(sorted({place["node"] for place in found.values()}) == list(range(nodes)), found)
    output, _ = slurm.srun(4, 4, programs.probe, "values")
    check(output.count("secret of 64 characters") == 4, output)
    slurm.srun(2, 4, programs.probe, "interfaces")


@case
def slurm_examples(programs):
    slurm = cluster()
    check_examples(programs, lambda program: slurm.srun(4, 8, program)[0])


@case
def slurm_placement(programs):
    """Ranks that are not in node order, and different numbers of ranks per node."""
    slurm = cluster(3)
    found = check_places(slurm.srun(3, 6, programs.probe, "map", options=["--distribution=cyclic"])[0], 6, "pmix", 3)
    check([found[rank]["node"] for rank in range(6)] == [0, 1, 2, 0, 1, 2], found)
    with open(slurm.directory / "hosts", "w", encoding="utf-8") as hosts:
        hosts.write("n2\nn0\nn0\nn2\nn1\nn2\n")
    output, _ = slurm.srun(3, 6, programs.probe, "map", options=["--distribution=arbitrary"],
                           changes={"SLURM_HOSTFILE": slurm.directory / "hosts"})
    found = check_places(output, 6, "pmix", 3)
    check([found[rank]["node"] for rank in range(6)] == [0, 1, 1, 0, 2, 0], found)
    check([found[rank]["local_size"] for rank in range(6)] == [3, 2, 2, 3, 1, 3], found)


@case
def slurm_failures(programs):
    slurm = cluster(2)
    _, error = slurm.srun(2, 4, programs.probe, "map", mpi="none", code=None)
    check("use srun --mpi=pmix" in error, f"srun without PMIx wrote: {error}")
    # It depends on the PMIx plug-in whether other tasks survive a killed one, also with
    # --kill-on-bad-exit=0. mpirun_dying_rank and hosts_dying_rank test the survivors.
    begin = time.monotonic()
    # Slurm may end the step before it forwards the last lines, so the text is not checked.
    slurm.srun(2, 4, programs.probe, "abort", code=None)
    check(time.monotonic() - begin < 20, "the others were ended soon")


@case_with_tools
def slurm_perf(programs):
    """Pairs across nodes, and all pairs with their nodes."""
    slurm = cluster(2)
    tiny = ["--time", "0.005", "--json", "-"]
    output, _ = slurm.srun(2, 4, programs.perf, "put", "--sizes", "8", "--across-nodes", *tiny)
    document = json.loads(output)
    check("on 2 nodes (ranks 0-1; 2-3)" in document["processes"], document["processes"])
    check("pairs across nodes: 0-2, 1-3" in document["processes"], document["processes"])
    rows = json.loads(slurm.srun(2, 4, programs.perf, "all-pairs", *tiny)[0])["results"]
    places = {(row["rank"], row["peer_rank"]): (row["node"], row["peer_node"]) for row in rows}
    check(places == {(0, 1): (0, 0), (2, 3): (1, 1), (0, 2): (0, 1), (0, 3): (0, 1), (1, 2): (0, 1), (1, 3): (0, 1)},
          places)


@case_with_tools
def slurm_batch_script(programs):
    """packaging/slurm/portals.sbatch with a program. Without one it runs ptl_perf across nodes."""
    slurm = cluster(2)
    script = pathlib.Path(__file__).resolve().parents[2] / "packaging/slurm/portals.sbatch"
    output = slurm.directory / "output"
    batch = ["--nodes=2", "--ntasks=4", "--ntasks-per-node=2", f"--output={output}", script]
    slurm.sbatch(*batch, programs.example("hello"))
    check("hello: 4 greetings" in output.read_text(), output.read_text())
    slurm.sbatch(*batch, changes={"PATH": f"{programs.directory}:{os.environ['PATH']}"})
    check("pairs across nodes: 0-2, 1-3" in output.read_text(), output.read_text())
