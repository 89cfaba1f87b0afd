"""The client for Python, blocking and with asyncio, against servers that are not teamster, or fail: what they send is
made by hand. .ci/clients installs it and runs this."""

import asyncio
import gc
import gzip
import json
import math
import os
import pickle
import re
import sys
import time
from contextlib import aclosing
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import httpx

from teamster_client import AsyncTeamster, ConnectionLost, Problem, Teamster, TeamsterError, UnexpectedResponse
from teamster_client.protocol import SseParser

from fake import END, JSON, LIMIT, VIEW, closes, done, fake, head, problem, raw, reply, routes, silent, steps, stream, text, until

#: Every call that sends a request.
CALLS = {
    "start": lambda teamster, **more: teamster.start(provider="claude", prompt="x", **more),
    "start_session": lambda teamster, **more: teamster.start_session(provider="claude", **more),
    "start_with_id": lambda teamster, **more: teamster.start_with_id("a", provider="claude", prompt="x", **more),
    "start_session_with_id": lambda teamster, **more: teamster.start_session_with_id("a", provider="claude", **more),
    "sessions": lambda teamster, **more: teamster.sessions(**more),
    "runs": lambda teamster, **more: teamster.runs(**more),
    "requests": lambda teamster, **more: teamster.requests(**more),
    "agents": lambda teamster, **more: teamster.agents(**more),
    "wake": lambda teamster, **more: teamster.command("a", "wake", **more),
    "agent_log": lambda teamster, **more: teamster.agent_log("a", **more),
    "providers": lambda teamster, **more: teamster.providers(**more),
    "limits": lambda teamster, **more: teamster.limits(**more),
    "history": lambda teamster, **more: teamster.history(**more),
    "usage": lambda teamster, **more: teamster.usage(**more),
    "watch": lambda teamster, **more: teamster.watch(**more),
    "entries": lambda teamster, **more: teamster.run("a").entries(**more),
    "view": lambda teamster, **more: teamster.run("a").view(**more),
    "result": lambda teamster, **more: teamster.run("a").result(**more),
    "cancel": lambda teamster, **more: teamster.run("a").cancel(**more),
    "send": lambda teamster, **more: teamster.session("a").send("x", **more),
    "change": lambda teamster, **more: teamster.session("a").change(model="x", **more),
    "end": lambda teamster, **more: teamster.session("a").end(**more),
}
#: Those whose response has no object.
OTHERS = ("watch", "entries", "agent_log")


def blocking(url, act, **options):
    """Calls `act` with a blocking client."""
    with Teamster(url, "secret", **options) as teamster:
        found = act(teamster)
        return next(found) if hasattr(found, "__next__") else found


def with_asyncio(url, act, **options):
    """The same with asyncio."""

    async def main():
        async with asyncio.timeout(LIMIT), AsyncTeamster(url, "secret", **options) as teamster:
            found = act(teamster)
            if not hasattr(found, "__anext__"):
                return await found
            async with aclosing(found):
                return await anext(found)

    return asyncio.run(main())


def fails(kind, act, within=8):
    begin = time.monotonic()
    try:
        found = act()
    except TeamsterError as error:
        assert isinstance(error, kind), repr(error)
        assert "secret" not in str(error), error
        assert time.monotonic() - begin < within, f"after {time.monotonic() - begin:.1f} s: {error}"
        return error
    raise AssertionError(f"no error, but {found!r}")


def each_fails(respond, kind, calls=CALLS, reconnect=0.1, timeout=2, **more):
    """Every call of both clients has an error of this class within seconds. Certificates take long to load."""
    for name in calls:
        for way in (blocking, with_asyncio):
            with fake(respond) as server:
                try:
                    fails(kind, lambda: way(server.url, lambda teamster: CALLS[name](teamster, **more), reconnect=reconnect, silence=2, timeout=timeout, verify=False))
                except BaseException:
                    print(f"{way.__name__} {name}", file=sys.stderr)
                    raise


