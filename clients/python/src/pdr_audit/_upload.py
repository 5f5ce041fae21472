"""Files of samples and documents on their way to the service, in pieces of bounded size."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import zipfile
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ._rows import rows

if TYPE_CHECKING:
    import pandas

#: A file by its path, its bytes at once or piece by piece, or samples.
Source: TypeAlias = "str | os.PathLike[str] | bytes | Iterable[bytes] | Iterable[Mapping[str, Any]] | pandas.DataFrame"
#: The same, or what comes asynchronously.
AsyncSource: TypeAlias = "Source | AsyncIterable[bytes] | AsyncIterable[Mapping[str, Any]]"
#: Files and folders by their paths, or the contents of documents by their names.
Documents: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str, str | bytes]"

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
ZIP = "application/zip"
_DOCUMENTS = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".epub": "application/epub+zip",
    ".zip": ZIP,
}
_COMPRESSED = (".gz", ".zst", ".zstd")


@dataclass(frozen=True)
class Archive:
    """Documents as the ZIP archive that takes them to the service, which reads one file a request."""

    #: Paths, or contents, by the names of the documents.
    entries: Mapping[str, Path | bytes]

    @classmethod
    def of(cls, documents: Documents) -> Archive:
        """The archive of these documents.

        Raises ValueError where there are none, or two have one name, and FileNotFoundError where a path leads nowhere.
        """
        entries: dict[str, Path | bytes] = {}
        if isinstance(documents, Mapping):
            entries = {name: text.encode() if isinstance(text, str) else text for name, text in documents.items()}
        else:
            paths = [documents] if isinstance(documents, (str, os.PathLike)) else list(documents)
            for name, path in (named for place in paths for named in _files(Path(place))):
                if name in entries:
                    raise ValueError(f"{path}: another document is called {name} as well: give contents by names")
                entries[name] = path
        if not entries:
            raise ValueError("there are no documents")
        return cls(entries)

    def chunks(self) -> Iterator[bytes]:
        """The archive in pieces. It is made in a temporary file."""
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
                for name, content in self.entries.items():
                    if isinstance(content, bytes):
                        archive.writestr(name, content)
                    else:
                        archive.write(content, name)
            file.seek(0)
            while piece := file.read(PIECE):
                yield piece


def _files(path: Path) -> list[tuple[str, Path]]:
    """A file, or the files of a folder, with the names of the documents."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return [(file.relative_to(path).as_posix(), file) for file in files]
    path.stat()
    return [(path.name, path)]


@dataclass(frozen=True)
class Upload:
    """The body of an upload."""

    source: AsyncSource | Archive

    @property
    def is_repeatable(self) -> bool:
        """True if it can be read more than once."""
        return not isinstance(self.source, (Iterator, AsyncIterator))

    def media_type(self) -> str:
        """The media type that the name of a file tells; of samples NDJSON.

        Raises ValueError where the name tells none.
        """
        if isinstance(self.source, Archive):
            return ZIP
        if isinstance(self.source, (str, os.PathLike)) and os.path.isdir(self.source):
            raise ValueError(f"{os.fspath(self.source)!r} is a folder; upload_documents takes it")
        name = self._name()
        if name is None:
            return NDJSON
        known = _MEDIA_TYPES | _DOCUMENTS
        media_type = known.get(PurePath(name.lower()).suffix)
        if media_type is None:
            raise ValueError(f"{name}: the name ends in none of {', '.join(known)}; say what it is with media_type")
        return media_type

    def document_name(self, media_type: str) -> str | None:
        """The name of the file where it is a document."""
        return self._name() if media_type in _DOCUMENTS.values() else None

    def _name(self) -> str | None:
        """The name of the file that is uploaded, without an ending that tells how it is compressed."""
        if not isinstance(self.source, (str, os.PathLike)):
            return None
        name = PurePath(self.source).name
        ending = next((ending for ending in _COMPRESSED if name.lower().endswith(ending)), "")
        return name[: len(name) - len(ending)]

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces."""
        source = self.source
        if isinstance(source, bytes):
            yield source
        elif isinstance(source, Archive):
            yield from source.chunks()
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
