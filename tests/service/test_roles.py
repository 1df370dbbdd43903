"""Every route with every role: those below the declared role are refused, before the request does anything."""

from __future__ import annotations

import re

import pytest
from service_client import RunningService

from ggshell.home.users import Role
from ggshell.service.routes import Route, routes

pytestmark = pytest.mark.slow
USERS = {
    Role.DISTRIBUTION: "dora",
    Role.ANYONE: "",
    Role.USER: "uma",
    Role.OPERATOR: "otto",
    Role.ADMINISTRATOR: "jane",
    Role.SECURITY: "admin",
}


def address_of(route: Route) -> str:
    """An address of the route with names that do not exist, except that of the user, who may read only about this user."""
    return re.sub(r"\{\w+\}", "nobody", route.path.replace("{user}", USERS[route.role]))


def test_a_role_that_is_too_low_is_refused_for_every_route(service: RunningService) -> None:
    clients = {role: service.client(user) for role, user in USERS.items()}
    wrong = []
    for route in routes():
        for role in Role:
            if role >= route.role:
                continue
            status = clients[role].send(route.method, address_of(route), "{}").status
            if status != (401 if role is Role.ANYONE else 403):
                wrong.append(f"{route.method} {route.path} as {role.name}: {status}")
    assert wrong == []


def test_every_route_lets_its_role_pass(service: RunningService) -> None:
    """Reading with the declared role gives an answer or says that the object does not exist, and never an internal error."""
    clients = {role: service.client(user) for role, user in USERS.items()}
    answers = {
        f"GET {route.path}": clients[route.role].get(address_of(route)) for route in routes() if route.method == "GET"
    }
    wrong = {
        name: reply.status for name, reply in answers.items() if reply.status not in (200, 304, 400, 404, 409, 422)
    }
    assert wrong == {}
