"""The client for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Unpack, cast

import httpx

from . import types
from .errors import ConnectionLost, Silence
from .protocol import PAGE_SECONDS, Options, Patience, SseParser, body, path_of, query, request_path, start_headers


class AsyncTeamster:
    """A server."""

    def __init__(self, url: str = "http://127.0.0.1:7420", token: str | None = None, *, reconnect: float = 300, silence: float = 35, **client: Any) -> None:
        """``reconnect``: how long the server may be away before a stream fails, in seconds. ``silence``: without a
        byte for so long a stream is taken for dead. Other arguments are those of ``httpx.AsyncClient``."""
        self._options = Options(url, token, reconnect, silence)
        self._http = httpx.AsyncClient(**(self._options.client() | client))

    async def __aenter__(self) -> AsyncTeamster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def _get(self, path: str, **more: Any) -> Any:
        return await self._send("GET", path, **more)

    async def _send(self, method: str, path: str, **more: Any) -> Any:
        with self._options.errors():
            response = await self._http.request(method, path, **more)
        return body(self._options.received(response))

    async def start(self, *, idempotency_key: str | None = None, **run: Unpack[types.StartRun]) -> AsyncRun:
        """Starts a run. If the connection breaks, the request is repeated, and the run still starts once."""
        view = await self._post_once("/runs", run, idempotency_key)
        return self.run(view["runId"])

    async def start_session(self, *, idempotency_key: str | None = None, **session: Unpack[types.StartSession]) -> AsyncSession:
        """Starts a session, also once. It waits for its first prompt."""
        view = await self._post_once("/sessions", session, idempotency_key)
        return self.session(view["runId"])

    async def _post_once(self, path: str, content: Any, idempotency_key: str | None) -> Any:
        headers = start_headers(idempotency_key)
        patience = Patience(self._options)
        while True:
            try:
                return await self._send("POST", path, json=content, headers=headers)
            except Exception as error:
                await asyncio.sleep(patience.after(error))

    def run(self, run_id: str) -> AsyncRun:
        """Returns the run with this id, without a request."""
        return AsyncRun(self, run_id)

    def session(self, session_id: str) -> AsyncSession:
        """Returns the session with this id, without a request."""
        return AsyncSession(self, session_id)

    async def sessions(self, *, state: types.ViewState | None = None) -> list[types.RunSummary]:
        """Sessions, newest first."""
        return (await self._get("/sessions", params=query(state=state)))["sessions"]

    async def runs(self, *, state: types.ViewState | None = None, since: int | None = None, limit: int | None = None, cursor: str | None = None) -> types.RunList:
        """A page of runs, newest first."""
        return await self._get("/runs", params=query(state=state, since=since, limit=limit, cursor=cursor))

    async def requests(self) -> list[types.PendingRequest]:
        """Pending requests of all runs."""
        return (await self._get("/requests"))["requests"]

    async def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request. The first answer counts; a later one is a Problem with the code ALREADY_ANSWERED."""
        await self._send("POST", request_path(request_id), json=answer)

    async def watch(self) -> AsyncGenerator[types.Change, None]:
        """State of all runs and agents, then each change."""
        patience = Patience(self._options)
        while True:
            error: Exception | None = None
            try:
                async with aclosing(self._events("/events", patience)) as events:
                    async for _, data in events:
                        yield json.loads(data)
            except Exception as caught:
                error = caught
            await asyncio.sleep(patience.after(error))

    async def agents(self) -> types.AgentList:
        """The agents in a loop."""
        return await self._get("/agents")

    async def command(self, agent_id: str, command: str) -> types.AgentList:
        """``start``, ``stop``, ``restart`` or ``wake`` an agent."""
        return await self._send("POST", path_of("agents", agent_id, command))

    async def agent_log(self, agent_id: str, lines: int = 100) -> str:
        """The last lines of an agent's log."""
        with self._options.errors():
            response = await self._http.get(path_of("agents", agent_id, "log"), params={"lines": lines})
        self._options.received(response, "text/plain")
        return response.text if response.is_success else cast(str, body(response))

    async def providers(self) -> list[dict[str, Any]]:
        """The agents' CLIs on the server's machine, with their capabilities."""
        return (await self._get("/providers"))["providers"]

    async def limits(self) -> types.LimitList:
        """Limits of subscriptions, such as the 5-hour and the weekly one."""
        return await self._get("/limits")

    async def history(self, *, since: int | None = None, until: int | None = None, status: str | None = None, agent: str | None = None,
                      key: str | None = None, directory: str | None = None, limit: int | None = None, cursor: str | None = None) -> types.HistoryList:
        """All recorded runs, attached ones and ticks of agents too, newest first."""
        params = query(since=since, until=until, status=status, agent=agent, key=key, directory=directory, limit=limit, cursor=cursor)
        return await self._get("/history", params=params)

    async def usage(self, *, by: str | None = None, since: str | None = None, until: str | None = None, provider: str | None = None, models: bool | None = None) -> types.UsageSummary:
        """Tokens and cost; ``by`` is ``day``, ``model``, ``agent``, ``key`` and others."""
        return await self._get("/usage", params=query(by=by, since=since, until=until, provider=provider, models=models))

    async def _entries(self, path: str, after: int) -> AsyncGenerator[types.Entry, None]:
        """The entries of the log at this path behind the one with this number, each once and in order.

        After a break, the stream continues behind the last entry. If a proxy buffers the stream, it is replaced by pages
        of the same log."""
        patience = Patience(self._options)
        streams = True
        while True:
            error: Exception | None = None
            try:
                if streams:
                    async with aclosing(self._events(path, patience, after=after)) as events:
                        async for name, data in events:
                            if name == "end":
                                return
                            entry = json.loads(data)
                            after = entry["seq"]
                            yield entry
                else:
                    page = await self._get(path, params={"after": after, "wait": PAGE_SECONDS}, **self._options.page())
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
            await asyncio.sleep(patience.after(error))

    async def _events(self, path: str, patience: Patience, **params: Any) -> AsyncGenerator[tuple[str, str], None]:
        """The events of a stream. Without a byte for too long it fails with Silence; heartbeats count."""
        parser = SseParser()
        try:
            async with self._http.stream("GET", path, params=params, **self._options.stream()) as response:
                if not response.is_success:
                    await response.aread()
                    body(response)
                self._options.received(response, "text/event-stream")
                if response.status_code == 204:
                    yield "end", ""
                async for piece in response.aiter_bytes():
                    patience.reached()
                    for event in parser.push(piece):
                        yield event
        except httpx.ReadTimeout as error:
            raise Silence("the stream is silent") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ConnectionLost(f"cannot reach {self._options.url}: {error or type(error).__name__}") from error


