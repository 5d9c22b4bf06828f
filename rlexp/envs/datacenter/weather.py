"""Weather years: which installed files there are, and years of our own that differ from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlexp.envs.datacenter.packages import ENGINE, HOW, MODELS, data_folder
from rlexp.errors import UsageError, did_you_mean

Floats = npt.NDArray[np.float64]

FILES: dict[str, tuple[str, str]] = {
    "helsinki": (MODELS, "FIN_Helsinki.029740_IWEC.epw"),
    "stockholm": (MODELS, "SWE_Stockholm.Arlanda.024600_IWEC.epw"),
    "antananarivo": (MODELS, "MDG_Antananarivo.670830_IWEC.epw"),
    "bogota": (MODELS, "COL_Bogota.802220_IWEC.epw"),
    "granada": (MODELS, "ESP_Granada.084190_SWEC.epw"),
    "lisbon": (MODELS, "PRT_Lisboa.085360_INETI.epw"),
    "new_york": (MODELS, "USA_NY_New.York-J.F.Kennedy.Intl.AP.744860_TMY3.epw"),
    "pittsburgh": (MODELS, "USA_PA_Pittsburgh-Allegheny.County.AP.725205_TMY3.epw"),
    "port_angeles": (MODELS, "USA_WA_Port.Angeles-William.R.Fairchild.Intl.AP.727885_TMY3.epw"),
    "sydney": (MODELS, "AUS_NSW.Sydney.947670_IWEC.epw"),
    "tokyo": (MODELS, "JPN_Tokyo.Hyakuri.477150_IWEC.epw"),
    "tucson": (MODELS, "USA_AZ_Davis-Monthan.AFB.722745_TMY3.epw"),
    "boulder": (ENGINE, "USA_CO_Boulder-Broomfield-Jefferson.County.AP.724699_TMY3.epw"),
    "champaign": (ENGINE, "USA_IL_University.of.Illinois-Willard.AP.725315_TMY3.epw"),
    "chicago": (ENGINE, "USA_IL_Chicago-OHare.Intl.AP.725300_TMY3.epw"),
    "colorado_springs": (ENGINE, "USA_CO_Colorado.Springs-Peterson.Field.724660_TMY3.epw"),
    "denver": (ENGINE, "USA_CO_Denver-Aurora-Buckley.AFB.724695_TMY3.epw"),
    "fresno": (ENGINE, "USA_CA_Fresno.Air.Terminal.723890_TMY3.epw"),
    "golden": (ENGINE, "USA_CO_Golden-NREL.724666_TMY3.epw"),
    "las_vegas": (ENGINE, "USA_NV_Las.Vegas-McCarran.Intl.AP.723860_TMY3.epw"),
    "miami": (ENGINE, "USA_FL_Miami.Intl.AP.722020_TMY3.epw"),
    "newark": (ENGINE, "USA_NJ_Newark.Intl.AP.725020_TMY3.epw"),
    "oklahoma_city": (ENGINE, "USA_OK_Oklahoma.City-Will.Rogers.World.AP.723530_TMY3.epw"),
    "orlando": (ENGINE, "USA_FL_Orlando.Intl.AP.722050_TMY3.epw"),
    "phoenix": (ENGINE, "USA_AZ_Phoenix-Sky.Harbor.Intl.AP.722780_TMY3.epw"),
    "san_francisco": (ENGINE, "USA_CA_San.Francisco.Intl.AP.724940_TMY3.epw"),
    "sterling": (ENGINE, "USA_VA_Sterling-Washington.Dulles.Intl.AP.724030_TMY3.epw"),
    "tampa": (ENGINE, "USA_FL_Tampa.Intl.AP.722110_TMY3.epw"),
}
"""File of every named weather and the package that contains it."""

HOURS = 8760
_HEADER_LINES = 8
_DRY_BULB, _DEW_POINT, _HUMIDITY, _PRESSURE = 6, 7, 8, 9  # columns, EPW format
_COLUMNS = 35

CORRELATION_HOURS = 48.0
"""After so many hours a deviation from the file has decayed to 1/e: the passage of a weather system."""
HUMIDITY_PER_KELVIN = 2.5
"""Standard deviation of relative humidity, in percentage points, for every kelvin of that of temperature."""


@dataclass(frozen=True)
class Weather:
    """One year, hour by hour; an entry is the value at the end of its hour.

    :param name: as it was asked for
    :param path: the file; None for a year of our own, which :func:`write` puts into one
    :param dry_bulb: degrees Celsius, ``(8760,)``
    :param relative_humidity: per cent, ``(8760,)``
    :param pressure: pascal, ``(8760,)``
    :param origin: the file that it comes from
    """

    name: str
    path: Path | None
    dry_bulb: Floats
    relative_humidity: Floats
    pressure: Floats
    origin: Path


def locate(name: str) -> Path:
    """Return the file of a named weather, or of an EPW file's own path.

    :raises UsageError: when there is no such weather or the package that contains it is not installed
    """
    if name in FILES:
        package, file = FILES[name]
        if find_spec(package) is None:
            others = [other for other, (package, _) in FILES.items() if find_spec(package) is not None]
            raise UsageError(
                f"weather: '{name}' comes with {package}, which is not installed; {HOW[package]}; "
                f"at hand are {', '.join(sorted(others)) or 'none'}, and any .epw file"
            )
        path = data_folder(package) / "weather" / file
        if not path.is_file():
            raise UsageError(f"weather: '{name}' is missing from the installed {package}: {path}")
        return path
    path = Path(name).expanduser()
    if path.suffix.lower() == ".epw":
        if not path.is_file():
            raise UsageError(f"weather: there is no file {path}")
        return path.absolute()
    raise UsageError(
        f"weather: '{name}' given, allowed are the path of an .epw file and {', '.join(sorted(FILES))}"
        f"{did_you_mean(name, FILES)}"
    )


@lru_cache(maxsize=32)
def load(name: str) -> Weather:
    """Read a weather year.

    :raises UsageError: when it cannot be found or is not a year of 8,760 hours
    """
    path = locate(name)
    rows = _rows(path)
    if len(rows) != HOURS or any(len(row) < _COLUMNS - 1 for row in rows):
        raise UsageError(f"weather: {path} must hold {HOURS:,} hours of EPW data, found {len(rows):,} lines")
    try:
        columns = np.array(
            [[float(row[place]) for place in (_DRY_BULB, _HUMIDITY, _PRESSURE)] for row in rows]
        )
    except ValueError as error:
        raise UsageError(f"weather: {path} cannot be read ({error})") from error
    return Weather(name, path, columns[:, 0], columns[:, 1], columns[:, 2], path)


def perturbed(weather: Weather, deviation: float, rng: np.random.Generator) -> Weather:
    """Return another year of the same climate.

    Temperature and relative humidity are moved by Ornstein-Uhlenbeck noise, so that weeks come out warmer or colder,
    and the dew point follows from both.

    :param deviation: standard deviation of the temperature's change, in kelvin; 0: the year as it is
    :param rng: draws the noise
    """
    if deviation == 0:
        return weather
    decay = np.exp(-1.0 / CORRELATION_HOURS)
    draws = rng.normal(size=(2, HOURS))
    draws[:, 1:] *= np.sqrt(1 - decay**2)
    noise = np.empty_like(draws)
    level = np.zeros(2)
    for hour in range(HOURS):
        level = decay * level + draws[:, hour]
        noise[:, hour] = level
    dry_bulb = np.round(weather.dry_bulb + deviation * noise[0], 1)
    humidity = weather.relative_humidity + HUMIDITY_PER_KELVIN * deviation * noise[1]
    humidity = np.round(np.clip(humidity, 5.0, 100.0))
    return dataclasses.replace(weather, path=None, dry_bulb=dry_bulb, relative_humidity=humidity)


def write(weather: Weather, path: Path) -> None:
    """Write a year as an EPW file; what was not perturbed stays as in the file it comes from."""
    lines = weather.origin.read_text(encoding="latin-1").splitlines()
    dew_points = dew_point(weather.dry_bulb, weather.relative_humidity)
    for hour, row in enumerate(_rows(weather.origin)):
        row[_DRY_BULB] = f"{weather.dry_bulb[hour]:.1f}"
        row[_DEW_POINT] = f"{dew_points[hour]:.1f}"
        row[_HUMIDITY] = f"{weather.relative_humidity[hour]:.0f}"
        lines[_HEADER_LINES + hour] = ",".join(row)
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")


def dew_point(dry_bulb: Floats, relative_humidity: Floats) -> Floats:
    """Return the dew point in degrees Celsius (Magnus formula, Alduchov & Eskridge 1996)."""
    gamma = np.log(relative_humidity / 100.0) + 17.625 * dry_bulb / (243.04 + dry_bulb)
    return np.asarray(243.04 * gamma / (17.625 - gamma))


def quarter_hours(hourly: Floats) -> Floats:
    """Return the value at the end of every quarter of an hour, ``(35040,)``, as the engine interpolates.

    The hour before the first one is the last of the same day.
    """
    before = np.concatenate([hourly[23:24], hourly[:-1]])
    share = np.array([0.25, 0.5, 0.75, 1.0])
    return np.asarray(before[:, None] * (1 - share) + hourly[:, None] * share).reshape(-1)


def _rows(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="latin-1").splitlines()
    return [line.split(",") for line in lines[_HEADER_LINES:] if line.strip()]