def strangers_get_an_error_of_the_family():
    objects = [name for name in CALLS if name not in OTHERS]
    for what, respond, kind, calls in (
        ("an HTML page", reply(200, "text/html", "<!doctype html>"), UnexpectedResponse, CALLS),
        ("a response without a type", reply(200, "", "{}"), UnexpectedResponse, CALLS),
        ("a redirect", reply(302, "text/html", "", "Location: http://127.0.0.1:9/login\r\n"), UnexpectedResponse, CALLS),
        ("a redirect that keeps the method", reply(307, "", "", "Location: https://127.0.0.1:9/\r\n"), UnexpectedResponse, CALLS),
        ("JSON of another program", reply(200, JSON, '{"status": "ok"}'), UnexpectedResponse, CALLS),
        ("JSON that is no object", reply(200, JSON, "null"), UnexpectedResponse, CALLS),
        ("a list", reply(200, JSON, "[1]"), UnexpectedResponse, CALLS),
        ("no JSON", reply(200, JSON, "<html>"), UnexpectedResponse, objects),
        ("no UTF-8", reply(200, JSON, b'{"a": "\xff"}'), UnexpectedResponse, objects),
        ("JSON without an end to its depth", reply(200, JSON, "[" * 100_000), UnexpectedResponse, objects),
        ("an empty body", reply(200, JSON), UnexpectedResponse, objects),
        ("a body that is not gzip", reply(200, JSON, '{"runId": "a"}', "Content-Encoding: gzip\r\n"), UnexpectedResponse, objects),
        ("an HTML page that is not found", reply(404, "text/html", "<html>"), Problem, CALLS),
        ("an error with JSON of another program", reply(400, JSON, '{"code": 5, "detail": {}}'), Problem, CALLS),
        ("an error without an end to its depth", reply(400, JSON, "[" * 100_000), Problem, CALLS),
        ("an error that is not gzip", reply(400, JSON, "x", "Content-Encoding: gzip\r\n"), Problem, CALLS),
        ("a 502 page of a proxy", reply(502, "text/html", "<html>"), (Problem, ConnectionLost), CALLS),
        ("a TLS port", raw(bytes([21, 3, 1, 0, 2, 2, 70])), ConnectionLost, CALLS),
        ("a port of another protocol", raw(b"SSH-2.0-OpenSSH_9.6\r\n"), ConnectionLost, CALLS),
        ("a port that closes", closes, ConnectionLost, CALLS),
        ("a body that is cut", raw(head(200, JSON, "Content-Length: 100\r\n") + b'{"runId"'), (ConnectionLost, UnexpectedResponse), CALLS),
    ):
        try:
            each_fails(respond, kind, calls)
        except BaseException:
            print(what, file=sys.stderr)
            raise


