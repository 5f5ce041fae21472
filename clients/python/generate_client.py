"""Writes ``client.py``, which is ``async_client.py`` without asyncio.

With ``--check`` it writes nothing, and fails where the file is not what it would write.
"""

import sys
import tempfile
from pathlib import Path

import unasync

PACKAGE = Path(__file__).resolve().parent / "src/pdr_audit"
NOTE = "# Generated from async_client.py by generate_client.py; edit that file instead.\n"
NAMES = {
    "AsyncBaseTransport": "BaseTransport",
    "AsyncClient": "Client",
    "AsyncSource": "Source",
    "aclose": "close",
    "aiter_lines": "iter_lines",
    "aread": "read",
    "async_chunks": "chunks",
    "asyncio": "time",
}


def generated() -> str:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "async_client.py")
        source.write_bytes((PACKAGE / source.name).read_bytes())
        rule = unasync.Rule("/async_client.py", "/client.py", additional_replacements=NAMES)
        unasync.unasync_files([str(source)], [rule])
        return NOTE + source.with_name("client.py").read_text(encoding="utf-8")


def main() -> None:
    client = PACKAGE / "client.py"
    if "--check" not in sys.argv[1:]:
        client.write_text(generated(), encoding="utf-8")
    elif client.read_text(encoding="utf-8") != generated():
        sys.exit("client.py is not what async_client.py gives; run clients/python/generate_client.py")


if __name__ == "__main__":
    main()
