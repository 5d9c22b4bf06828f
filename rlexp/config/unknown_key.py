"""What is meant by a key that the config does not have: the name that other tools use for it, or a slip."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rlexp.errors import did_you_mean

# Names that Stable-Baselines3, RL-Zoo, CleanRL and others use, by the key of ours; one without a dot is looked for
# below every group.
_ALIASES = {
    "total_timesteps": "steps timesteps n_timesteps num_timesteps total_steps max_steps max_timesteps env_steps",
    "total_episodes": "episodes n_episodes num_episodes max_episodes",
    "seed": "random_seed",
    "output_dir": "out_dir log_dir logdir save_dir outdir",
    "force": "overwrite",
    "algo": "algorithm agent alg",
    "env": "environment task env_id env_name gym_id",
    "hardware.n_envs": "num_envs n_env envs nb_envs",
    "hardware.device": "cuda gpu",
    "hardware.torch_threads": "threads num_threads n_threads",
    "evaluation.every_timesteps": "eval_freq eval_every eval_interval evaluation_frequency",
    "evaluation.episodes": "eval_episodes n_eval_episodes num_eval_episodes",
    "checkpoint.every_timesteps": "save_freq save_every checkpoint_freq checkpoint_frequency",
    "learning_rate": "lr step_size",
    "gamma": "discount discount_factor",
    "n_steps": "num_steps rollout_length rollout_steps",
    "batch_size": "minibatch_size mini_batch_size",
    "n_epochs": "epochs num_epochs update_epochs noptepochs",
    "gae_lambda": "lam lambda gae_lam",
    "clip_range": "clip clip_coef clip_param clip_eps",
    "ent_coef": "entropy_coef entropy_coeff ent_coeff entropy_weight",
    "vf_coef": "value_coef vf_coeff value_loss_coef",
    "net_arch": "hidden hidden_sizes hidden_dims hidden_layers",
    "activation_fn": "activation",
    "buffer_size": "memory_size replay_size buffer_capacity replay_capacity",
    "learning_starts": "warmup_steps start_steps learning_start",
    "target_update_interval": "target_update_freq target_network_frequency",
    "tau": "polyak",
    "lstm_hidden_size": "lstm_size rnn_size",
}
_MEANT = {alias: key for key, aliases in _ALIASES.items() for alias in aliases.split()}


def explain_unknown(key: str, value: str, keys: Sequence[str]) -> str | None:
    """Return the line that answers an unknown key; None when nothing that there is comes near.

    :param key: dotted, as it was typed
    :param value: what it was set to
    :param keys: those that there are
    """
    written = known_as(key, value, keys)
    if written is not None:
        return f"unknown key '{key}': write {written}"
    hint = _near(key, keys)
    return f"unknown key '{key}'{hint}" if hint else None


def known_as(key: str, value: str, keys: Collection[str]) -> str | None:
    """Return the override that is meant by a key of another name or below another parent, None when there is none.

    :param key: dotted, or with dashes as in a flag
    """
    leaf = key.replace("-", "_").lower().rpartition(".")[2]
    names = (leaf, _MEANT.get(leaf, leaf))
    for name in names if "." in key else reversed(names):
        found = [other for other in keys if other == name or other.endswith(f".{name}")]
        own = [other for other in found if other.rpartition(".")[0] == key.rpartition(".")[0]]
        if found:
            return f"{(own or found)[0]}={value}"
    return None


def _near(key: str, keys: Sequence[str]) -> str:
    parent, _, leaf = key.rpartition(".")
    siblings = {other.rpartition(".")[2]: other for other in keys if other.rpartition(".")[0] == parent}
    leaves = {other.rpartition(".")[2]: other for other in reversed(keys)}
    for names in (siblings, leaves):
        if hint := did_you_mean(leaf, names):
            name = hint.split("'")[1]
            return hint.replace(f"'{name}'", f"'{names[name]}'")
    return ""


def static_keys() -> list[str]:
    """Return keys of the config that need no composing: general ones first, then those of any algorithm."""
    import dataclasses
    import typing

    from rlexp.config.schema import Config, schemas

    found = [field.name for field in dataclasses.fields(Config)]
    for name, kind in typing.get_type_hints(Config).items():
        if dataclasses.is_dataclass(kind):
            found += [f"{name}.{field.name}" for field in dataclasses.fields(kind)]
    for path, schema in schemas().items():
        group = path.split("/")[1]
        if group == "algo":
            found += [f"algo.{field.name}" for field in dataclasses.fields(schema) if field.name != "name"]
    return list(dict.fromkeys(found))
