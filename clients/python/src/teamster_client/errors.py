"""Errors."""

from __future__ import annotations

import httpx

#: Statuses of a proxy while the server is not ready.
TRANSIENT = {408, 429, 500, 502, 503, 504}


class TeamsterError(Exception):
    """Every error of this client."""


class Problem(TeamsterError):
    """An error of the API: a problem of RFC 9457."""

    def __init__(self, status: int, code: str | None, detail: str) -> None:
        super().__init__(detail)
        #: The HTTP status.
        self.status = status
        #: The error code; None if a proxy replied.
        self.code = code
        #: The error, for people.
        self.detail = detail

    @classmethod
    def of(cls, response: httpx.Response) -> Problem:
        try:
            body = response.json()
            return cls(response.status_code, body["code"], body["detail"])
        except (ValueError, KeyError, TypeError):
            return cls(response.status_code, None, f"the server replied with status {response.status_code}")

    @property
    def is_transient(self) -> bool:
        """True if the same request may succeed later: a proxy or the server is not ready."""
        return self.code in (None, "TOO_MANY_CONNECTIONS") and self.status in TRANSIENT


class ConnectionLost(TeamsterError):
    """The server cannot be reached: there is none at this address, or it has been away for longer than ``reconnect`` seconds."""


class UnexpectedResponse(TeamsterError):
    """The server at this address is not ``teamster serve``: its response has another media type."""


class Silence(TeamsterError):
    """No byte arrived for too long, although a stream has a heartbeat every 15 s."""
