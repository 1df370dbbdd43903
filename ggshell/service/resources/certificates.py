"""Certificates: the certificate of the service, and those of authorities that the home keeps."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ggshell.errors import ConflictError, NotFoundError, StoreError, UsageError
from ggshell.files import write_atomically
from ggshell.home.authorities import authority_file, authority_names, delete_authority, keep_authority
from ggshell.home.certificate import (
    CERTIFICATE,
    KEY,
    CertificateFacts,
    certificate_facts,
    read_certificate,
    server_context,
)
from ggshell.home.users import Role
from ggshell.service.answers import DONE, Answer, Said, collection, item, utc_text
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items, Resource, Response
from ggshell.service.routes import resource

_SERVER, _CLIENT, _TRUSTED = "server", "client", "truststore"
_TYPES: Final = (_CLIENT, _SERVER, _TRUSTED)
_OWN: Final = "default"
"""The name of the service's own certificate."""
_CERTIFICATES: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_DEPLOYMENT: Final = "/deployments/{deployment}"


class UserBundle(Body, kw_only=True):
    """A certificate with its key and the certificates of its issuers, in PEM format."""

    certificate_pem: str
    private_key_pem: str | None = None
    ca_certificates: tuple[str, ...] = ()


class Trustpoint(Body, kw_only=True):
    """The certificate of an authority in PEM format."""

    trustpoint_pem: str | None = None
    certificate_pem: str | None = None
    ca_certificates: tuple[str, ...] = ()


class Bundle(Body):
    """A certificate of the service, or of an authority."""

    certificate_bundle: UserBundle | None = None
    trustpoint_bundle: Trustpoint | None = None


class CertificatePem(Resource, tag="ogg:certificate"):
    """A certificate in PEM format."""

    certificate_pem: str


class ShownCertificate(Response):
    """The facts of a certificate."""

    subject: str
    issuer: str
    serial_number: str
    issued_date: str | None
    expiration_date: str | None
    is_expired: bool
    days_remaining: int
    fingerprint: str
    subject_alternative_names: list[str]


class CertificateInfo(Resource, tag="ogg:certificateInfo"):
    """A certificate with those of its issuers, which are in its file and are not shown one by one."""

    certificate: ShownCertificate
    cacertificates: list[ShownCertificate]


def _types(call: Call, deployment: str = "") -> Answer:
    _require_deployment(call, deployment)
    return Answer(collection(item(_base(call, deployment), each) for each in _TYPES))


def _names(call: Call, deployment: str, kind: str) -> list[str]:
    _require_deployment(call, deployment)
    if kind not in _TYPES:
        raise NotFoundError(f"certificate type {kind} does not exist", hint=f"use {', '.join(_TYPES)}")
    if kind == _TRUSTED:
        return authority_names(call.home)
    return [_OWN] if kind == _SERVER and _own(call).exists() else []


def _list(call: Call, deployment: str, kind: str) -> Answer:
    names = _names(call, deployment, kind)
    return Answer(collection(item(f"{_base(call, deployment)}/{kind}", name) for name in names))


def _file(call: Call, deployment: str, kind: str, name: str) -> Path:
    if name not in _names(call, deployment, kind):
        raise NotFoundError(f"{kind} certificate {name} does not exist")
    return _own(call) if kind == _SERVER else authority_file(call.home, name)


def _pem(call: Call, deployment: str, kind: str, name: str) -> Answer:
    """Return the certificates of a file. A file that CERTIFICATE names can also contain the private key."""
    found = _CERTIFICATES.findall(_file(call, deployment, kind, name).read_text(errors="replace"))
    text = "".join(f"{each}\n" for each in found)
    return Answer(CertificatePem(certificate_pem=text), text=text)


def _info(call: Call, deployment: str, kind: str, name: str) -> Answer:
    facts = read_certificate(_file(call, deployment, kind, name))
    return Answer(CertificateInfo(certificate=_facts(call, facts), cacertificates=[]))


