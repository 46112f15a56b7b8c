"""Processes without a launcher, and launches that fail."""
import os
import pathlib
import re
import shutil
import subprocess

from support import case, check, check_examples, check_places, need, run, work_directory


@case
def alone(programs):
    output, error = run([programs.probe, "map"])
    check_places(output, 1, "none")
    check(error == "", error)
    for action in ("values", "interfaces", "same-interface", "ptl-abort", "set-up"):
        run([programs.probe, action])


@case
def alone_examples(programs):
    check_examples(programs, lambda program: run([program])[0])


@case
def alone_abort(programs):
    _, error = run([programs.probe, "abort"], code=42)
    check("the job is aborted with code 42: aborted on purpose" in error, error)


@case
def broken_launch(programs):
    """Variables of a launcher without the launcher: an error with this cause, not a job of one process."""
    for left in ({"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0"}, {"PMIX_RANK": "0"},
                 {"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0", "PMIX_SERVER_URI41": "gone;tcp4://127.0.0.1:1"}):
        _, error = run([programs.probe, "map"], left, code=9)
        check("the environment says that a launcher started this process" in error and
              "its PMIx server does not answer" in error, error)


@case
def broken_launch_server_gone(programs):
    """The environment of a real job after the end of the job."""
    need("mpirun", "openmpi-bin")
    output, _ = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", "env", "-0"])
    left = dict(entry.split("=", 1) for entry in output.split("\0") if entry.startswith("PMIX_"))
    check("PMIX_NAMESPACE" in left, "mpirun sets PMIX_NAMESPACE")
    _, error = run([programs.probe, "map"], left, code=9)
    check("its PMIx server does not answer" in error, error)


@case
def broken_launch_without_pmix(programs):
    """Several processes started by a launcher without PMIx."""
    for left, text in (({"SLURM_STEP_NUM_TASKS": 4}, "srun --mpi=pmix"), ({"PMI_SIZE": 2}, "offers no PMIx"),
                       ({"OMPI_COMM_WORLD_SIZE": 2}, "offers no PMIx")):
        _, error = run([programs.probe, "map"], left, code=9)
        check(text in error, error)
    output, _ = run([programs.probe, "map"], {"SLURM_STEP_NUM_TASKS": 1})
    check_places(output, 1, "none")


@case
def module_missing_or_broken(programs):
    """Without the PMIx module the library works, except under a launcher."""
    launched = {"PMIX_NAMESPACE": "job", "PMIX_RANK": "0"}
    with work_directory() as directory:
        for library in (programs.directory.parent / "lib").glob("libportals*.so.4*"):
            shutil.copy(library, directory, follow_symlinks=True)
        here = {"LD_LIBRARY_PATH": directory}
        run([programs.probe, "map"], here)
        _, error = run([programs.probe, "map"], {**here, **launched}, code=9)
        check("the module pmix is not installed" in error, error)
        module = pathlib.Path(directory) / "lintel/pmix.so"
        module.parent.mkdir()
        module.write_text("not a library")
        _, error = run([programs.probe, "map"], {**here, **launched}, code=9)
        check("cannot load the module" in error and "needs libpmix" in error, error)


@case
def library_needs_no_pmix(programs):
    """libpmix is loaded only under a launcher, so one package also suits machines without it."""
    listing = subprocess.run(["readelf", "-d", programs.directory.parent / "lib/libportals_runtime.so.4"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listing)
    check("libportals.so.4" in needed and not any("pmix" in library for library in needed), needed)


@case
def key_file(programs):
    """PTL_JOB_KEY_FILE: read if only its owner has access, otherwise refused."""
    with work_directory() as directory:
        path = pathlib.Path(directory) / "key"
        setting = {"PTL_JOB_KEY_FILE": path}
        _, error = run([programs.probe, "set-up"], setting, code=9)
        check("no job key: PTL_JOB_KEY_FILE=" in error and "No such file or directory" in error, error)
        path.write_text("open sesame\nnot this line\n")
        for mode in (0o640, 0o604, 0o660, 0o666):
            path.chmod(mode)
            _, error = run([programs.probe, "set-up"], setting, code=9)
            check("others than its owner have access" in error, error)
        path.chmod(0o600)
        output, _ = run([programs.probe, "values"], setting)
        check(f"secret of {len('open sesame')} characters" in output, output)
        output, _ = run([programs.probe, "values"], {**setting, "PTL_JOB_KEY": "no"})
        check("secret of 2 characters" in output, "PTL_JOB_KEY goes before the file: " + output)
        path.write_text("\n")
        _, error = run([programs.probe, "set-up"], setting, code=9)
        check("its first line is empty" in error, error)
        if os.geteuid() == 0:
            path.write_text("open sesame")
            os.chown(path, 65534, 65534)
            _, error = run([programs.probe, "set-up"], setting, code=9)
            check("it belongs to user 65534" in error, error)
