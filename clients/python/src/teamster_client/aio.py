"""The client for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Unpack, cast

import httpx

from . import types
from .errors import Silence
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
        return body(await self._http.get(path, **more))

    async def start(self, *, idempotency_key: str | None = None, **run: Unpack[types.StartRun]) -> AsyncRun:
        """Starts a run. A connection that breaks meanwhile is made again, and the run is started once only."""
        headers = start_headers(idempotency_key)
        patience = Patience(self._options.reconnect)
        while True:
            try:
                view = body(await self._http.post("/runs", json=run, headers=headers))
                return self.run(view["runId"])
            except Exception as error:
                await asyncio.sleep(patience.after(error))

    def run(self, run_id: str) -> AsyncRun:
        """The run with this id. Nothing is sent."""
        return AsyncRun(self, run_id)

    async def runs(self, *, state: types.ViewState | None = None, since: int | None = None, limit: int | None = None, cursor: str | None = None) -> types.RunList:
        """A page of runs, newest first."""
        return await self._get("/runs", params=query(state=state, since=since, limit=limit, cursor=cursor))

    async def requests(self) -> list[types.PendingRequest]:
        """What waits for an answer, of all runs."""
        return (await self._get("/requests"))["requests"]

    async def answer(self, request_id: str, answer: types.Answer) -> None:
        """Answers a request. The first answer counts; a later one is a Problem with the code ALREADY_ANSWERED."""
        body(await self._http.post(request_path(request_id), json=answer))

    async def watch(self) -> AsyncGenerator[types.Change, None]:
        """How all runs and agents stand, then what changes of it."""
        patience = Patience(self._options.reconnect)
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
        return body(await self._http.post(path_of("agents", agent_id, command)))

    async def agent_log(self, agent_id: str, lines: int = 100) -> str:
        """The last lines of an agent's log."""
        response = await self._http.get(path_of("agents", agent_id, "log"), params={"lines": lines})
        return response.text if response.is_success else cast(str, body(response))

    async def providers(self) -> list[dict[str, Any]]:
        """The agents' CLIs of the server's machine, and what they can do."""
        return (await self._get("/providers"))["providers"]

    async def usage(self, *, by: str | None = None, since: str | None = None, until: str | None = None) -> types.UsageSummary:
        """Tokens and cost."""
        return await self._get("/usage", params=query(by=by, since=since, until=until))

    async def _events(self, path: str, patience: Patience, **params: Any) -> AsyncGenerator[tuple[str, str], None]:
        """The events of a stream. Without a byte for too long it fails with Silence; heartbeats count."""
        parser = SseParser()
        try:
            async with self._http.stream("GET", path, params=params, **self._options.stream()) as response:
                if not response.is_success:
                    await response.aread()
                    body(response)
                if response.status_code == 204:
                    yield "end", ""
                async for piece in response.aiter_bytes():
                    patience.reached()
                    for event in parser.push(piece):
                        yield event
        except httpx.ReadTimeout as error:
            raise Silence("the stream is silent") from error


class AsyncRun:
    """A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end."""

    def __init__(self, client: AsyncTeamster, run_id: str) -> None:
        self._client = client
        #: Its id.
        self.id = run_id

    def __aiter__(self) -> AsyncGenerator[types.Entry, None]:
        return self.entries()

    async def entries(self, after: int = 0) -> AsyncGenerator[types.Entry, None]:
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
                    async with aclosing(self._client._events(path, patience, after=after)) as events:
                        async for name, data in events:
                            if name == "end":
                                return
                            entry = json.loads(data)
                            after = entry["seq"]
                            yield entry
                else:
                    page = await self._client._get(path, params={"after": after, "wait": PAGE_SECONDS}, **options.page())
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

    async def view(self) -> types.RunView:
        """How it is now: state, open requests, cost so far, and the result once it has ended."""
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
        """Answers a request of it: the id is in a ``permission`` entry, and in ``requests`` of ``view()``."""
        await self._client.answer(request_id, answer)

    async def cancel(self, *, kill: bool = False) -> types.RunView:
        """Stops it; with ``kill`` at once, by force. Returns when its runner knows; the run ends a little later."""
        return body(await self._client._http.post(path_of("runs", self.id, "cancel"), json={"kill": kill}))
