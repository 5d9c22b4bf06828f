"""Weather years, installed and of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlexp.envs.datacenter import weather
from rlexp.errors import UsageError

pytestmark = pytest.mark.usefixtures("engine_installed")


def test_every_named_weather_is_a_year() -> None:
    for name in weather.FILES:
        assert weather.locate(name).is_file(), name
    helsinki = weather.load("helsinki")
    assert helsinki.dry_bulb.shape == (8760,) and helsinki.dry_bulb.mean() == pytest.approx(5.18, abs=0.01)


def test_unknown_weather(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'helsinki'"):
        weather.load("helsinky")
    with pytest.raises(UsageError, match="there is no file"):
        weather.load(str(tmp_path / "mars.epw"))
    short = tmp_path / "short.epw"
    short.write_text("\n".join(weather.locate("helsinki").read_text("latin-1").splitlines()[:100]))
    with pytest.raises(UsageError, match="must hold 8,760 hours"):
        weather.load(str(short))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = weather.find_spec
    monkeypatch.setattr(weather, "find_spec", lambda name: None if name == weather.ENGINE else found(name))
    with pytest.raises(
        UsageError, match=r"comes with pyenergyplus, which is not installed.*at hand are .*helsinki"
    ):
        weather.locate("chicago")
    assert weather.locate("helsinki").is_file()


def test_years_differ_and_are_decided_by_their_seed() -> None:
    file = weather.load("stockholm")
    one, same, other = (weather.perturbed(file, 2.0, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.dry_bulb, same.dry_bulb) and not np.array_equal(one.dry_bulb, other.dry_bulb)
    change = one.dry_bulb - file.dry_bulb
    assert change.std() == pytest.approx(2.0, abs=0.4) and abs(change.mean()) < 0.5
    # Whole weeks are warmer or colder, not single hours.
    assert np.corrcoef(change[:-24], change[24:])[0, 1] == pytest.approx(np.exp(-0.5), abs=0.1)
    assert one.relative_humidity.min() >= 5 and one.relative_humidity.max() <= 100
    assert weather.perturbed(file, 0.0, np.random.default_rng(0)) is file


def test_a_year_of_our_own_is_read_back(tmp_path: Path) -> None:
    year = weather.perturbed(weather.load("golden"), 2.0, np.random.default_rng(0))
    path = tmp_path / "year.epw"
    weather.write(year, path)
    back = weather.load(str(path))
    assert np.allclose(back.dry_bulb, year.dry_bulb) and np.allclose(
        back.relative_humidity, year.relative_humidity
    )
    mine, theirs = (one.read_text("latin-1").splitlines() for one in (path, year.origin))
    assert mine[:8] == theirs[:8] and mine[8].split(",")[10:] == theirs[8].split(",")[10:]


def test_dew_point_and_quarter_hours() -> None:
    assert weather.dew_point(np.array([20.0]), np.array([50.0]))[0] == pytest.approx(9.26, abs=0.05)
    hourly = np.arange(8760.0)
    quarters = weather.quarter_hours(hourly)
    assert quarters.shape == (35_040,) and quarters[4:8].tolist() == [0.25, 0.5, 0.75, 1.0]
    assert quarters[:4].tolist() == [17.25, 11.5, 5.75, 0.0], (
        "before the first hour comes the last of that day"
    )
