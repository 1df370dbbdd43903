"""How a group's trails are written and read: format, encryption and keys."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.cipher import Key
from ggshell.errors import NotFoundError, ParameterError
from ggshell.groups.home_wallet import wallet_of
from ggshell.home.home import Home
from ggshell.parameters.remote_hosts import RemoteHost
from ggshell.parameters.trail_statements import TrailStatement
from ggshell.trail.fileheader import COMPATIBILITY, FileHeader
from ggshell.trail.name import TrailName
from ggshell.trail.releases import compatibility_of
from ggshell.trail.sealing import Keys, Protection
from ggshell.trail.writer import WriterOptions


def reader_keys(home: Home) -> Keys:
    """Return the key lookup for reading a trail; the wallet is opened only when a file needs it."""
    return lambda name, version: wallet_of(home).keys(name, version)


def writer_keys(home: Home) -> Keys:
    """Return the key lookup for writing a trail; each new file requires the newest copy of the home's wallet."""

    def keys(name: str, version: int) -> Sequence[Key]:
        wallet = wallet_of(home)
        if version:
            wallet.claim()
        return wallet.keys(name, version)

    return keys


class TrailForms:
    """The format and encryption of a group's output trails, from the parameter file and ADD EXTTRAIL.

    ``decrypts``: DECRYPTTRAIL of a pump; without it, the pump keeps the encryption of its source trail.
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
        self._keys = writer_keys(home)
        self._statements = {_place(home, item.trail): item for item in statements}
        self._decrypts = decrypts
        self._restart_record = restart_record

    @property
    def hosts(self) -> dict[TrailName, RemoteHost]:
        """RMTHOST of each remote trail that has one."""
        return {place: item.host for place, item in self._statements.items() if item.host is not None}

    def require_added(self, group: str, trails: Sequence[str]) -> None:
        """Check that the group has a trail and that every trail in its parameter file belongs to the group.

        Otherwise captured data would be lost. Raises NotFoundError.
        """
        places = {_place(self._home, trail) for trail in trails}
        for place, statement in self._statements.items():
            if statement.file is None and place not in places:
                raise NotFoundError(
                    f"The trail '{statement.trail}' is not assigned to extract '{group}'.",
                    code="OGG-01044",
                    where=str(self._home.parameters(group)),
                    hint="Assign the trail to the extract with the command"
                    f' "ADD EXTTRAIL/RMTTRAIL {statement.trail}, EXTRACT {group}"',
                )
        if not places:
            raise NotFoundError(
                f"{group} has no trail to write: the data that it reads would be lost",
                code="OGG-01044",
                hint=f"ADD EXTTRAIL ./dirdat/xx, EXTRACT {group} (RMTTRAIL for a pump), then START it again",
            )

    def options(self, trail: str, release: str = "", source: FileHeader | None = None) -> WriterOptions:
        """Return how to write a trail.

        ``release``: FORMAT RELEASE of ADD EXTTRAIL. ``source``: for a pump, the header of the file that it reads.
        Raises ParameterError for an unknown release, NotFoundError for a missing key.
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
        protection, follows = self._with_wallet(protection)
        return WriterOptions(compatibility, protection, self._keys, uris, self._restart_record, follows)

    def _with_wallet(self, protection: Protection | None) -> tuple[Protection | None, tuple[str, ...]]:
        """Return the protection with the wallet of its key, and the wallets whose trails this wallet continues.

        Raises StateError if the wallet is a different one than the home's, or an older copy.
        """
        if protection is None or not protection.key_version:
            return protection, ()
        wallet = wallet_of(self._home)
        mine, follows = wallet.claim(), wallet.follows
        return protection._replace(wallet=protection.wallet or mine), (mine, *follows)

    def _protection(self, statement: TrailStatement) -> Protection | None:
        wanted = statement.encryption
        if wanted is None:
            return None
        if wanted.key_name:
            return Protection(wanted.algorithm, wanted.key_name)
        wallet = wallet_of(self._home)
        wallet.claim()
        return Protection(wanted.algorithm, wallet.name, wallet.current())


def _place(home: Home, trail: str) -> TrailName:
    return TrailName.parse(trail, home.root)
