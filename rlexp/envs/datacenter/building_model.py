"""The building: read from an installed package and changed for the engine at hand."""

from __future__ import annotations

import json
from typing import Any

from rlexp.envs.datacenter.packages import MODELS, data_folder

BUILDING = "2ZoneDataCenterHVAC_wEconomizer.epJSON"
ENGINE_VERSION = "25.2"
SERVERS = "ElectricEquipment:ITE:AirCooled"
EAST_SERVERS = "EastDataCenter_Equip"
MANAGERS = "SetpointManager:SingleZone:Cooling"


class ModelError(RuntimeError):
    """The installed building is not the one that is known here."""


def building(self_regulating: bool = False) -> dict[str, Any]:
    """Return the two-zone data centre as the engine needs it.

    :param self_regulating: see :func:`patched`
    :raises UsageError: when the package that contains it is not installed
    :raises ModelError: when it is not the building that is known here
    """
    path = data_folder(MODELS) / "buildings" / BUILDING
    try:
        original = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"the building model cannot be read: {error}") from error
    return patched(original, self_regulating)


def patched(original: dict[str, Any], self_regulating: bool = False) -> dict[str, Any]:
    """Return the model with the fields of engine 25.2 and the author's change of the east servers.

    The name of a field that holds the servers' power density changed between versions, and the engine only warns of
    an unknown field: without the new name there is no server load at all.

    Two managers set the supply air of 12 to 18 degrees that a zone asks for. They act before an agent does, and the
    mixing box of return and outdoor air follows them: with them, the zones stay at 23.5 degrees all winter while an
    agent asks for 40. In the building on which Biemann et al. 2021 train their agents they are commented out.

    :param original: epJSON of version 23.1
    :param self_regulating: keep the managers, for a year that is left to the building's own controllers
    :raises ModelError: when something that must be changed is not there
    """
    model = {key: value for key, value in original.items() if not key.startswith("Output")}
    try:
        for version in model["Version"].values():
            version["version_identifier"] = ENGINE_VERSION
        for people in model["People"].values():
            people["mean_radiant_temperature_calculation_type"] = "EnclosureAveraged"
        for servers in model[SERVERS].values():
            servers["watts_per_floor_area"] = servers.pop("watts_per_zone_floor_area")
        east = model[SERVERS][EAST_SERVERS]
        # As west: the air that the loop brings is what the servers breathe. Otherwise the zone stays at 27.9 degrees.
        east["air_flow_calculation_method"] = "FlowFromSystem"
        for field in ("supply_temperature_difference", "return_temperature_difference"):
            east.pop(field)
        if len(model[MANAGERS]) != 2:
            raise KeyError(f"pair of {MANAGERS}")
        if not self_regulating:
            del model[MANAGERS]
    except (KeyError, AttributeError, TypeError) as error:
        raise ModelError(
            f"the installed building model is not the one that is known here: no {error}"
        ) from error
    densities = [servers["watts_per_floor_area"] for servers in model[SERVERS].values()]
    if len(densities) != 2 or not all(density > 0 for density in densities):
        raise ModelError(f"the installed building model has server loads of {densities} W/m2")
    return model
