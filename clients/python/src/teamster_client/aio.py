"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from hashlib import sha256
from typing import Any, Unpack

import httpx

from . import types
from .errors import Problem, Silence, TeamsterError
from .protocol import BYTES, JSON, PAGE_SECONDS, STREAM, Options, Patience, SseParser, encoded, finite, path_of, query, request_path, start_headers


class AsyncTeamster:
    """A server. Each call takes a ``timeout`` in place of the client's; ``math.inf`` is none."""

    def __init__(self, url: str = "http://127.0.0.1:7420", token: str | None = None, *,
                 reconnect: float = 300, silence: float = 35, timeout: float = 60, **client: Any) -> None:
        """``timeout``: time limit of a response, in seconds; of a stream, of its beginning. ``silence``: without a byte
        for so long a stream counts as broken. ``reconnect``: how long the server may be away before a stream or a start
        fails. Other arguments are those of ``httpx.AsyncClient``."""
        self._options = Options(url, token, reconnect, silence, timeout)
        with self._options.environment():
            self._http = httpx.AsyncClient(**self._options.client(client))

    async def __aenter__(self) -> AsyncTeamster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def _open(self, method: str, path: str, media: str, limits: dict[str, float | None], more: dict[str, Any]) -> AsyncGenerator[httpx.Response, None]:
        """Sends a request. Yields its response, of this media type, when its head has arrived. An error response is raised."""
        with self._options.errors():
            async with self._http.stream(method, path, extensions={"timeout": limits}, **more) as response:
                if response.is_error:
                    try:
                        content = await self._content(response, limits["read"])
                    except (httpx.HTTPError, Silence):
                        content = b""
                    raise Problem.of(response.status_code, content, response.headers.get("retry-after"))
                self._options.check(response, media)
                yield response

    async def _content(self, response: httpx.Response, limit: float | None) -> bytes:
        """The body of a response. The limit of ``httpx`` is that of each of its pieces."""
        end = None if limit is None else time.monotonic() + limit
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if end is not None and time.monotonic() > end:
                raise Silence(f"cannot reach {self._options.url}: the response is not complete after {limit:g} s")
        return bytes(content)

    async def _send(self, method: str, path: str, timeout: float | None, media: str = JSON, **more: Any) -> bytes | None:
        """The body of a response; None without one."""
        limits = self._options.limits(timeout)
        async with self._open(method, path, media, limits, more) as response:
            return None if response.status_code == 204 else await self._content(response, limits["read"])

    async def _json(self, method: str, path: str, has: str, timeout: float | None, **more: Any) -> Any:
        """The object of a response, which has this field."""
        return self._options.parse(await self._send(method, path, timeout, **more) or b"null", has)

    async def _get(self, path: str, has: str, timeout: float | None, **params: Any) -> Any:
        return await self._json("GET", path, has, timeout, params=query(**params))

    async def start(self, *, idempotency_key: str | None = None, timeout: float | None = None, **run: Unpack[types.RunSpec]) -> AsyncRun:
        """Starts a run. If the connection breaks, the request is repeated, and the run still starts once."""
        return self._started(await self._post_once("/runs", run, idempotency_key, timeout))

    async def start_with_id(self, run_id: str, *, timeout: float | None = None, **run: Unpack[types.RunSpec]) -> AsyncRun:
        """Starts a run with an id of your own, such as a UUID. A repeated call with the same id and run starts nothing."""
        return self._started(await self._once("PUT", path_of("runs", run_id), encoded(run), timeout))

    async def start_session(self, *, idempotency_key: str | None = None, timeout: float | None = None, **session: Unpack[types.SessionSpec]) -> AsyncSession:
        """Starts a session, also once. It waits for its first prompt."""
        return self._started_session(await self._post_once("/sessions", session, idempotency_key, timeout))

    async def start_session_with_id(self, session_id: str, *, timeout: float | None = None, **session: Unpack[types.SessionSpec]) -> AsyncSession:
        """Starts a session with an id of your own. A repeated call with the same id and session starts nothing."""
        return self._started_session(await self._once("PUT", path_of("sessions", session_id), encoded(session), timeout))

    def _started(self, started: types.StartedRun) -> AsyncRun:
        return AsyncRun(self, started["runId"], started.get("warnings", []))

    def _started_session(self, started: types.StartedRun) -> AsyncSession:
        return AsyncSession(self, started["runId"], started.get("warnings", []))

    async def _post_once(self, path: str, content: Any, idempotency_key: str | None, timeout: float | None) -> Any:
        return await self._once("POST", path, encoded(content, start_headers(idempotency_key)), timeout)

    async def _once(self, method: str, path: str, more: dict[str, Any], timeout: float | None) -> Any:
        """The object of a response to a request that may be repeated."""
        patience = Patience(self._options)
        while True:
            try:
                return await self._json(method, path, "runId", timeout, **more)
            except Exception as error:
                await asyncio.sleep(patience.after(error))

    def run(self, run_id: str) -> AsyncRun:
        """Returns the run with this id, without a request."""
        return AsyncRun(self, run_id)

    def session(self, session_id: str) -> AsyncSession:
        """Returns the session with this id, without a request."""
        return AsyncSession(self, session_id)

    async def sessions(self, *, state: types.ViewState | None = None, timeout: float | None = None) -> list[types.RunSummary]:
        """Sessions, newest first."""
        return (await self._get("/sessions", "sessions", timeout, state=state))["sessions"]

    async def runs(self, *, agent: str | None = None, directory: str | None = None, text: str | None = None, prompts: bool | None = None,
                   state: types.ViewState | None = None, machine: str | None = None, since: int | None = None, limit: int | None = None, cursor: str | None = None, timeout: float | None = None) -> types.RunList:
        """A page of runs, newest first. ``text``: words of their titles, with ``prompts`` also of prompts that are kept."""
        return await self._get("/runs", "runs", timeout, agent=agent, directory=directory, text=text, prompts=prompts, state=state, machine=machine, since=since, limit=limit, cursor=cursor)

    async def requests(self, *, timeout: float | None = None) -> list[types.PendingRequest]:
        """Pending requests of all runs."""
        return (await self._get("/requests", "requests", timeout))["requests"]

    async def answer(self, request_id: str, answer: types.Answer, *, timeout: float | None = None) -> None:
        """Answers a request. The first answer counts; a later one is a Problem with the code ALREADY_ANSWERED."""
        await self._send("POST", request_path(request_id), timeout, **encoded(answer))

    async def watch(self, *, timeout: float | None = None) -> AsyncGenerator[types.Change, None]:
        """State of all runs and agents, then each change."""
        patience = Patience(self._options)
        while True:
            error: Exception | None = None
            try:
                async with aclosing(self._events("/events", patience, timeout)) as events:
                    async for name, data in events:
                        if name == "message":
                            yield self._options.parse(data, "type")
            except Exception as caught:
                error = caught
            await asyncio.sleep(patience.after(error))

    async def agents(self, *, timeout: float | None = None) -> types.AgentList:
        """The agents in a loop."""
        return await self._get("/agents", "agents", timeout)

    async def command(self, agent_id: str, command: str, *, timeout: float | None = None) -> types.AgentList:
        """``start``, ``stop``, ``restart`` or ``wake`` an agent."""
        return await self._json("POST", path_of("agents", agent_id, command), "agents", timeout)

    async def agent_log(self, agent_id: str, lines: int = 100, *, timeout: float | None = None) -> str:
        """The last lines of an agent's log."""
        content = await self._send("GET", path_of("agents", agent_id, "log"), timeout, "text/plain", params={"lines": lines})
        return (content or b"").decode("utf-8", "replace")

    async def providers(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """The agents' CLIs on the server's machine, with their capabilities."""
        return (await self._get("/providers", "providers", timeout))["providers"]

    async def limits(self, *, timeout: float | None = None) -> types.LimitList:
        """Limits of subscriptions, such as the 5-hour and the weekly one."""
        return await self._get("/limits", "limits", timeout)

    async def fleet(self, *, timeout: float | None = None) -> types.FleetStatus | None:
        """The fleet whose machines carry out the server's runs; None if the server's own machine does."""
        body = await self._send("GET", "/fleet", timeout)
        return None if body is None else self._options.parse(body, "workers")

    async def history(self, *, since: int | None = None, until: int | None = None, status: str | None = None, agent: str | None = None,
                      key: str | None = None, directory: str | None = None, text: str | None = None, limit: int | None = None, cursor: str | None = None,
                      timeout: float | None = None) -> types.HistoryList:
        """All recorded runs, attached ones and ticks of agents too, newest first."""
        return await self._get("/history", "runs", timeout, since=since, until=until, status=status, agent=agent, key=key,
                               directory=directory, text=text, limit=limit, cursor=cursor)

    async def usage(self, *, by: str | None = None, since: str | None = None, until: str | None = None, provider: str | None = None,
                    models: bool | None = None, timeout: float | None = None) -> types.UsageSummary:
        """Tokens and cost; ``by`` is ``day``, ``model``, ``agent``, ``key`` and others."""
        return await self._get("/usage", "by", timeout, by=by, since=since, until=until, provider=provider, models=models)

    async def _diff(self, path: str, paths: Iterable[str], stat: bool, timeout: float | None) -> types.WorkspaceDiff:
        return await self._json("GET", f"{path}/diff", "filesChanged", timeout, params=query(path=list(paths) or None, stat=stat or None))

    async def _read(self, path: str, name: str, timeout: float | None) -> bytes:
        file = f"{path}/files{path_of(*name.split('/'))}"
        manifest = self._options.parse(await self._patiently(file, JSON, timeout, manifest=True), "parts")
        content = bytearray()
        for number, digest in enumerate(manifest["parts"]):
            part = await self._patiently(file, BYTES, timeout, part=number)
            if sha256(part).hexdigest() != digest:
                raise TeamsterError(f"part {number} of {name} arrived damaged")
            content += part
        if sha256(content).hexdigest() != manifest["sha256"]:
            raise TeamsterError(f"{name} does not fit its manifest")
        return bytes(content)

    async def _patiently(self, path: str, media: str, timeout: float | None, **params: Any) -> bytes:
        """The body of what only reads, so a request whose connection breaks is repeated."""
        patience = Patience(self._options)
        while True:
            try:
                return await self._send("GET", path, timeout, media, params=query(**params)) or b""
            except Exception as error:
                await asyncio.sleep(patience.after(error))

    async def _entries(self, path: str, after: int, timeout: float | None) -> AsyncGenerator[types.Entry, None]:
        """The entries of the log at this path behind the one with this number, each once and in order.

        After a break, the stream continues behind the last entry. If a proxy buffers the stream, it is replaced by pages
        of the same log."""
        patience = Patience(self._options)
        streams = True
        while True:
            error: Exception | None = None
            try:
                if streams:
                    async with aclosing(self._events(path, patience, timeout, after=after)) as events:
                        async for name, data in events:
                            if name == "end":
                                return
                            if name == "message":
                                entry = self._options.parse(data, "seq")
                                after = self._options.number(entry, "type")
                                yield entry
                else:
                    page = await self._page(path, after, timeout)
                    patience.reached()
                    for entry in page["entries"]:
                        after = self._options.number(entry, "type")
                        yield entry
                    if page["ended"]:
                        return
                    continue
            except Exception as caught:
                # A proxy may hold back the entries of a stream, or even its head.
                if streams and isinstance(caught, Silence):
                    streams = False
                    continue
                error = caught
            # A stream that has closed without its end was cut.
            await asyncio.sleep(patience.after(error))

    async def _page(self, path: str, after: int, timeout: float | None) -> Any:
        """A page of a log, which waits for entries."""
        limit = PAGE_SECONDS + (self._options.timeout if timeout is None else timeout)
        content = await self._send("GET", path, limit, params={"after": after, "wait": PAGE_SECONDS})
        return self._options.page(content)

    async def _events(self, path: str, patience: Patience, timeout: float | None, **params: Any) -> AsyncGenerator[tuple[str, str], None]:
        """The events of a stream. Without a byte for too long it fails with Silence; heartbeats count."""
        limits = self._options.limits(timeout)
        async with self._open("GET", path, STREAM, limits, {"params": params, "headers": {"Accept": STREAM}}) as response:
            if response.status_code == 204:
                yield "end", ""
            # The limit of its beginning was another one.
            limits["read"] = finite(self._options.silence)
            parser = SseParser()
            async for piece in response.aiter_bytes():
                patience.reached()
                for event in parser.push(piece):
                    yield event


class AsyncRun:
    """A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end."""

    def __init__(self, client: AsyncTeamster, run_id: str, warnings: Sequence[str] = ()) -> None:
        self._client = client
        #: Its id.
        self.id = run_id
        #: Warnings of its start, such as of options without effect. None if this object did not start it.
        self.warnings = warnings

    def __aiter__(self) -> AsyncGenerator[types.Entry, None]:
        return self.entries()

    def entries(self, after: int = 0, *, timeout: float | None = None) -> AsyncGenerator[types.Entry, None]:
        """The entries behind the one with this number."""
        return self._client._entries(path_of("runs", self.id, "events"), after, timeout)

    async def view(self, *, timeout: float | None = None) -> types.RunView:
        """Current state, pending requests, cost so far, and the result once it has ended."""
        return await self._client._get(path_of("runs", self.id), "runId", timeout)

    async def result(self, *, timeout: float | None = None) -> types.RunResult:
        """Its result, once it has ended."""
        view = await self.view(timeout=timeout)
        result = view.get("result")
        if result is None:
            async for entry in self.entries(self._client._options.number(view, "state"), timeout=timeout):
                if entry["type"] == "done":
                    result = entry.get("result")
        if result is None:
            result = (await self.view(timeout=timeout)).get("result")
        if result is None:
            raise TeamsterError(f"the log of run {self.id} has no result")
        return result

    async def answer(self, request_id: str, answer: types.Answer, *, timeout: float | None = None) -> None:
        """Answers a request of the run. The id is in a ``permission`` entry, and in ``requests`` of ``view()``."""
        await self._client.answer(request_id, answer, timeout=timeout)

    async def rename(self, title: str | None, *, timeout: float | None = None) -> None:
        """Gives it another title, whether it has ended or not; with None, the one that it had at its start."""
        await self._client._send("PATCH", path_of("runs", self.id), timeout, **encoded({"title": title}))

    async def spec(self, *, timeout: float | None = None) -> types.KeptSpec:
        """The body with which it was started, as it is kept, and the names of what was withheld."""
        return await self._client._get(path_of("runs", self.id, "spec"), "what", timeout)

    async def diff(self, *, paths: Iterable[str] = (), stat: bool = False, timeout: float | None = None) -> types.WorkspaceDiff:
        """The changes of its workspace, committed or not: so far while it is live, then those that it has left. ``paths``:
        only files at these paths of the repository, and below them. ``stat``: only figures, without hunks."""
        return await self._client._diff(path_of("runs", self.id), paths, stat, timeout)

    async def apply(self, *, timeout: float | None = None) -> types.AppliedChanges:
        """Applies what it has left to the files of its repository, on the server's machine: all of it, or nothing."""
        return await self._client._json("POST", path_of("runs", self.id, "apply"), "filesChanged", timeout, **encoded({}))

    async def discard(self, *, timeout: float | None = None) -> None:
        """Discards what it has left: its worktree, its branch and its commits, for good."""
        await self._client._send("POST", path_of("runs", self.id, "discard"), timeout, **encoded({}))

    async def files(self, *, timeout: float | None = None) -> types.FileList:
        """The files that it brings back, once it has ended: ``bundle``, ``patch``, and as ``files/PATH`` those that were
        collected."""
        return await self._client._get(path_of("runs", self.id, "files"), "files", timeout)

    async def read(self, name: str, *, timeout: float | None = None) -> bytes:
        """The content of one of these files, checked by its hashes. A transfer that breaks continues where it was."""
        return await self._client._read(path_of("runs", self.id), name, timeout)

    async def cancel(self, *, kill: bool = False, timeout: float | None = None) -> types.RunView:
        """Stops the run; with ``kill`` it is killed at once. Returns before the run has ended."""
        return await self._client._json("POST", path_of("runs", self.id, "cancel"), "runId", timeout, **encoded({"kill": kill}))


class AsyncSession:
    """A live session, which takes one prompt after the other."""

    def __init__(self, client: AsyncTeamster, session_id: str, warnings: Sequence[str] = ()) -> None:
        self._client = client
        #: Its id.
        self.id = session_id
        #: Warnings of its start, such as of options without effect. None if this object did not start it.
        self.warnings = warnings

    async def send(self, prompt: str, *, sender: str | None = None, queue: bool = False, idempotency_key: str | None = None, timeout: float | None = None) -> AsyncTurn:
        """Sends a prompt, which begins a turn. During another turn it is a Problem with the code SESSION_BUSY, or, with
        ``queue``, waits for its end; of several prompts that wait, any may be the next. A connection that breaks
        meanwhile is made again, and the turn is begun once only."""
        content = {"prompt": prompt} | query(**{"from": sender, "queue": queue or None})
        while True:
            try:
                turn = await self._client._post_once(path_of("sessions", self.id, "turns"), content, idempotency_key, timeout)
                break
            except Problem as problem:
                if not queue or problem.code != "SESSION_BUSY":
                    raise
                # The server has waited for a while.
                await asyncio.sleep(0.1)
        return AsyncTurn(self._client, self.id, turn["runId"], self._client._options.number(turn, "runId"))

    def entries(self, after: int = 0, *, timeout: float | None = None) -> AsyncGenerator[types.Entry, None]:
        """The entries of its log behind the one with this number: all turns, up to the end of the session."""
        return self._client._entries(path_of("sessions", self.id, "events"), after, timeout)

    async def view(self, *, timeout: float | None = None) -> types.RunView:
        """Current state; ``live`` is its activity."""
        return await self._client._get(path_of("sessions", self.id), "runId", timeout)

    async def diff(self, *, paths: Iterable[str] = (), stat: bool = False, timeout: float | None = None) -> types.WorkspaceDiff:
        """The changes of its workspace, committed or not: so far while it is live, then those that it has left. ``paths``:
        only files at these paths of the repository, and below them. ``stat``: only figures, without hunks."""
        return await self._client._diff(path_of("sessions", self.id), paths, stat, timeout)

    async def files(self, *, timeout: float | None = None) -> types.FileList:
        """The files that it brings back, once it has ended: ``bundle``, ``patch``, and as ``files/PATH`` those that were
        collected."""
        return await self._client._get(path_of("sessions", self.id, "files"), "files", timeout)

    async def read(self, name: str, *, timeout: float | None = None) -> bytes:
        """The content of one of these files, checked by its hashes. A transfer that breaks continues where it was."""
        return await self._client._read(path_of("sessions", self.id), name, timeout)

    async def answer(self, request_id: str, answer: types.Answer, *, timeout: float | None = None) -> None:
        """Answers a request of the turn in progress."""
        await self._client.answer(request_id, answer, timeout=timeout)

    async def steer(self, text: str, *, sender: str | None = None, timeout: float | None = None) -> None:
        """Sends text to the turn in progress, if the agent's CLI supports it."""
        await self._command("steer", {"text": text} | query(**{"from": sender}), timeout)

    async def interrupt(self, *, kill: bool = False, timeout: float | None = None) -> None:
        """Ends the turn in progress; the session continues."""
        await self._command("interrupt", {"kill": kill}, timeout)

    async def clear(self, *, timeout: float | None = None) -> None:
        """Clears the context and continues."""
        await self._command("clear", None, timeout)

    async def _command(self, command: str, content: Any, timeout: float | None) -> None:
        more = {} if content is None else encoded(content)
        await self._client._send("POST", path_of("sessions", self.id, command), timeout, **more)

    async def change(self, *, model: str | None = None, permission: types.PermissionMode | None = None, timeout: float | None = None) -> types.RunView:
        """Changes the model or the permission, from the next turn on."""
        return await self._client._json("PATCH", path_of("sessions", self.id), "runId", timeout, **encoded(query(model=model, permission=permission)))

    async def end(self, *, kill: bool = False, timeout: float | None = None) -> types.RunView:
        """Ends the session; its log stays."""
        return await self._client._json("DELETE", path_of("sessions", self.id), "runId", timeout, params=query(kill=kill or None))


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

    async def entries(self, after: int | None = None, *, timeout: float | None = None) -> AsyncGenerator[types.Entry, None]:
        """Its entries behind the one with this number."""
        path = path_of("sessions", self._session_id, "events")
        async with aclosing(self._client._entries(path, self.seq if after is None else after, timeout)) as entries:
            async for entry in entries:
                yield entry
                if entry["type"] == "done" and entry.get("runId") == self.id:
                    return

    async def result(self, *, timeout: float | None = None) -> types.RunResult:
        """Its result, once it has ended."""
        async with aclosing(self.entries(timeout=timeout)) as entries:
            async for entry in entries:
                if entry["type"] == "done" and entry.get("runId") == self.id and "result" in entry:
                    return entry["result"]
        raise TeamsterError(f"the log of session {self._session_id} has no end of turn {self.id}")
