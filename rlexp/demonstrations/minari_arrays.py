"""The arrays of a Minari dataset, read from an HDF5 file that anybody may have made.

No link is followed, nothing outside of the file is opened, and no more is allocated than a file of its size can hold.
"""

from __future__ import annotations

import io
import math
import os
from typing import IO, Any

import numpy as np
from gymnasium import spaces

from rlexp.demonstrations.dataset import Array, Episode
from rlexp.errors import first_line

_SMALL = 64 * 2**20  # bytes that any file may announce
_RATIO = 100  # of what a larger one may announce to its own size


def read_episodes(
    file: IO[bytes], observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> tuple[Episode, ...]:
    """Return the episodes in order.

    :raises ValueError: when something is missing, is a link, lies outside of the file or has another shape
    :raises OSError: when the file is damaged
    """
    import h5py

    found = []
    with h5py.File(file, "r") as data:
        arrays = _Arrays(os.fstat(file.fileno()).st_size)
        for number in range(len(data)):
            try:
                group = _member(data, f"episode_{number}", h5py.Group)
                found.append(_episode(arrays, group, observation_space, action_space))
            except ValueError as error:
                raise ValueError(f"episode {number}: {error}") from error
    return tuple(found)


def _episode(
    arrays: _Arrays, group: Any, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> Episode:
    import h5py

    length = _member(group, "rewards", h5py.Dataset).size or 0
    rewards = arrays.read(group, "rewards", (length,), np.dtype(np.float32))
    terminations, truncations = (
        arrays.read(group, name, (length,), np.dtype(np.bool_)) for name in ("terminations", "truncations")
    )
    if (terminations | truncations)[:-1].any():
        raise ValueError("it goes on after its end")
    if isinstance(observation_space, spaces.Dict):
        parts = _member(group, "observations", h5py.Group)
        observations: Any = {
            key: arrays.elements(parts, key, length + 1, space)
            for key, space in observation_space.spaces.items()
        }
    else:
        observations = arrays.elements(group, "observations", length + 1, observation_space)
    return Episode(
        observations,
        arrays.elements(group, "actions", length, action_space),
        rewards,
        bool(terminations[-1:].any()),
        bool(truncations[-1:].any()),
    )


class _Arrays:
    """Reads arrays as long as their file can hold what it announces.

    :param size: of the file, in bytes
    """

    def __init__(self, size: int) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._left = min(memory, max(_SMALL, _RATIO * size))

    def elements(self, group: Any, name: str, rows: int, space: spaces.Space[Any]) -> Array:
        """Read ``(rows, ...)`` elements of a space."""
        shape, dtype = (rows, *(space.shape or ())), np.dtype(space.dtype)
        return self.read(group, name, shape, dtype, _is_image(space))

    def read(
        self, group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], may_be_jpeg: bool = False
    ) -> Array:
        """Read an array.

        :param shape: it must have
        :param dtype: floats are rounded to it; of whole numbers and flags, every one must be the same in it
        :param may_be_jpeg: whether each of its rows may be a JPEG image instead
        """
        import h5py

        dataset = _member(group, name, h5py.Dataset)
        if dataset.external or dataset.is_virtual:
            raise ValueError(f"{name} lie in another file")
        is_array = dataset.shape == shape and dataset.dtype.kind in "biuf"
        if not is_array and not (may_be_jpeg and dataset.shape and dataset.shape[0] == shape[0]):
            raise ValueError(f"{name} are {dataset.dtype} {dataset.shape}, {dtype} {shape} are needed")
        elements = max(math.prod(shape), math.prod(dataset.shape[1:]))
        self._left -= elements * max(dataset.dtype.itemsize, dtype.itemsize)
        if self._left < 0:
            raise ValueError(f"{name} are {dataset.shape}, more than a file of this size can hold")
        return _converted(dataset[()], dtype, name) if is_array else _frames(dataset, shape)


def _member(group: Any, name: str, kind: type[Any]) -> Any:
    """Return a group or dataset that lies directly in a group."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"{name} {'is missing' if link is None else 'is a link, which is not followed'}")
    found = group[name]
    if not isinstance(found, kind):
        raise ValueError(f"{name} is no {kind.__name__.lower()}")
    return found


def _converted(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(converted, array):
        raise ValueError(f"{name} are {array.dtype} and not all of them {dtype}")
    return converted


def _is_image(space: spaces.Space[Any]) -> bool:
    """Whether Minari stores elements of a space as JPEG images unless it is asked not to."""
    shape = space.shape or ()
    return space.dtype == np.uint8 and len(shape) in (2, 3) and min(shape[:2]) >= 32


def _frames(dataset: Any, shape: tuple[int, ...]) -> Array:
    """Decode one image for every row."""
    from PIL import Image

    frames = np.empty(shape, np.uint8)
    for row in range(len(frames)):
        content = io.BytesIO(np.asarray(dataset[row], np.uint8).tobytes())
        try:
            with Image.open(content, formats=["JPEG"]) as image:
                if (image.height, image.width) != shape[1:3]:  # before anything is decoded
                    raise ValueError(f"{image.height} x {image.width} pixels")
                frames[row] = np.asarray(image).reshape(shape[1:])
        except Exception as error:  # a decoder may raise anything
            raise ValueError(f"image {row} of {shape}: {first_line(error)}") from error
    return frames
