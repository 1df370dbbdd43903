"""The DDL parameters of a Replicat, in the form that its delivery needs."""

from __future__ import annotations

from functools import partial

from ggshell.groups.report import Report
from ggshell.home.events import Severity
from ggshell.parameters.process_parameters import ReplicatParameters
from ggshell.pipeline.apply.ddl_choices import DdlChoices
from ggshell.pipeline.apply.object_names import NameOptions


def ddl_choices(parameters: ReplicatParameters, report: Report) -> DdlChoices:
    """Return what the parameter file says about DDL statements."""
    options = parameters.ddl_options
    return DdlChoices(
        parameters.ddl,
        parameters.ddl_errors,
        parameters.ddl_substitutions,
        NameOptions(options.maps, options.maps_derived, dict(options.session_schemas), options.maps_schemas),
        options.report,
        partial(report.event, Severity.INFO),
        partial(report.event, Severity.WARNING),
    )
