"""PyIceberg's access to the files of an object store: a small object is written with one request."""

from __future__ import annotations

from pyarrow.fs import FileSystem, S3FileSystem
from pyiceberg.io import S3_RETRY_STRATEGY_IMPL
from pyiceberg.io.pyarrow import PyArrowFileIO


class StoreFileIO(PyArrowFileIO):  # type: ignore[misc]
    """PyIceberg's S3 file system uploads each object in parts, which takes at least three requests.

    A commit writes three small objects, so in a store that is far away this was most of its time. Of the file system that
    PyIceberg has opened, this is a copy with another option: it knows more properties, such as credentials of a catalog.
    """

    def _initialize_s3_fs(self, netloc: str | None) -> FileSystem:
        system = super()._initialize_s3_fs(netloc)
        if not isinstance(system, S3FileSystem) or self.properties.get(S3_RETRY_STRATEGY_IMPL):
            return system  # a copy would not have the strategy
        copy, (options,) = system.__reduce__()
        return copy({**options, "allow_delayed_open": True})
