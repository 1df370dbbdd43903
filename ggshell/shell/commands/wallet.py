"""CREATE, OPEN and PURGE WALLET; ADD, RENEW, DELETE, UNDELETE and INFO MASTERKEY."""

from __future__ import annotations

from ggshell.clock import to_datetime
from ggshell.process.home_wallet import wallet_of
from ggshell.shell.listings import Listing
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store.wallet import KeyVersion, Wallet

_LAST = 32_767


@command("CREATE WALLET")
def create_wallet(session: Session) -> Message:
    """Make an empty wallet."""
    session.home.ensure()
    wallet = wallet_of(session.home)
    wallet.create()
    return Message((f"Created wallet at location '{_place(session, wallet)}'.", _opened(session, wallet)), apart=True)


@command("OPEN WALLET")
def open_wallet(session: Session) -> Message:
    """See that the wallet is there and can be read; processes open it by themselves."""
    wallet = wallet_of(session.home)
    wallet.check()
    return Message((_opened(session, wallet),), apart=True)


@command("PURGE WALLET")
def purge_wallet(session: Session) -> Message:
    """Remove the deleted versions for good."""
    wallet = wallet_of(session.home)
    count = wallet.purge()
    versions = "1 version" if count == 1 else f"{count} versions"
    return Message((f"Purged {versions} from wallet at location '{_place(session, wallet)}'.",), apart=True)


@command("ADD MASTERKEY", False)
@command("RENEW MASTERKEY", True)
def add_key(session: Session, renew: bool) -> Message:
    """A first, or a new, version of the master key."""
    wallet = wallet_of(session.home)
    number = wallet.add(session.clock, renew=renew)
    what = f"renewed to version {number}" if renew else "added"
    return Message(
        (f"Master key '{wallet.name}' {what} in wallet at location '{_place(session, wallet)}'.",), apart=True
    )


@command("DELETE MASTERKEY VERSION", True)
@command("UNDELETE MASTERKEY VERSION", False)
def mark_version(session: Session, deleted: bool, *, number: int) -> Message:
    """Mark a version as deleted, or take the mark off."""
    return _marked(session, number, number, deleted=deleted)


@command("DELETE MASTERKEY RANGE FROM TO")
def delete_range(session: Session, *, begin_value: int, end_value: int) -> Message:
    """Mark versions from one to another, but not the current one."""
    return _marked(session, begin_value, end_value, deleted=True)


@command("DELETE MASTERKEY ALL")
def delete_all(session: Session) -> Message:
    """Mark every version but the current one."""
    return _marked(session, 1, _LAST, deleted=True)


@command("INFO MASTERKEY")
def info_key(session: Session, *, version: int = 0) -> Listing:
    """The versions of the master key, or one of them; never their secrets."""
    wallet = wallet_of(session.home)
    found = [each for each in wallet.versions() if version in (0, each.number)]
    rows = [(each.number, _moment(each), each.status.value) for each in found]
    lines = [f"Masterkey Name: {wallet.name}", "", f"{'Version':<16}{'Creation Date':<32}Status"]
    lines += [f"{number:<16}{created:<32}{status}" for number, created, status in rows]
    return Listing(("version", "created", "status"), rows, "\n".join(lines) + "\n")


def _marked(session: Session, first: int, last: int, *, deleted: bool) -> Message:
    wallet = wallet_of(session.home)
    what = "marked as deleted" if deleted else "taken back"
    numbers = wallet.mark(first, last, deleted=deleted)
    return Message(tuple(f"Version {number} of master key '{wallet.name}' {what}." for number in numbers), apart=True)


def _moment(version: KeyVersion) -> str:
    return to_datetime(version.created).isoformat(timespec="milliseconds")


def _opened(session: Session, wallet: Wallet) -> str:
    return f"Opened wallet at location '{_place(session, wallet)}'."


def _place(session: Session, wallet: Wallet) -> str:
    root = session.home.root
    return f"./{wallet.folder.relative_to(root)}" if wallet.folder.is_relative_to(root) else str(wallet.folder)
