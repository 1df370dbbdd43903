"""CREATE, OPEN, MERGE and PURGE WALLET; ADD, RENEW, DELETE, UNDELETE and INFO MASTERKEY."""

from __future__ import annotations

from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message, Note
from ggshell.cli.session import Session
from ggshell.cli.trail_keys import FILES_OF_KEY, NEXT_STEP, files_of, keys_of_trails
from ggshell.clock import to_datetime
from ggshell.errors import StateError
from ggshell.groups.home_wallet import wallet_of
from ggshell.home.wallet import KeyVersion, Wallet
from ggshell.home.wallet_content import shown_marks
from ggshell.plurals import counted

_LAST = 32_767


@command("CREATE WALLET")
def create_wallet(session: Session, *, another: bool = False) -> Message:
    """Create an empty wallet.

    ``another``: create it even if the home's trails are encrypted with a wallet that is missing.
    """
    session.home.ensure()
    wallet = wallet_of(session.home)
    wallet.create(() if wallet.exists else _wallets_of_trails(session), another=another)
    return Message((f"Created wallet at location '{_place(session, wallet)}'.", _opened(session, wallet)), apart=True)


@command("OPEN WALLET")
def open_wallet(session: Session) -> Message:
    """Check that the wallet exists and is the newest that the home knows; processes open it themselves."""
    wallet = wallet_of(session.home)
    wallet.check(keys_of_trails(session))
    return Message((_opened(session, wallet),), apart=True)


@command("MERGE WALLET")
def merge_wallet(session: Session, *, directory: str) -> Message:
    """Add the keys of another wallet, or of another copy of this one, so that the trails of both can be read."""
    wallet = wallet_of(session.home)
    merged = wallet.merge(directory)
    keys = "1 key version" if merged.versions == 1 else f"{merged.versions} key versions"
    text = f"Merged {keys} of wallet {merged.wallet} into wallet {wallet.id} at location '{_place(session, wallet)}'."
    return Message((text,), apart=True)


@command("PURGE WALLET")
def purge_wallet(session: Session) -> Message:
    """Permanently remove the deleted versions. Raises StateError while a trail file of the home needs one of them."""
    wallet = wallet_of(session.home)
    needed = files_of(session, wallet.deleted())
    if needed:
        raise StateError(
            f"no version is purged: {needed}",
            code=FILES_OF_KEY,
            hint=f"{NEXT_STEP}. To keep a version, use UNDELETE MASTERKEY",
        )
    count = wallet.purge()
    return Message(
        (f"Purged {counted(count, 'version')} from wallet at location '{_place(session, wallet)}'.",), apart=True
    )


@command("ADD MASTERKEY", False)
@command("RENEW MASTERKEY", True)
def add_key(session: Session, renew: bool) -> Message:
    """Add the first version of the master key, or a new one."""
    wallet = wallet_of(session.home)
    number = wallet.add(session.clock, renew=renew, seen=keys_of_trails(session))
    what = f"renewed to version {number}" if renew else "added"
    return Message(
        (f"Master key '{wallet.name}' {what} in wallet at location '{_place(session, wallet)}'.",), apart=True
    )


@command("DELETE MASTERKEY VERSION", True)
@command("UNDELETE MASTERKEY VERSION", False)
def mark_version(session: Session, deleted: bool, *, number: int) -> Message:
    """Mark a version as deleted, or remove the mark."""
    return _marked(session, number, number, deleted=deleted)


@command("DELETE MASTERKEY RANGE FROM TO")
def delete_range(session: Session, *, begin_value: int, end_value: int) -> Message:
    """Mark a range of versions as deleted, but not the current one."""
    return _marked(session, begin_value, end_value, deleted=True)


@command("DELETE MASTERKEY ALL")
def delete_all(session: Session) -> Message:
    """Mark every version except the current one as deleted."""
    return _marked(session, 1, _LAST, deleted=True)


@command("INFO MASTERKEY")
def info_key(session: Session, *, version: int = 0) -> Listing:
    """Show the versions of the master key, or one version; never the keys."""
    wallet = wallet_of(session.home)
    found = [each for each in wallet.versions() if version in (0, each.number)]
    rows = [(each.number, _moment(each), each.status.value) for each in found]
    lines = [f"Masterkey Name: {wallet.name}", "", f"{'Version':<16}{'Creation Date':<32}Status"]
    lines += [f"{number:<16}{created:<32}{status}" for number, created, status in rows]
    mine = wallet.id
    for which, name, number in wallet.merged():
        source = "another copy of this wallet" if which == mine else f"wallet {which}"
        lines.append(f"Version {number} of {name} was merged from {source}.")
    missing = wallet.missing(keys_of_trails(session))
    if missing:
        lines.append(f"Missing: {shown_marks(missing)}. This is not the newest copy of the wallet.")
    return Listing(("version", "created", "status"), rows, "\n".join(lines) + "\n")


def _wallets_of_trails(session: Session) -> list[str]:
    return [mark.wallet for mark in keys_of_trails(session) if mark.wallet]


def _marked(session: Session, first: int, last: int, *, deleted: bool) -> Message:
    wallet = wallet_of(session.home)
    what = "marked as deleted" if deleted else "restored"
    numbers = wallet.mark(first, last, deleted=deleted)
    lines = tuple(f"Version {number} of master key '{wallet.name}' {what}." for number in numbers)
    needed = files_of(session, [mark for mark in wallet.deleted() if mark.version in numbers])
    notes = (Note(FILES_OF_KEY, f"PURGE WALLET will be refused: {needed}. Before it, {NEXT_STEP}."),) if needed else ()
    return Message(lines, apart=True, notes=notes)


def _moment(version: KeyVersion) -> str:
    return to_datetime(version.created).isoformat(timespec="milliseconds")


def _opened(session: Session, wallet: Wallet) -> str:
    return f"Opened wallet at location '{_place(session, wallet)}'."


def _place(session: Session, wallet: Wallet) -> str:
    root = session.home.root
    return f"./{wallet.folder.relative_to(root)}" if wallet.folder.is_relative_to(root) else str(wallet.folder)
