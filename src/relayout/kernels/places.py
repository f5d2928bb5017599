"""Where written files go: renamed on a disk, uploaded to an object store."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Place(Protocol):
    """Takes whole files under their final address, takes them back, and hands out local copies."""

    def move(self, written: str, final: str) -> None: ...

    def move_folder(self, written: str, final: str, /) -> bool: ...

    def write(self, body: bytes, final: str) -> None: ...

    def remove(self, final: str) -> bool: ...

    def exists(self, final: str) -> bool: ...

    def local_copy(self, address: str, to_local: str, /) -> str: ...


def place_for(address: str, store: Mapping[str, str]) -> Place:
    """The place of an address; `store` are the catalog's `s3.*` properties."""
    return _ObjectPlace(store) if address.startswith("s3://") else _LocalPlace()


class _LocalPlace:
    """A disk: files are renamed into place."""

    def move(self, written: str, final: str) -> None:
        local = final.removeprefix("file:")
        os.makedirs(os.path.dirname(local), exist_ok=True)
        os.rename(written, local)

    def move_folder(self, written: str, final: str) -> bool:
        """Move a folder with all it holds; False, and nothing is moved, when the final one holds files already.

        It gets the permissions of the folder it is put into, which whoever wrote it did not know.
        """
        local = final.removeprefix("file:")
        parent = os.path.dirname(local)
        os.makedirs(parent, exist_ok=True)
        shutil.copymode(parent, written)
        try:
            os.rename(written, local)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def write(self, body: bytes, final: str) -> None:
        local = Path(final.removeprefix("file:"))
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(body)

    def remove(self, final: str) -> bool:
        """Delete the file; False when there was none."""
        try:
            os.unlink(final.removeprefix("file:"))
        except FileNotFoundError:
            return False
        return True

    def exists(self, final: str) -> bool:
        return os.path.exists(final.removeprefix("file:"))

    def local_copy(self, address: str, _: str, /) -> str:
        """The file's own path; nothing is copied."""
        return re.sub("^file:/+", "/", address)


class _ObjectPlace:
    """An object store: files are uploaded."""

    def __init__(self, store: Mapping[str, str]) -> None:
        from relayout.read.objects import ObjectStore

        self._store = ObjectStore.from_properties(store)

    def move(self, written: str, final: str) -> None:
        self._store.put(written, final)

    def move_folder(self, _written: str, _final: str, /) -> bool:
        """Stores know no folders, so nothing is moved."""
        return False

    def write(self, body: bytes, final: str) -> None:
        self._store.write(body, final)

    def remove(self, final: str) -> bool:
        """Delete the object; False when there was none."""
        return self._store.delete(final)

    def exists(self, final: str) -> bool:
        return self._store.exists(final)

    def local_copy(self, address: str, to_local: str, /) -> str:
        """Fetch the object to a local path."""
        self._store.fetch(address, to_local)
        return to_local
