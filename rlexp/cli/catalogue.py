"""What several commands know: the commands, the reports, and where demonstrations are kept."""

from __future__ import annotations

from pathlib import Path

COMMANDS = {
    "train": "train one run or, with -m, many; implied: rlexp algo=lcpo env=restaurant",
    "list": "algorithms, environments, experiments, sweeps, reports, runs, demos",
    "info": "explain an algorithm, environment, sweep or experiment: rlexp info lcpo",
    "demos": "record demonstrations: rlexp demos env=unlock_pickup expert=bot episodes=100",
    "resume": "go on with an interrupted run, or give a finished one more steps: rlexp resume RUN",
    "evaluate": "evaluate a trained run again: rlexp evaluate RUN evaluation.episodes=500",
    "sweep": "train every run that a published table or figure needs: rlexp sweep table1",
    "wandb": "show what W&B's file of a run holds, without an account: rlexp wandb show RUN",
    "report": "render tables and figures from run folders: rlexp report table1 --reference",
}

MEASUREMENTS = {
    "restaurant_fidelity": "The restaurant task measured beside its reference figures",
    "datacenter_fidelity": "The data centre: reference controllers on engine and surrogate",
    "cliffwalk": "Blind Cliffwalk: updates until solved, by order of replay (Schaul et al. 2016, Figure 1)",
}


def reports() -> dict[str, str]:
    """Return what can be reported, one line each by name."""
    from rlexp.reports import sweep_file

    return {
        **sweep_file.available(),
        **MEASUREMENTS,
        "run RUN": "Learning curve of one run",
        "sweep DIR": "Runs below a folder compared over whatever keys vary, best first",
    }


def demonstrations_dir(output_dir: str | Path) -> Path:
    """Return the folder for demonstrations below an output folder."""
    return Path(output_dir) / "demonstrations"