def _facts(call: Call, facts: CertificateFacts) -> ShownCertificate:
    now = call.state.clock.now()
    return ShownCertificate(
        subject=facts.subject,
        issuer=facts.issuer,
        serial_number=facts.serial,
        issued_date=utc_text(facts.not_before),
        expiration_date=utc_text(facts.not_after),
        is_expired=facts.not_after < now,
        days_remaining=max(0, (facts.not_after - now) // 86_400_000_000),
        fingerprint=facts.fingerprint,
        subject_alternative_names=list(facts.names),
    )


def _base(call: Call, deployment: str) -> str:
    return call.url(f"/deployments/{deployment}/certificates" if deployment else "/certificates")


def _require_deployment(call: Call, deployment: str) -> None:
    if deployment and deployment not in (call.state.settings.deployment, "ServiceManager"):
        raise NotFoundError(f"deployment {deployment} does not exist", hint=f"use {call.state.settings.deployment}")


def _own(call: Call) -> Path:
    """Return the file of the service's certificate."""
    settings = call.state.settings
    return call.home.resolve(settings.certificate or CERTIFICATE)


def _declare(prefix: str) -> None:
    """Declare the addresses that show certificates, below a prefix."""
    base = f"{prefix}/certificates"
    parts = 1 if prefix else 0

    @resource("GET", base, role=Role.ADMINISTRATOR, summary="List the types of certificates", returns=Items)
    def types(call: Call, *path: str) -> Answer:
        return _types(call, *path)

    @resource(
        "GET", f"{base}/{{type}}", role=Role.ADMINISTRATOR, summary="List the certificates of a type", returns=Items
    )
    def names(call: Call, *path: str) -> Answer:
        return _list(call, *_padded(path, parts))

    @resource(
        "GET",
        f"{base}/{{type}}/{{certificate}}",
        role=Role.ADMINISTRATOR,
        summary="Show a certificate",
        returns=CertificatePem,
    )
    def pem(call: Call, *path: str) -> Answer:
        return _pem(call, *_padded(path, parts))

    @resource(
        "GET",
        f"{base}/{{type}}/{{certificate}}/info",
        role=Role.ADMINISTRATOR,
        summary="Show the issuer, the validity and the fingerprint of a certificate",
        returns=CertificateInfo,
    )
    def info(call: Call, *path: str) -> Answer:
        return _info(call, *_padded(path, parts))


def _padded(path: tuple[str, ...], parts: int) -> tuple[str, ...]:
    """Return the parts of an address with an empty deployment if the address has none."""
    return path if parts else ("", *path)


_declare("")
_declare(_DEPLOYMENT)
_ONE: Final = f"{_DEPLOYMENT}/certificates/{{type}}/{{certificate}}"


@resource("POST", _ONE, role=Role.SECURITY, summary="Add the certificate of an authority", body=Bundle, status=201)
def create_certificate(call: Call, deployment: str, kind: str, name: str) -> Answer:
    _set(call, deployment, kind, name, replace=False)
    return Answer(status=201)


@resource("PUT", _ONE, role=Role.SECURITY, summary="Replace a certificate", body=Bundle)
def replace_certificate(call: Call, deployment: str, kind: str, name: str) -> Answer:
    _set(call, deployment, kind, name, replace=True)
    return Answer()


@resource("DELETE", _ONE, role=Role.SECURITY, summary="Delete the certificate of an authority")
def delete_certificate(call: Call, deployment: str, kind: str, name: str) -> Answer:
    _file(call, deployment, kind, name)
    if kind == _SERVER:
        raise ConflictError("the certificate of the service cannot be deleted", hint="use PUT to replace it")
    delete_authority(call.home, name)
    return Answer()


def _set(call: Call, deployment: str, kind: str, name: str, *, replace: bool) -> None:
    present = name in _names(call, deployment, kind)
    if kind == _CLIENT:
        raise not_here("a client certificate of a deployment", "users sign in with a certificate: ADD USER")
    if present and not replace:
        raise ConflictError(f"{kind} certificate {name} already exists", hint="use PUT to replace it")
    if kind == _TRUSTED:
        pem = _authority(call.body)
        _require_valid(call, pem)
        keep_authority(call.home, name, pem.encode(), replace=replace)
        return
    if name != _OWN:
        raise UsageError(f"{name[:80]} is not a certificate of the service", hint=f"the service has one: {_OWN}")
    _replace_own(call, call.body)


def _authority(body: Bundle) -> str:
    """Return the certificate of an authority from either form of a body. Raises UsageError."""
    given = body.trustpoint_bundle or body.certificate_bundle
    if given is None:
        raise UsageError("trustpointBundle is required")
    first = getattr(given, "trustpoint_pem", None) or given.certificate_pem
    found = [*([first] if first else []), *given.ca_certificates]
    if not found:
        raise UsageError("trustpointPem is required")
    return "".join(each if each.endswith("\n") else f"{each}\n" for each in found)


def _require_valid(call: Call, pem: str) -> None:
    """Raise UsageError for a text that is not a certificate, or a certificate that is not valid now."""
    try:
        facts = certificate_facts(pem.encode())
    except ValueError as error:
        raise UsageError("the certificate is not valid PEM") from error
    if facts.not_after < call.state.clock.now():
        raise UsageError(f"the certificate of {facts.subject} expired at {utc_text(facts.not_after)}")
    if facts.not_before > call.state.clock.now():
        raise UsageError(f"the certificate of {facts.subject} is not valid before {utc_text(facts.not_before)}")


def _replace_own(call: Call, body: Bundle) -> None:
    """Replace the certificate and the key of the service, which takes effect at its next start. Raises UsageError."""
    given = body.certificate_bundle
    if given is None or given.private_key_pem is None:
        raise UsageError("certificateBundle requires certificatePem and privateKeyPem")
    if call.state.settings.certificate:
        raise ConflictError("CERTIFICATE in dirprm/service.prm names the certificate", hint="replace that file")
    if "ENCRYPTED" in given.private_key_pem:
        raise UsageError("the private key is encrypted", hint="remove its passphrase")
    _require_valid(call, given.certificate_pem)
    chain = "".join(f"{each.strip()}\n" for each in (given.certificate_pem, *given.ca_certificates)).encode()
    _require_pair(chain, given.private_key_pem.encode())
    write_atomically(call.home.root / KEY, given.private_key_pem.encode(), mode=0o600)
    write_atomically(call.home.root / CERTIFICATE, chain, mode=0o644)
    call.said.append(Said(DONE, "The service uses the certificate after its next start."))


def _require_pair(chain: bytes, key: bytes) -> None:
    """Raise UsageError unless a certificate and a key belong together."""
    with TemporaryDirectory() as folder:
        certificate, secret = Path(folder, "chain.pem"), Path(folder, "key.pem")
        certificate.write_bytes(chain)
        write_atomically(secret, key, mode=0o600)
        try:
            server_context(certificate, secret, None, required=False)
        except StoreError as error:
            raise UsageError("the private key is not valid, or does not belong to the certificate") from error
