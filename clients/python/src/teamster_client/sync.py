"""The blocking client. Made from aio.py by clients/synchronous.py: do not edit."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import closing
from typing import Any, Unpack, cast

import httpx

from . import types
from .errors import Silence
from .protocol import PAGE_SECONDS, Options, Patience, SseParser, body, path_of, query, request_path, start_headers


class Teamster:
    """A server."""

    def __init__(self, url: str = "http://127.0.0.1:7420", token: str | None = None, *, reconnect: float = 300, silence: float = 35, **client: Any) -> None:
        """``reconnect``: how long the server may be away before a stream fails, in seconds. ``silence``: without a
        byte for so long a stream is taken for dead. Other arguments are those of ``httpx.Client``."""
        self._options = Options(url, token, reconnect, silence)
        self._http = httpx.Client(**(self._options.client() | client))

    def __enter__(self) -> Teamster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def _get(self, path: str, **more: Any) -> Any:
        return body(self._http.get(path, **more))

    def start(self, *, idempotency_key: str | None = None, **run: Unpack[types.StartRun]) -> Run:
        """Starts a run. A connection that breaks meanwhile is made again, and the run is started once only."""
        headers = start_headers(idempotency_key)
        patience = Patience(self._options.reconnect)
        while True:
            try:
                view = body(self._http.post("/runs", json=run, headers=headers))
                return self.run(view["runId"])
            except Exception as error:
                time.sleep(patience.after(error))

    def run(self, run_id: str) -> Run:
        """The run with this id. Nothing is sent."""
        return Run(self, run_id)

    def runs(self, *, state: types.ViewState | None = None, since: int | None = None, limit: int | None = None, cursor: str | None = None) -> types.RunList:
        """A page of runs, newest first."""
        return self._get("/runs", params=query(state=state, since=since, limit=limit, cursor=cursor))

    def requests(self) -> list[types.PendingRequest]:
        """What waits for an answer, of all runs."""
        return (self._get("/requests"))["requests"]

    def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request. The first answer counts; a later one is a Problem with the code ALREADY_ANSWERED."""
        body(self._http.post(request_path(request_id), json=answer))

    def watch(self) -> Generator[types.Change, None, None]:
        """How all runs and agents stand, then what changes of it."""
        patience = Patience(self._options.reconnect)
        while True:
            error: Exception | None = None
            try:
                with closing(self._events("/events", patience)) as events:
                    for _, data in events:
                        yield json.loads(data)
            except Exception as caught:
                error = caught
            time.sleep(patience.after(error))

    def agents(self) -> types.AgentList:
        """The agents in a loop."""
        return self._get("/agents")

    def command(self, agent_id: str, command: str) -> types.AgentList:
        """``start``, ``stop``, ``restart`` or ``wake`` an agent."""
        return body(self._http.post(path_of("agents", agent_id, command)))

    def agent_log(self, agent_id: str, lines: int = 100) -> str:
        """The last lines of an agent's log."""
        response = self._http.get(path_of("agents", agent_id, "log"), params={"lines": lines})
        return response.text if response.is_success else cast(str, body(response))

    def providers(self) -> list[dict[str, Any]]:
        """The agents' CLIs of the server's machine, and what they can do."""
        return (self._get("/providers"))["providers"]

    def usage(self, *, by: str | None = None, since: str | None = None, until: str | None = None) -> types.UsageSummary:
        """Tokens and cost."""
        return self._get("/usage", params=query(by=by, since=since, until=until))

    def _events(self, path: str, patience: Patience, **params: Any) -> Generator[tuple[str, str], None, None]:
        """The events of a stream. Without a byte for too long it fails with Silence; heartbeats count."""
        parser = SseParser()
        try:
            with self._http.stream("GET", path, params=params, **self._options.stream()) as response:
                if not response.is_success:
                    response.read()
                    body(response)
                if response.status_code == 204:
                    yield "end", ""
                for piece in response.iter_bytes():
                    patience.reached()
                    for event in parser.push(piece):
                        yield event
        except httpx.ReadTimeout as error:
            raise Silence("the stream is silent") from error


class Run:
    """A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end."""

    def __init__(self, client: Teamster, run_id: str) -> None:
        self._client = client
        #: Its id.
        self.id = run_id

    def __iter__(self) -> Generator[types.Entry, None, None]:
        return self.entries()

    def entries(self, after: int = 0) -> Generator[types.Entry, None, None]:
        """The entries behind the one with this number, each once and in order.

        A connection that breaks is made again behind the last entry. Where something on the way holds a stream back,
        pages of the same log take its place."""
        path = path_of("runs", self.id, "events")
        options = self._client._options
        patience = Patience(options.reconnect)
        streams = True
        while True:
            error: Exception | None = None
            try:
                if streams:
                    with closing(self._client._events(path, patience, after=after)) as events:
                        for name, data in events:
                            if name == "end":
                                return
                            entry = json.loads(data)
                            after = entry["seq"]
                            yield entry
                else:
                    page = self._client._get(path, params={"after": after, "wait": PAGE_SECONDS}, **options.page())
                    patience.reached()
                    for entry in page["entries"] if page else ():
                        after = entry["seq"]
                        yield entry
                    if page is None or page["ended"]:
                        return
                    continue
            except Silence:
                streams = False
                continue
            except Exception as caught:
                error = caught
            # A stream that has closed without its end was cut.
            time.sleep(patience.after(error))

    def view(self) -> types.RunView:
        """How it is now: state, open requests, cost so far, and the result once it has ended."""
        return self._client._get(path_of("runs", self.id))

    def result(self) -> types.RunResult:
        """Its result, once it has ended."""
        view = self.view()
        result = view.get("result")
        if result is None:
            for entry in self.entries(view["seq"]):
                if entry["type"] == "done":
                    result = entry["result"]
        if result is None:
            result = (self.view()).get("result")
        if result is None:
            raise ValueError(f"the log of run {self.id} has no result")
        return result

    def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request of it: the id is in a ``permission`` entry, and in ``requests`` of ``view()``."""
        self._client.answer(request_id, answer)

    def cancel(self, *, kill: bool = False) -> types.RunView:
        """Stops it; with ``kill`` at once, by force. Returns when its runner knows; the run ends a little later."""
        return body(self._client._http.post(path_of("runs", self.id, "cancel"), json={"kill": kill}))
