"""Metrics for Prometheus at ``/metrics``."""

from __future__ import annotations

import hmac

from ggshell.errors import HttpError
from ggshell.home.users import Role
from ggshell.parameters.service_parameters import MetricsAccess
from ggshell.service.answers import RawAnswer
from ggshell.service.call import Call
from ggshell.service.routes import resource
from ggshell.service.sign_in import CHALLENGE, required


@resource(
    "GET", "/metrics", role=Role.ANYONE, summary="Return the metrics of the home in Prometheus' text format", raw=True
)
def get_metrics(call: Call) -> RawAnswer:
    """Return the metrics to those whom METRICS allows to read them."""
    from ggshell.service.metrics import MEDIA_TYPE, metrics_text

    _require_access(call)
    return RawAnswer(metrics_text(call.state.collector), MEDIA_TYPE)


def _require_access(call: Call) -> None:
    """Raise HttpError (401, 403, 404) for a client that may not read the metrics."""
    settings = call.state.settings
    if settings.metrics is MetricsAccess.OFF:
        raise HttpError(404, "the metrics are turned off", hint="set METRICS in dirprm/service.prm")
    if settings.metrics is MetricsAccess.OPEN:
        return
    scheme, _, token = call.request.headers.get("authorization", "").partition(" ")
    wanted = settings.metrics_token
    if wanted and scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), wanted.encode()):
        return
    if wanted and scheme.lower() == "bearer" and call.principal.role is Role.ANYONE:
        raise HttpError(401, "the token is not valid", hint="send the one of METRICS TOKEN", headers=CHALLENGE)
    required(call.principal, Role.USER)
