"""What is read back from run folders: data of the expected types, or one line that says what is wrong.

Nothing that is read can execute code, be expanded beyond its size on disk, or steer a terminal.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rlexp.errors import UsageError
from rlexp.system.files import read_text
from rlexp.system.terminal import inert, one_line

if TYPE_CHECKING:
    from omegaconf import DictConfig

STATUSES = ("running", "finished", "failed", "interrupted")

_RECORD_BYTES = 16 << 20
_CONFIG_BYTES = 64 << 10
_CONFIG_NODES = 3000  # keys and values; the parser needs about a second for so many
_DEEPEST = 24
_LARGEST = 2**63

_TEXT, _NUMBER, _WHOLE, _OBJECT = "a text", "a number", "a whole number", "an object"
_RECORD: dict[str, str] = {
    "schema_version": _WHOLE,
    "status": _TEXT,
    "error": _TEXT,
    "traceback": _TEXT,
    "seed": _WHOLE,
    "algo": _TEXT,
    "env": _TEXT,
    "variant": _TEXT,
    "name": _TEXT,
    "started": _TEXT,
    "ended": _TEXT,
    "command": _TEXT,
    "wandb_id": _TEXT,
    "attempts": _WHOLE,
    "episodes": _WHOLE,
    "timesteps": _WHOLE,
    "wall_s": _NUMBER,
    "cpu_s": _NUMBER,
    "train_s": _NUMBER,
    "choices": _OBJECT,
    "git": _OBJECT,
    "versions": _OBJECT,
    "machine": _OBJECT,
    "ray": _OBJECT,
    "extended_from": _OBJECT,
    "init_from": _OBJECT,
}
_NEVER_NULL = ("status", "seed", "attempts", "wandb_id", "episodes", "timesteps")
_EVALUATED = ("n", "return_mean", "return_std")


# ------------------------------------------------------------------------------------------------------------- JSON


def parse_json(text: str | bytes) -> Any:
    """Parse JSON as rlexp writes it: numbers finite, not deeper than two dozen levels; texts come back inert.

    :raises ValueError: saying what is wrong
    """
    try:
        return _checked(json.loads(text, parse_constant=_no_number), 0)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _checked(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {inert(key): _checked(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise ValueError("a number is too large")
    return value


def validate_record(record: Any) -> dict[str, Any]:
    """Return a record whose entries are of the types that a run writes; others may be there, too.

    :raises ValueError: naming the first entry that is not
    """
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    if record.get("status") not in STATUSES:
        raise ValueError("it has no valid status")
    for key, kind in _RECORD.items():
        value = record.get(key)
        if (value is not None or (key in record and key in _NEVER_NULL)) and not _is(value, kind):
            raise ValueError(f"{key} is not {kind}")
    overrides = record.get("overrides") or []
    if not isinstance(overrides, list) or not all(isinstance(one, str) for one in overrides):
        raise ValueError("overrides is not a list of texts")
    if record.get("evaluation"):
        validate_row(record["evaluation"], "evaluation", _EVALUATED)
    elif record.get("evaluation") not in (None, {}):
        raise ValueError("evaluation is not an object")
    if record.get("first_episode") is not None:
        validate_row(record["first_episode"], "first_episode")
    return record


def validate_row(row: Any, name: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a row of numbers by name; a list in it is one of such rows.

    :param name: of the row, for the message
    :param required: keys that must be there
    :raises ValueError: naming the first entry that is wrong
    """
    if not isinstance(row, dict):
        raise ValueError(f"{name} is not an object")
    for key in required:
        if not _is(row.get(key), _NUMBER):
            raise ValueError(f"{name}.{key} is not a number")
    for key, value in row.items():
        if isinstance(value, list):
            for part in value:
                validate_row(part, f"{name}.{key}")
        elif value is not None and not _is(value, _NUMBER) and not isinstance(value, bool):
            raise ValueError(f"{name}.{key} is not a number")
    return row


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return False
    kinds: dict[str, tuple[type, ...]] = {
        _TEXT: (str,),
        _NUMBER: (int, float),
        _WHOLE: (int,),
        _OBJECT: (dict,),
    }
    return isinstance(value, kinds[kind])


def read_record(path: Path) -> dict[str, Any]:
    """Read and validate a ``record.json``.

    :raises UsageError: when it is a link or no regular file
    :raises ValueError: when it is damaged
    :raises OSError: when it cannot be read
    """
    return validate_record(parse_json(read_text(path, _RECORD_BYTES)))


# ------------------------------------------------------------------------------------------------------------- YAML


def read_config(path: Path) -> DictConfig:
    """Read the config of a run, as plain values, with the present names of keys that were renamed since.

    :raises UsageError: naming the file and what is wrong with it
    """
    import yaml
    from omegaconf import DictConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from rlexp.config.renamed import with_new_names

    folder = path.parent
    try:
        text = read_text(path, _CONFIG_BYTES)
        _scan(text)
        config = OmegaConf.create(text)
        if not isinstance(config, DictConfig):
            raise ValueError("it holds no keys")
        container = OmegaConf.to_container(config)
        assert isinstance(container, dict)
        config = OmegaConf.create(with_new_names({str(key): value for key, value in container.items()}))
        _check_groups(config)
    except UsageError:
        raise
    except (OSError, ValueError, RecursionError, OmegaConfBaseException, yaml.YAMLError) as error:
        problem = getattr(error, "problem", None) or str(
            error
        )  # of YAML: such as a key that stands there twice
        reason = one_line((problem.splitlines() or [type(error).__name__])[0])
        raise UsageError(f"{folder}: damaged run, {path.name} cannot be read ({reason})") from error
    return config


def _scan(text: str) -> None:
    """Reject what rlexp never writes, before anything is built from it.

    Aliases could be expanded without end, tags could name types, interpolations could read the environment.

    :raises ValueError: naming it and its line
    """
    import yaml

    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            line = f"line {event.start_mark.line + 1}"
            if number > _CONFIG_NODES:
                raise ValueError(f"more than {_CONFIG_NODES:,} keys and values")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                raise ValueError(f"{line} has an alias")
            if getattr(event, "tag", None) is not None:
                raise ValueError(f"{line} has a tag")
            if isinstance(event, yaml.ScalarEvent) and "${" in event.value:
                raise ValueError(f"{line} has an interpolation")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST:
                    raise ValueError(f"{line} is nested too deeply")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise ValueError(f"{where}{getattr(error, 'problem', None) or 'no YAML'}") from error


def _check_groups(config: DictConfig) -> None:
    from omegaconf import DictConfig

    for group in ("algo", "env"):
        node = config.get(group)
        if not isinstance(node, DictConfig) or not isinstance(node.get("name"), str):
            raise ValueError(f"{group} has no name")
    if not _is(config.get("seed"), _WHOLE):
        raise ValueError("seed is not a whole number")
    if not isinstance(config.get("hardware"), DictConfig):
        raise ValueError("hardware is missing")
