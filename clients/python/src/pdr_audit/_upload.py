"""Files of samples on their way to the service, in pieces of bounded size."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ._rows import rows

if TYPE_CHECKING:
    import pandas

#: A file by its path, its bytes at once or piece by piece, or samples.
Source: TypeAlias = (
    "str | os.PathLike[str] | bytes | Iterable[bytes] | Iterable[Mapping[str, Any]] | pandas.DataFrame"
)
#: The same, or what comes asynchronously.
AsyncSource: TypeAlias = "Source | AsyncIterable[bytes] | AsyncIterable[Mapping[str, Any]]"

#: The most bytes that are read of a file at once, and the fewest that are sent at once of small pieces.
PIECE = 1 << 16
NDJSON = "application/x-ndjson"
_MEDIA_TYPES = {
    ".jsonl": NDJSON,
    ".ndjson": NDJSON,
    ".json": "application/json",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".parquet": "application/vnd.apache.parquet",
}
_COMPRESSED = (".gz", ".zst", ".zstd")


@dataclass(frozen=True)
class Upload:
    """The body of an upload."""

    source: AsyncSource

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be read more than once."""
        return not isinstance(self.source, (Iterator, AsyncIterator))

    def media_type(self) -> str:
        """The media type that the name of a file tells; of anything else NDJSON.

        Raises ValueError where the name tells none.
        """
        if not isinstance(self.source, (str, os.PathLike)):
            return NDJSON
        name = PurePath(self.source).name.lower()
        for suffix in _COMPRESSED:
            name = name.removesuffix(suffix)
        media_type = _MEDIA_TYPES.get(PurePath(name).suffix)
        if media_type is None:
            known = ", ".join(_MEDIA_TYPES)
            raise ValueError(f"{self.source}: the name ends in none of {known}; say what it is with media_type")
        return media_type

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces."""
        source = self.source
        if isinstance(source, bytes):
            yield source
        elif isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                while piece := file.read(PIECE):
                    yield piece
        elif isinstance(source, AsyncIterable):
            raise TypeError("what comes asynchronously is uploaded with AsyncClient")
        else:
            is_frame = hasattr(source, "to_dict")
            pieces = rows(cast("pandas.DataFrame", source)) if is_frame else cast("Iterable[Any]", source)
            yield from _joined(map(_encoded, pieces))

    async def async_chunks(self) -> AsyncIterator[bytes]:
        """The same; what blocks does so in another thread."""
        if isinstance(self.source, AsyncIterable):
            async for piece in self.source:
                yield _encoded(piece)
            return
        chunks = self.chunks()
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk


def _encoded(piece: bytes | Mapping[str, Any]) -> bytes:
    """A piece of a file as it is; a sample as a line of JSON."""
    return piece if isinstance(piece, bytes) else json.dumps(piece).encode() + b"\n"


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        if len(buffer) >= PIECE:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
