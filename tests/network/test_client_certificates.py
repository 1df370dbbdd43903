"""AUTHENTICATION CERTIFICATE: a user's client certificate replaces the peer, and every other certificate is refused clearly."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from authorities import Authority
from command_line import run_ggshell
from processes import until_state
from two_homes import TwoHomes

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState

_numbers = count()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TwoHomes]:
    """The source is not a peer of the target; dirwlt of the source has a certificate for each test."""
    found = TwoHomes(tmp_path_factory.mktemp("certified"), f"CLIENTCA {authority.file}\n")
    Peers(Home(found.target.home)).delete("source")
    found.target.run(
        "DELETE USER otto; ADD USER otto, ROLE DISTRIBUTION, CERTIFICATE; ADD USER uta, ROLE USER, CERTIFICATE"
    )
    place_certificates(found.source / "dirwlt", authority, Authority(tmp_path_factory.mktemp("foreign")))
    found.run("ADD CREDENTIALSTORE")
    found.write(10)
    yield found
    found.close()


def place_certificates(folder: Path, authority: Authority, foreign: Authority) -> None:
    """Write NAME.crt and NAME.key for each name that a path uses in these tests."""
    folder.mkdir(exist_ok=True)
    for name, user, issuer, begin, days in (
        ("good", "otto", authority, -10, 1),
        ("nobody", "nobody", authority, -10, 1),
        ("reader", "uta", authority, -10, 1),
        ("password", "dora", authority, -10, 1),
        ("foreign", "otto", foreign, -10, 1),
        ("expired", "otto", authority, -10, -1),
        ("later", "otto", authority, 20, 30),
    ):
        for file in issuer.issue(user, days=days, begin=begin):
            shutil.move(file, folder / f"{name}{file.suffix}")
    shutil.copy(folder / "good.crt", folder / "mixed.crt")
    shutil.copy(folder / "nobody.key", folder / "mixed.key")
    shutil.copy(folder / "good.crt", folder / "keyless.crt")


@pytest.fixture
def path(homes: TwoHomes) -> Iterator[str]:
    """The name of a path that the test adds."""
    name = f"D{next(_numbers)}"
    yield name
    for statement in (f"KILL DISTPATH {name}", f"DELETE DISTPATH {name} !"):
        run_ggshell("--home", homes.source, "-c", statement)


def refusal(homes: TwoHomes, path: str, more: str = "") -> str:
    """Start a path that abends; returns its report."""
    homes.run(f"ADD DISTPATH {path}, SOURCE ./dirdat/ea, TARGET {homes.url()}{more}; START DISTPATH {path}")
    until_state(Home(homes.source), path, GroupKind.PATH, ProcessState.ABENDED)
    assert homes.rows() == []
    return (homes.source / "dirrpt" / f"{path}.rpt").read_text()


@pytest.mark.parametrize(
    ("certificate", "reason", "remedy"),
    [
        ("nobody", "GGS-00957", "ADD USER name, ROLE DISTRIBUTION, CERTIFICATE"),
        ("reader", "role User, which does not send trails", "ALTER USER uta, ROLE DISTRIBUTION"),
        ("password", "dora does not sign in with a certificate", "ADD USER name, ROLE DISTRIBUTION, CERTIFICATE"),
        ("foreign", "no authority that it trusts has issued the client certificate", "CLIENTCA"),
        ("expired", "the client certificate has expired", "replace the certificate"),
        ("later", "the client certificate is not valid, or not valid yet", "clocks of both machines"),
        ("mixed", "the key does not belong to the certificate", "mixed.crt"),
        ("keyless", "keyless.key does not exist", "NAME.key"),
        ("absent", "absent.crt does not exist", "NAME.crt"),
    ],
)
def test_another_certificate_is_refused_with_its_remedy(
    homes: TwoHomes, path: str, certificate: str, reason: str, remedy: str
) -> None:
    report = refusal(homes, path, f", AUTHENTICATION CERTIFICATE {certificate}")
    assert reason in report
    assert remedy in report


def test_a_path_without_a_certificate_is_an_unknown_sender(homes: TwoHomes, path: str) -> None:
    assert "GGS-00951" in refusal(homes, path)


def test_a_certificate_that_is_required_is_asked_for(homes: TwoHomes, path: str) -> None:
    file = homes.target.home / "dirprm" / "service.prm"
    text = file.read_text()
    file.write_text(
        text.replace("\n", ", REQUIRED\n").replace(f"{homes.target.port}, REQUIRED", str(homes.target.port))
    )
    homes.target.run("STOP SERVICE; START SERVICE")
    try:
        report = refusal(homes, path)
        assert "it requires a client certificate" in report
        assert "AUTHENTICATION CERTIFICATE NAME" in report
    finally:
        file.write_text(text)
        homes.target.run("STOP SERVICE; START SERVICE")


def test_the_certificate_of_a_user_who_may_send_trails_is_enough(homes: TwoHomes, path: str) -> None:
    authentication = "AUTHENTICATION CERTIFICATE good"
    homes.run(f"ADD DISTPATH {path}, SOURCE ./dirdat/ea, TARGET {homes.url()}, {authentication}; START DISTPATH {path}")
    homes.until_equal()
    homes.write(10)
    homes.until_equal()
