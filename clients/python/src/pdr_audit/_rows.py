"""Samples as lists of JSON objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .types import Sample

if TYPE_CHECKING:
    import pandas

#: Samples of an audit; a frame has the columns ``text`` and perhaps ``label``, ``id`` and ``group``.
Samples: TypeAlias = "Iterable[Sample] | pandas.DataFrame"


def rows(samples: Samples) -> list[Mapping[str, Any]]:
    """The samples; of a frame the cells that are not empty."""
    if not hasattr(samples, "to_dict"):
        return [cast("Mapping[str, Any]", sample) for sample in samples]
    frame = cast("pandas.DataFrame", samples)
    records = cast("list[dict[str, Any]]", frame.astype(object).to_dict("records"))
    present = cast("list[dict[str, bool]]", frame.notna().to_dict("records"))
    return [
        {name: _plain(value) for name, value in row.items() if there[name]}
        for row, there in zip(records, present, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A cell of a frame as JSON has it."""
    # Arrays of numpy, which are what a file of Parquet has lists as, and its numbers.
    value = value.tolist() if hasattr(value, "tolist") else value
    # Integers with gaps among them are floats in a frame, and no field of a sample is a fraction.
    return int(value) if isinstance(value, float) and value.is_integer() else value