class AsyncRun:
    """A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end."""

    def __init__(self, client: AsyncTeamster, run_id: str) -> None:
        self._client = client
        #: Its id.
        self.id = run_id

    def __aiter__(self) -> AsyncGenerator[types.Entry, None]:
        return self.entries()

    def entries(self, after: int = 0) -> AsyncGenerator[types.Entry, None]:
        """The entries behind the one with this number."""
        return self._client._entries(path_of("runs", self.id, "events"), after)

    async def view(self) -> types.RunView:
        """Current state, pending requests, cost so far, and the result once it has ended."""
        return await self._client._get(path_of("runs", self.id))

    async def result(self) -> types.RunResult:
        """Its result, once it has ended."""
        view = await self.view()
        result = view.get("result")
        if result is None:
            async for entry in self.entries(view["seq"]):
                if entry["type"] == "done":
                    result = entry["result"]
        if result is None:
            result = (await self.view()).get("result")
        if result is None:
            raise ValueError(f"the log of run {self.id} has no result")
        return result

    async def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request of the run. The id is in a ``permission`` entry, and in ``requests`` of ``view()``."""
        await self._client.answer(request_id, answer)

    async def cancel(self, *, kill: bool = False) -> types.RunView:
        """Stops the run; with ``kill`` it is killed at once. Returns before the run has ended."""
        return await self._client._send("POST", path_of("runs", self.id, "cancel"), json={"kill": kill})


class AsyncSession:
    """A live session, which takes one prompt after the other."""

    def __init__(self, client: AsyncTeamster, session_id: str) -> None:
        self._client = client
        #: Its id.
        self.id = session_id

    async def send(self, prompt: str, *, sender: str | None = None, idempotency_key: str | None = None) -> AsyncTurn:
        """Sends a prompt, which begins a turn. During another turn it is a Problem with the code SESSION_BUSY. A
        connection that breaks meanwhile is made again, and the turn is begun once only."""
        content = {"prompt": prompt} | query(**{"from": sender})
        turn = await self._client._post_once(path_of("sessions", self.id, "turns"), content, idempotency_key)
        return AsyncTurn(self._client, self.id, turn["runId"], turn["seq"])

    def entries(self, after: int = 0) -> AsyncGenerator[types.Entry, None]:
        """The entries of its log behind the one with this number: all turns, up to the end of the session."""
        return self._client._entries(path_of("sessions", self.id, "events"), after)

    async def view(self) -> types.RunView:
        """Current state; ``live`` is its activity."""
        return await self._client._get(path_of("sessions", self.id))

    async def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request of the turn in progress."""
        await self._client.answer(request_id, answer)

    async def steer(self, text: str, *, sender: str | None = None) -> None:
        """Sends text to the turn in progress, if the agent's CLI supports it."""
        await self._command("steer", {"text": text} | query(**{"from": sender}))

    async def interrupt(self, *, kill: bool = False) -> None:
        """Ends the turn in progress; the session continues."""
        await self._command("interrupt", {"kill": kill})

    async def clear(self) -> None:
        """Clears the context and continues."""
        await self._command("clear")

    async def _command(self, command: str, content: Any = None) -> None:
        await self._client._send("POST", path_of("sessions", self.id, command), json=content)

    async def change(self, *, model: str | None = None, permission: types.PermissionMode | None = None) -> types.RunView:
        """Changes the model or the permission, from the next turn on."""
        return await self._client._send("PATCH", path_of("sessions", self.id), json=query(model=model, permission=permission))

    async def end(self, *, kill: bool = False) -> types.RunView:
        """Ends the session; its log stays."""
        return await self._client._send("DELETE", path_of("sessions", self.id), params=query(kill=kill or None))


class AsyncTurn:
    """A turn of a session. Iterating over it yields its entries up to its ``done``."""

    def __init__(self, client: AsyncTeamster, session_id: str, turn_id: str, seq: int) -> None:
        self._client = client
        self._session_id = session_id
        #: Its id: that of the session, a dot and a number.
        self.id = turn_id
        #: The number of the log's entry with the prompt.
        self.seq = seq

    def __aiter__(self) -> AsyncGenerator[types.Entry, None]:
        return self.entries()

    async def entries(self, after: int | None = None) -> AsyncGenerator[types.Entry, None]:
        """Its entries behind the one with this number."""
        path = path_of("sessions", self._session_id, "events")
        async with aclosing(self._client._entries(path, self.seq if after is None else after)) as entries:
            async for entry in entries:
                yield entry
                if entry["type"] == "done" and entry.get("runId") == self.id:
                    return

    async def result(self) -> types.RunResult:
        """Its result, once it has ended."""
        async for entry in self.entries():
            if entry["type"] == "done" and entry.get("runId") == self.id:
                return entry["result"]
        raise ValueError(f"the log of session {self._session_id} has no end of turn {self.id}")