def addresses_that_no_server_has():
    with fake(raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        for url in (server.url.replace("http", "https"), "http://" + "a" * 64 + ".invalid", "http://.invalid", "http://[::1", "http://127.0.0.1:99999", "ftp://127.0.0.1", "", "nonsense"):
            for way in (blocking, with_asyncio):
                for name in ("runs", "start", "entries", "watch"):
                    fails(ConnectionLost, lambda: way(url, CALLS[name]))


def each_call_has_a_limit_of_time():
    calls = [name for name in CALLS if name not in ("entries", "result")]
    each_fails(silent, ConnectionLost, calls, timeout=0.05)
    for name in calls:
        for way in (blocking, with_asyncio):
            with fake(silent) as server:
                fails(ConnectionLost, lambda: way(server.url, lambda teamster: CALLS[name](teamster, timeout=0.05)), within=2)
    # A body that drips, and that of an error.
    def drips(status):
        def respond(connection, *_):
            connection.sendall(head(status, JSON))
            for _ in range(400):
                connection.sendall(b" ")
                time.sleep(0.02)
        return respond

    for way in (blocking, with_asyncio):
        with fake(drips(200)) as server:
            fails(ConnectionLost, lambda: way(server.url, lambda teamster: teamster.runs(timeout=0.2)), within=2)
        with fake(drips(404)) as server:
            fails(Problem, lambda: way(server.url, lambda teamster: teamster.runs(timeout=0.2)), within=2)


def a_stream_without_a_head_is_replaced_by_pages():
    page = json.dumps({"entries": [text(1), done(2)], "next": 2, "ended": True})

    def respond(connection, request, number):
        (reply(200, JSON, page) if "wait=" in request else silent)(connection, request, number)

    with fake(respond) as server:
        with Teamster(server.url) as teamster:
            assert list(teamster.run("a").entries(timeout=0.05)) == [text(1), done(2)]
        assert len(server.requests) == 2

    # The silence of a stream that has begun has a limit of its own.
    def begins(connection, request, number):
        if "wait=" in request:
            assert "after=1&" in request
            return reply(200, JSON, json.dumps({"entries": [done(2)], "next": 2, "ended": True}))(connection, request, number)
        return raw(stream(text(1)), close=False)(connection, request, number)

    for way in (blocking, with_asyncio):
        with fake(begins) as server:
            assert way(server.url, CALLS["entries"], silence=0.1) == text(1)
    with fake(begins) as server, Teamster(server.url, silence=0.1) as teamster:
        assert list(teamster.run("a")) == [text(1), done(2)]


def limits_are_numbers():
    limit = httpx.Timeout(5)
    for way in (blocking, with_asyncio):
        with fake(reply(200, JSON, '{"runs": []}')) as server:
            for name in ("timeout", "silence", "reconnect"):
                for wrong in (limit, "5", math.nan):
                    error = fails(TeamsterError, lambda: way(server.url, CALLS["runs"], **{name: wrong}))
                    assert f"`{name}` is a number of seconds" in str(error), error
            error = fails(TeamsterError, lambda: way(server.url, lambda teamster: teamster.runs(timeout=limit)))
            assert "`timeout` is a number of seconds" in str(error), error
            assert server.requests == []


def limits_may_be_infinite():
    for way in (blocking, with_asyncio):
        with fake(routes(raw(stream(text(1)), close=False), reply(200, JSON, VIEW))) as server:
            limits = {"timeout": math.inf, "silence": math.inf, "reconnect": math.inf}
            assert way(server.url, CALLS["view"], **limits)["runId"] == "a"
            assert way(server.url, CALLS["entries"], **limits) == text(1)


def a_damaged_entry_is_an_error_at_once():
    for data in ('{"seq": 1', "5", "null", '{"type": "text"}', '{"seq": 1}', '{"seq": "1", "type": "text"}', '{"seq": true, "type": "text"}', '{"seq": 1, "x": ' + "[" * 100_000):
        for way in (blocking, with_asyncio):
            with fake(raw(head(200, "text/event-stream") + f"data: {data}\n\n".encode(), close=False)) as server:
                fails(UnexpectedResponse, lambda: way(server.url, CALLS["entries"]))
                fails(UnexpectedResponse, lambda: way(server.url, lambda teamster: teamster.session("a").entries()))
                if "type" not in data:
                    fails(UnexpectedResponse, lambda: way(server.url, CALLS["watch"]))
    for page in ('{"ended": true}', '{"entries": 5, "ended": true}', '{"entries": [5], "ended": true}', '{"entries": [], "next": 1}', "[]"):
        with fake(steps(silent, reply(200, JSON, page))) as server:
            fails(UnexpectedResponse, lambda: blocking(server.url, lambda teamster: teamster.run("a").entries(timeout=0.05)))
    with fake(reply(201, JSON, '{"runId": "a.1"}')) as server:
        fails(UnexpectedResponse, lambda: blocking(server.url, CALLS["send"]))
    # What a number of JavaScript cannot hold is exact here.
    with fake(raw(stream(text(2**63 + 1), done(2**63 + 2)) + END)) as server, Teamster(server.url) as teamster:
        assert [entry["seq"] for entry in teamster.run("a")] == [2**63 + 1, 2**63 + 2]


def a_log_without_a_result_is_an_error_of_the_family():
    ended = raw(head(200, "text/event-stream") + END)
    without = raw(stream({"seq": 1, "type": "done", "runId": "a.1"}) + END)
    for events in (ended, without):
        for way in (blocking, with_asyncio):
            with fake(routes(events, reply(200, JSON, VIEW))) as server:
                assert "has no result" in str(fails(TeamsterError, lambda: way(server.url, CALLS["result"])))
    with fake(routes(without, reply(201, JSON, '{"runId": "a.1", "seq": 3}'))) as server:
        assert "no end of turn" in str(fails(TeamsterError, lambda: blocking(server.url, lambda teamster: CALLS["send"](teamster).result())))


def a_stream_goes_on_and_ends_with_its_token():
    def respond(connection, request, number):
        after = int(re.search(r"after=(\d+)", request)[1])
        seen.append(after)
        responses[number - 1](connection, request, number)

    responses = (raw(stream(text(1)) + b'data: {"seq": 2, '), closes, reply(502, "text/html", "<html>"), reply(504, "text/html", "<html>"),
                 problem(503, "TOO_MANY_CONNECTIONS"), raw(stream(text(2))), problem(401, "UNAUTHORIZED"))
    seen = []
    with fake(respond) as server, Teamster(server.url) as teamster:
        entries = teamster.run("a").entries()
        assert [next(entries), next(entries)] == [text(1), text(2)]
        error = fails(Problem, lambda: next(entries))
        assert (error.status, error.code) == (401, "UNAUTHORIZED")
        copy = pickle.loads(pickle.dumps(error))
        assert (copy.status, copy.code, str(copy)) == (401, "UNAUTHORIZED", str(error))
    assert seen == [0, 1, 1, 1, 1, 1, 2]


def the_limit_of_reconnecting_counts_from_the_break():
    with fake(steps(raw(stream(text(1))), reply(502, "text/html"))) as server, Teamster(server.url, reconnect=0.05) as teamster:
        entries = teamster.run("a").entries()
        next(entries)
        begin = time.monotonic()
        # However long the consumer took.
        until("end of the limit", lambda: time.monotonic() > begin + 0.05)
        error = fails(ConnectionLost, lambda: next(entries))
        assert "for 0.05 s" in str(error) and "502" in str(error.__cause__), error
        assert len(server.requests) > 1


def a_start_whose_response_is_cut_is_repeated_with_the_same_key():
    for way in (blocking, with_asyncio):
        with fake(steps(raw(head(201, JSON, "Content-Length: 99\r\n") + b"{"), reply(201, JSON, VIEW))) as server:
            assert way(server.url, CALLS["start"]).id == "a"
            keys = [re.search("idempotency-key: (.+)\r", request, re.I)[1] for request in server.requests]
            assert len(keys) == 2 and len(set(keys)) == 1, keys


def a_delay_that_the_server_asks_for_is_kept():
    def busy(status, retry_after, code=None):
        media, body = ("application/problem+json", json.dumps({"status": status, "code": code, "detail": code})) if code else ("text/html", "<html>")
        return reply(status, media, body, f"Retry-After: {retry_after}\r\n")

    # A number of seconds.
    for way, refused in ((blocking, busy(503, 1, "TOO_MANY_CONNECTIONS")), (with_asyncio, busy(429, 1))):
        for name, then in (("start", reply(201, JSON, VIEW)), ("entries", raw(stream(text(1)), close=False))):
            with fake(steps(refused, then)) as server:
                begin = time.monotonic()
                way(server.url, CALLS[name], reconnect=20)
                assert time.monotonic() - begin >= 0.99, name
                assert len(server.requests) == 2, name
    # One that is longer than the limit is an error at once, and a date is read too.
    date = format_datetime(datetime.now(timezone.utc) + timedelta(hours=1), usegmt=True)
    for retry_after, least, most in (("3600", 3600, 3600), (date, 3590, 3600), ("9" * 5000, 1e9, 1e9)):
        for way in (blocking, with_asyncio):
            with fake(busy(503, retry_after)) as server:
                for name in ("start", "entries", "watch", "runs"):
                    error = fails(Problem, lambda: way(server.url, CALLS[name], reconnect=20))
                    assert error.status == 503 and least <= error.retry_after <= most, (name, error.retry_after)
                    assert pickle.loads(pickle.dumps(error)).retry_after == error.retry_after
                assert len(server.requests) == 4
    # None that is neither, or of another status.
    for status, retry_after in ((503, "soon"), (503, "-1"), (503, "1.5"), (503, "99 GMT"), (502, "3600")):
        with fake(busy(status, retry_after)) as server:
            assert fails(Problem, lambda: blocking(server.url, CALLS["runs"])).retry_after is None


def compressed_responses_are_read():
    def compressed(media, body):
        return reply(200, media, gzip.compress(body), "Content-Encoding: gzip\r\n")

    log = compressed("text/event-stream", stream(done(1)).partition(b"\r\n\r\n")[2] + END)
    for way in (blocking, with_asyncio):
        with fake(routes(log, compressed(JSON, VIEW.encode()))) as server:
            assert way(server.url, CALLS["result"])["status"] == "completed"


def the_parser_takes_every_cut_line_end_and_field():
    entry = json.dumps({"text": "a\u2028b\u2029c\u0085d ü€😀"}, ensure_ascii=False)
    lines = [": a comment", "retry: 5", "", "id: 1", "event: text", f"data: {entry}", "unknown: x", "event", "", "data:one", "data: two", "", "event: empty", "", ""]
    right = [("message", entry), ("message", "one\ntwo")]
    for end in ("\n", "\r\n", "\r"):
        for begin in ("", "\ufeff"):
            source = (begin + end.join(lines)).encode()
            for cut in range(len(source) + 1):
                parser = SseParser()
                assert parser.push(source[:cut]) + parser.push(b"") + parser.push(source[cut:]) == right, (end, cut)
            parser = SseParser()
            assert [event for i in range(len(source)) for event in parser.push(source[i:i + 1])] == right
    with fake(raw(head(200, "text/event-stream") + "\ufeffdata: ".encode() + json.dumps(text(1)).encode() + b"\n\n", close=False)) as server:
        assert blocking(server.url, CALLS["entries"]) == text(1)


def an_iterator_that_is_left_closes_its_connection():
    respond = lambda connection, request, number: raw(stream({"type": "snapshot"} if "/v1/events" in request else text(1)), close=False)(connection, request, number)
    with fake(respond) as server, Teamster(server.url) as teamster:
        other = teamster.run("a").entries()
        assert next(other) == text(1)
        for make in (teamster.run("a").entries, teamster.session("a").entries, teamster.watch):
            for _ in make():
                assert server.open == 2
                break
            until("end of the connection", lambda: server.open == 1)
        other.close()
        until("end of the connection", lambda: server.open == 0)

    async def main():
        async with AsyncTeamster(server.url) as teamster:
            async for _ in teamster.run("a"):
                assert server.open == 1
                break
            await gone()
            # One that is forgotten in the middle.
            entries = teamster.run("a").entries()
            await anext(entries)
            del entries
            gc.collect()
            await gone()
            # One whose task is cancelled before the first byte, or while it waits.
            for path in (teamster.run("a"), teamster.watch()):
                async def follow():
                    async for _ in path:
                        pass

                task = asyncio.create_task(follow())
                while server.open != 1:
                    await asyncio.sleep(0.01)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass
                else:
                    raise AssertionError("it was not cancelled")
                await gone()

    async def gone():
        async with asyncio.timeout(LIMIT):
            while server.open != 0:
                await asyncio.sleep(0.01)

    with fake(respond) as server:
        asyncio.run(main())


def what_a_request_cannot_carry_is_an_error_without_secrets():
    for make in (lambda: Teamster(token="secret\nx"), lambda: Teamster(token="secretü"), lambda: Teamster("http://me:secret@127.0.0.1:1")):
        fails(TeamsterError, make)
    with fake(reply(200, JSON, VIEW)) as server, Teamster(server.url) as teamster:
        # The last line of a file.
        with Teamster(server.url, "abc\n") as other:
            other.run("a").view()
        assert re.search("authorization: Bearer abc\r\n", server.requests[-1], re.I)
        with Teamster(server.url, "") as other:
            other.run("a").view()
        assert "authorization" not in server.requests[-1].lower()
        sent = len(server.requests)
        for key in ("", "a\nb", "ü"):
            fails(TeamsterError, lambda: teamster.start(provider="claude", prompt="x", idempotency_key=key))
        for name in ("", ".", "..", "\ud800"):
            fails(TeamsterError, teamster.run(name).view)
            fails(TeamsterError, lambda: next(teamster.run(name).entries()))
            fails(TeamsterError, teamster.session(name).end)
            fails(TeamsterError, lambda: teamster.agent_log(name))
            fails(TeamsterError, lambda: teamster.answer(f"{name}/1", {"decision": "allow"}))
        fails(TeamsterError, lambda: teamster.answer("1", {"decision": "allow"}))
        fails(TeamsterError, lambda: teamster.history(key="\ud800"))
        assert len(server.requests) == sent
        teamster.run("a/b ü?").view()
        assert server.requests[-1].startswith("GET /v1/runs/a%2Fb%20%C3%BC%3F "), server.requests[-1]
        # Half of a surrogate pair, as in names of files: the server decides.
        teamster.start(provider="claude", prompt="\ud800")
        assert r"\ud800" in server.requests[-1]


def proxies_of_the_environment_are_not_for_this_machine():
    names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    before = {name: os.environ.get(name) for name in names}
    try:
        for name in names:
            os.environ[name] = "http://127.0.0.1:9"
        with fake(reply(200, JSON, VIEW)) as server:
            for way in (blocking, with_asyncio):
                assert way(server.url, CALLS["view"])["runId"] == "a"
        # One of the caller counts: it has the request.
        with fake(reply(200, JSON, VIEW)) as proxy, Teamster("http://127.0.0.1:9", proxy=proxy.url) as teamster:
            assert teamster.run("a").view()["runId"] == "a"
            assert proxy.requests[0].startswith("GET http://127.0.0.1:9/v1/runs/a ")
        for proxy in ("nonsense://x", "socks5://127.0.0.1:9"):
            os.environ["ALL_PROXY"] = os.environ["all_proxy"] = proxy
            fails(TeamsterError, Teamster)
            fails(TeamsterError, AsyncTeamster)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


TESTS = [strangers_get_an_error_of_the_family, addresses_that_no_server_has, each_call_has_a_limit_of_time, a_stream_without_a_head_is_replaced_by_pages,
         limits_are_numbers, limits_may_be_infinite, a_damaged_entry_is_an_error_at_once, a_log_without_a_result_is_an_error_of_the_family, a_stream_goes_on_and_ends_with_its_token,
         the_limit_of_reconnecting_counts_from_the_break, a_start_whose_response_is_cut_is_repeated_with_the_same_key, a_delay_that_the_server_asks_for_is_kept, compressed_responses_are_read,
         the_parser_takes_every_cut_line_end_and_field, an_iterator_that_is_left_closes_its_connection, what_a_request_cannot_carry_is_an_error_without_secrets,
         proxies_of_the_environment_are_not_for_this_machine]


def main():
    for test in TESTS:
        begin = time.monotonic()
        name = test.__name__.replace("_", " ")
        if not all(word in name for word in sys.argv[1:]):
            continue
        try:
            test()
        except BaseException:
            print(f"FAILED {name}", file=sys.stderr)
            raise
        print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)


main()
