"""How a group's trails are written and read: format, encryption, keys."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.errors import ParameterError
from ggshell.params.trail_forms import TrailStatement
from ggshell.process.home_wallet import wallet_of
from ggshell.store.home import Home
from ggshell.trail.fileheader import COMPATIBILITY, FileHeader
from ggshell.trail.name import TrailName
from ggshell.trail.releases import compatibility_of
from ggshell.trail.sealing import Keys, Protection
from ggshell.trail.writer import WriterOptions


def reader_keys(home: Home) -> Keys:
    """Keys for a trail that is read; the wallet is looked into when a file needs it."""
    return lambda name, version: wallet_of(home).secret(name, version)


class TrailForms:
    """The forms of a group's output trails, by parameter file and ADD EXTTRAIL.

    ``decrypts``: DECRYPTTRAIL of a pump, which would hand on encryption as it found it otherwise.
    """

    def __init__(
        self,
        home: Home,
        statements: Sequence[TrailStatement] = (),
        *,
        decrypts: bool = False,
        restart_record: bool = True,
    ) -> None:
        self._home = home
        self._keys = reader_keys(home)
        self._statements = {_place(home, item.trail): item for item in statements}
        self._decrypts = decrypts
        self._restart_record = restart_record

    def options(self, trail: str, release: str = "", source: FileHeader | None = None) -> WriterOptions:
        """How to write a trail; ``release`` as ADD EXTTRAIL said, ``source``: the file that its rows come from, in a pump.

        Raises ParameterError for a release that is not known, NotFoundError for a key that is not there.
        """
        mine = self._statements.get(_place(self._home, trail), TrailStatement(trail))
        protection = self._protection(mine)
        compatibility, uris = COMPATIBILITY, tuple[str, ...]()
        if source is not None:
            compatibility, uris = source.compatibility, (*source.uris, source.uri)
            if protection is None and source.seal is not None and not self._decrypts:
                protection = source.seal.protection
        wanted = mine.release or release
        if wanted:
            try:
                compatibility = compatibility_of(wanted)
            except ValueError as error:
                raise ParameterError(f"FORMAT RELEASE {wanted}: {error}", where=f"trail {trail}") from None
        return WriterOptions(compatibility, protection, self._keys, uris, self._restart_record)

    def _protection(self, statement: TrailStatement) -> Protection | None:
        wanted = statement.encryption
        if wanted is None:
            return None
        if wanted.key_name:
            return Protection(wanted.algorithm, wanted.key_name)
        wallet = wallet_of(self._home)
        return Protection(wanted.algorithm, wallet.name, wallet.current())


def _place(home: Home, trail: str) -> TrailName:
    return TrailName.parse(trail, home.root)
