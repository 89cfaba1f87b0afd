// The client for TypeScript against servers that are not teamster, or fail: what they send is made by hand.

import assert from 'node:assert/strict';
import {createServer} from 'node:net';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';
import {gzipSync} from 'node:zlib';
import {check, until} from './server.mjs';

const installed = createRequire(join(process.env.CLIENT_MODULES, 'package.json')).resolve('@teamster-rs/client');
const {ConnectionLost, Problem, Teamster, TeamsterError, UnexpectedResponse} = await import(pathToFileURL(installed));
const {SseParser} = await import(pathToFileURL(join(dirname(installed), 'sse.js')));

const JSON_TYPE = 'application/json';
const VIEW = JSON.stringify({runId: 'a', seq: 0, state: 'running'});
const text = (seq) => ({seq, type: 'text', text: `${seq}`});
const done = (seq) => ({seq, type: 'done', runId: 'a', result: {status: 'completed'}});

/// All connections of all servers here.
const all = new Set();
process.once('exit', () => all.forEach((socket) => socket.destroy()));

/// A server that gives each request, with its number from 1, to `respond`. `open` are the connections with a request:
/// Node opens a further one when a request is aborted.
async function fake(respond) {
  const open = new Set();
  const requests = [];
  const server = createServer((socket) => {
    all.add(socket);
    socket.on('close', () => {
      all.delete(socket);
      open.delete(socket);
    });
    socket.on('error', () => {});
    let received = '';
    socket.on('data', (piece) => {
      received += piece.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      // A record of TLS has no such line.
      if (received.charCodeAt(0) !== 22 && (end < 0 || received.length < end + 4 + length)) return;
      open.add(socket);
      requests.push(received);
      received = '';
      respond(socket, requests.at(-1), requests.length);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    server.close();
    for (const socket of all) socket.destroy();
  };
  return {url: `http://127.0.0.1:${server.address().port}`, open, requests, end};
}

const head = (status, type, more = '') => `HTTP/1.1 ${status} X\r\n${type ? `Content-Type: ${type}\r\n` : ''}${more}Connection: close\r\n\r\n`;
const reply = (status, type, body = '', more = '') => (socket) => {
  socket.write(head(status, type, `Content-Length: ${Buffer.byteLength(body)}\r\n${more}`));
  socket.end(body);
};
const problem = (status, code) => reply(status, 'application/problem+json', JSON.stringify({status, code, detail: code}));
const stream = (socket, ...entries) => socket.write(head(200, 'text/event-stream') + entries.map((entry) => `data: ${JSON.stringify(entry)}\n\n`).join(''));
const END = 'event: end\ndata: {}\n\n';

/// Calls `act` against such a server.
async function against(respond, act, more = {}) {
  const server = await fake(respond);
  try {
    return await act(new Teamster({url: server.url, token: 'secret', timeoutMs: 2000, silenceMs: 2000, reconnectMs: 300, ...more}), server);
  } finally {
    server.end();
  }
}

/// Every call that sends a request.
const CALLS = {
  start: (teamster) => teamster.start({provider: 'claude', prompt: 'x'}),
  startSession: (teamster) => teamster.startSession({provider: 'claude'}),
  startWithId: (teamster) => teamster.startWithId('a', {provider: 'claude', prompt: 'x'}),
  startSessionWithId: (teamster) => teamster.startSessionWithId('a', {provider: 'claude'}),
  sessions: (teamster) => teamster.sessions(),
  runs: (teamster) => teamster.runs(),
  requests: (teamster) => teamster.requests(),
  agents: (teamster) => teamster.agents(),
  wake: (teamster) => teamster.command('a', 'wake'),
  agentLog: (teamster) => teamster.agentLog('a'),
  providers: (teamster) => teamster.providers(),
  limits: (teamster) => teamster.limits(),
  history: (teamster) => teamster.history(),
  usage: (teamster) => teamster.usage(),
  watch: (teamster) => teamster.watch().next(),
  entries: (teamster) => teamster.run('a').entries().next(),
  view: (teamster) => teamster.run('a').view(),
  result: (teamster) => teamster.run('a').result(),
  cancel: (teamster) => teamster.run('a').cancel(),
  send: (teamster) => teamster.session('a').send('x'),
  change: (teamster) => teamster.session('a').change({model: 'x'}),
  end: (teamster) => teamster.session('a').end(),
};

/// Every call has an error of this class within seconds.
async function fails(respond, kind, {calls = CALLS, ...more} = {}) {
  for (const [name, call] of Object.entries(calls)) {
    await against(respond, async (teamster) => {
      const late = new Promise((_, reject) => { setTimeout(() => reject(new Error(`${name} takes too long`)), 8000).unref(); });
      await assert.rejects(Promise.race([call(teamster), late]), (error) => {
        assert.ok(error instanceof kind && error instanceof TeamsterError, `${name}: ${error?.stack ?? error}`);
        assert.ok(!error.message.includes('secret'), error.message);
        return true;
      }, name);
    }, more);
  }
}

const withoutStreams = Object.fromEntries(Object.entries(CALLS).filter(([name]) => !['watch', 'entries', 'agentLog'].includes(name)));

for (const [what, respond, kind, more] of [
  ['an HTML page', reply(200, 'text/html', '<!doctype html>'), UnexpectedResponse],
  ['a response without a type', reply(200, '', '{}'), UnexpectedResponse],
  ['a redirect', reply(302, 'text/html', '', 'Location: http://127.0.0.1:9/login\r\n'), UnexpectedResponse],
  ['a redirect that keeps the method', reply(307, '', '', 'Location: https://127.0.0.1:9/\r\n'), UnexpectedResponse],
  ['JSON of another program', reply(200, JSON_TYPE, '{"status": "ok"}'), UnexpectedResponse],
  ['JSON that is no object', reply(200, JSON_TYPE, 'null'), UnexpectedResponse],
  ['no JSON', reply(200, JSON_TYPE, '<html>'), UnexpectedResponse, {calls: withoutStreams}],
  ['an empty body', reply(200, JSON_TYPE), UnexpectedResponse, {calls: withoutStreams}],
  ['a body that is not gzip', reply(200, JSON_TYPE, '{"runId": "a"}', 'Content-Encoding: gzip\r\n'), UnexpectedResponse],
  ['an HTML page that is not found', reply(404, 'text/html', '<html>'), Problem],
  ['an error with JSON of another program', reply(400, JSON_TYPE, '{"code": 5, "detail": {}}'), Problem],
  ['an error with an empty body', reply(403, JSON_TYPE), Problem],
  ['a 502 page of a proxy', reply(502, 'text/html', '<html>'), TeamsterError],
  ['a TLS port', (socket) => socket.end(Buffer.from([21, 3, 1, 0, 2, 2, 70])), ConnectionLost],
  ['a port of another protocol', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), ConnectionLost],
  ['a port that closes', (socket) => socket.destroy(), ConnectionLost],
  ['a body that is cut', (socket) => socket.end(`${head(200, JSON_TYPE, 'Content-Length: 100\r\n')}{"runId"`), TeamsterError],
]) {
  await check(`each call at ${what} has an error of the family`, () => fails(respond, kind, more));
}

await check('an https address of an http port has an error of the family', async () => {
  await against((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), async (teamster, {url}) => {
    for (const call of Object.values(CALLS)) await assert.rejects(call(new Teamster({url: url.replace('http', 'https')})), ConnectionLost);
  });
});

await check('each call has a limit of time: that of the client, or its own', async () => {
  const {entries, result, ...calls} = CALLS;
  await fails(() => {}, ConnectionLost, {calls, timeoutMs: 50});
  // The head of a stream, where a server is.
  const mute = (socket, request, number) => number === 1 && reply(200, JSON_TYPE, VIEW)(socket);
  await against(mute, async (teamster) => {
    await teamster.run('a').view();
    await assert.rejects(teamster.watch({timeoutMs: 50}).next(), ConnectionLost);
    await assert.rejects(teamster.start({provider: 'claude', prompt: 'x'}, {timeoutMs: 50}), ConnectionLost);
  });
  // A proxy may hold back the head of a stream: pages of the log replace it.
  const pages = (socket, request) => request.includes('wait=') && reply(200, JSON_TYPE, JSON.stringify({entries: [text(1), done(2)], next: 2, ended: true}))(socket);
  await against(pages, async (teamster, {requests}) => {
    const seqs = [];
    for await (const entry of teamster.run('a').entries({timeoutMs: 50})) seqs.push(entry.seq);
    assert.deepEqual([seqs, requests.length], [[1, 2], 2]);
  });
  // A body, and that of an error.
  await against((socket) => socket.write(`${head(200, JSON_TYPE)}{`), (teamster) => assert.rejects(teamster.runs({}, {timeoutMs: 100}), ConnectionLost));
  await against((socket) => socket.write(`${head(404, JSON_TYPE)}{`), (teamster) => assert.rejects(teamster.runs({}, {timeoutMs: 100}), Problem));
  // More than a timer can count.
  await against((socket, request) => (request.includes('/events') ? stream(socket, text(1)) : reply(200, JSON_TYPE, VIEW)(socket)), async (teamster) => {
    assert.equal((await teamster.run('a').view()).runId, 'a');
    assert.equal((await teamster.run('a').entries().next()).value.seq, 1);
  }, {timeoutMs: Infinity, silenceMs: Infinity, reconnectMs: Infinity});
});

await check('a damaged entry is an error at once', async () => {
  for (const data of ['{"seq": 1', '5', 'null', '{"type": "text"}', '{"seq": "1"}', '{"seq": 9007199254740993}']) {
    await against((socket) => socket.write(`${head(200, 'text/event-stream')}data: ${data}\n\n`), async (teamster) => {
      await assert.rejects(teamster.run('a').entries().next(), UnexpectedResponse, data);
      await assert.rejects(teamster.session('a').entries().next(), UnexpectedResponse, data);
    }, {reconnectMs: 60_000});
  }
  await against((socket) => socket.write(`${head(200, 'text/event-stream')}data: {\n\n`), (teamster) => assert.rejects(teamster.watch().next(), UnexpectedResponse));
});

await check('a log without a result is an error of the family', async () => {
  const ended = (socket, request) => (request.includes('/events') ? socket.end(head(200, 'text/event-stream') + END) : reply(200, JSON_TYPE, VIEW)(socket));
  await against(ended, (teamster) => assert.rejects(teamster.run('a').result(), {name: 'TeamsterError', message: /has no result/}));
  const turn = (socket, request) => (request.includes('/events') ? socket.end(head(200, 'text/event-stream') + END) : reply(201, JSON_TYPE, '{"runId": "a.1", "seq": 3}')(socket));
  await against(turn, async (teamster) => assert.rejects((await teamster.session('a').send('x')).result(), {name: 'TeamsterError', message: /no end of turn/}));
});

await check('a stream goes on after a cut and pages of a proxy, and ends with its token', async () => {
  const steps = [
    (socket) => { stream(socket, text(1)); socket.end('data: {"seq": 2, '); },
    (socket) => socket.destroy(),
    reply(502, 'text/html', '<html>'),
    reply(504, 'text/html', '<html>'),
    problem(503, 'TOO_MANY_CONNECTIONS'),
    (socket) => { stream(socket, text(2)); socket.end(); },
    problem(401, 'UNAUTHORIZED'),
  ];
  await against((socket, request, number) => {
    if (number > 1) assert.match(request, number < 7 ? /after=1 / : /after=2 /);
    steps[number - 1](socket);
  }, async (teamster) => {
    const entries = teamster.run('a').entries();
    assert.deepEqual([(await entries.next()).value, (await entries.next()).value], [text(1), text(2)]);
    await assert.rejects(entries.next(), (error) => error instanceof Problem && error.status === 401 && error.code === 'UNAUTHORIZED');
  }, {reconnectMs: 20_000});
});

await check('the limit of reconnecting counts from the break, and the error has the last cause', async () => {
  await against((socket, request, number) => (number === 1 ? (stream(socket, text(1)), socket.end()) : reply(502, 'text/html')(socket)), async (teamster, {requests}) => {
    const entries = teamster.run('a').entries();
    await entries.next();
    await assert.rejects(entries.next(), (error) => error instanceof ConnectionLost && /for 0.5 s/.test(error.message) && /502/.test(error.cause.message));
    assert.ok(requests.length > 2);
  }, {reconnectMs: 500});
});

await check('a start whose response is cut is repeated with the same key', async () => {
  await against((socket, request, number) => (number === 1 ? socket.end(`${head(201, JSON_TYPE, 'Content-Length: 99\r\n')}{`) : reply(201, JSON_TYPE, VIEW)(socket)), async (teamster, {requests}) => {
    assert.equal((await teamster.start({provider: 'claude', prompt: 'x'})).id, 'a');
    const keys = requests.map((request) => /idempotency-key: (.+)/i.exec(request)[1]);
    assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
  });
});

await check('a delay that the server asks for is kept', async () => {
  const busy = (status, retryAfter, code) => {
    const body = code ? JSON.stringify({status, code, detail: code}) : '<html>';
    return reply(status, code ? 'application/problem+json' : 'text/html', body, `Retry-After: ${retryAfter}\r\n`);
  };
  // A number of seconds.
  for (const refused of [busy(503, 1, 'TOO_MANY_CONNECTIONS'), busy(429, 1)]) {
    for (const [call, then] of [[CALLS.start, reply(201, JSON_TYPE, VIEW)], [CALLS.entries, (socket) => stream(socket, text(1))]]) {
      await against((socket, request, number) => (number === 1 ? refused : then)(socket), async (teamster, {requests}) => {
        const begin = performance.now();
        await call(teamster);
        assert.ok(performance.now() - begin >= 990, `after ${performance.now() - begin} ms`);
        assert.equal(requests.length, 2);
      }, {reconnectMs: 20_000});
    }
  }
  // One that is longer than the limit is an error at once, and a date is read too.
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  for (const [retryAfter, least, most] of [['3600', 3_600_000, 3_600_000], [date, 3_590_000, 3_600_000], ['99999999999999999999', 1e22, Infinity]]) {
    await against(busy(503, retryAfter), async (teamster, {requests}) => {
      for (const call of [CALLS.start, CALLS.entries, CALLS.watch, CALLS.runs]) {
        await assert.rejects(call(teamster), ({status, retryAfterMs}) => status === 503 && retryAfterMs >= least && retryAfterMs <= most);
      }
      assert.equal(requests.length, 4);
    }, {reconnectMs: 20_000});
  }
  // None that is neither, or of another status.
  for (const [status, retryAfter] of [[503, 'soon'], [503, '-1'], [503, '1.5'], [502, '3600']]) {
    await against(busy(status, retryAfter), (teamster) => assert.rejects(teamster.runs(), (error) => error.status === status && error.retryAfterMs === undefined));
  }
});

await check('compressed responses are read', async () => {
  const body = gzipSync(VIEW).toString('latin1');
  const log = gzipSync(`data: ${JSON.stringify(done(1))}\n\n${END}`).toString('latin1');
  await against((socket, request) => {
    const [type, content] = request.includes('/events') ? ['text/event-stream', log] : [JSON_TYPE, body];
    socket.end(Buffer.from(head(200, type, `Content-Encoding: gzip\r\nContent-Length: ${content.length}\r\n`) + content, 'latin1'));
  }, async (teamster) => {
    assert.equal((await teamster.run('a').view()).runId, 'a');
    assert.equal((await teamster.run('a').result()).status, 'completed');
  });
});

await check('the parser takes every cut, line end and field', async () => {
  const entry = JSON.stringify({text: 'a\u2028b\u2029c\u0085d\u000b ü€😀'});
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = [': a comment', 'retry: 5', '', 'id: 1', 'event: text', `data: ${entry}`, 'unknown: x', 'event', '', 'data:one', 'data: two', '', 'event: empty', '', ''];
    const source = lines.join(end);
    const right = [{event: 'message', data: entry}, {event: 'message', data: 'one\ntwo'}];
    for (let cut = 0; cut <= source.length; cut++) {
      const parser = new SseParser();
      assert.deepEqual([...parser.push(source.slice(0, cut)), ...parser.push(''), ...parser.push(source.slice(cut))], right, `${JSON.stringify(end)} ${cut}`);
    }
    const parser = new SseParser();
    assert.deepEqual([...source].flatMap((character) => parser.push(character)), right);
  }
  await against((socket) => socket.write(`${head(200, 'text/event-stream')}\ufeffdata: ${JSON.stringify(text(1))}\n\n`), async (teamster) => {
    assert.deepEqual((await teamster.run('a').entries().next()).value, text(1));
  });
});

await check('a signal ends every wait, with its own reason', async () => {
  const reason = new Error('enough');
  for (const [name, call] of Object.entries({
    view: (teamster, signal) => teamster.run('a').view({signal}),
    start: (teamster, signal) => teamster.start({provider: 'claude', prompt: 'x'}, {signal}),
    entries: (teamster, signal) => teamster.run('a').entries({signal}).next(),
    result: (teamster, signal) => teamster.run('a').result({signal}),
    watch: (teamster, signal) => teamster.watch({signal}).next(),
    log: (teamster, signal) => teamster.agentLog('a', 1, {signal}),
  })) {
    // Already aborted: there is no request.
    await against(() => {}, async (teamster, {requests}) => {
      await assert.rejects(call(teamster, AbortSignal.abort(reason)), (error) => error === reason, name);
      assert.equal(requests.length, 0);
    });
    const silent = () => {};
    for (const respond of [silent, (socket) => socket.write(head(200, JSON_TYPE)), (socket) => socket.write(head(200, 'text/event-stream')), (socket) => socket.write(head(404, JSON_TYPE)), reply(502, '')]) {
      await against(respond, async (teamster, {requests, open}) => {
        const abort = new AbortController();
        const waits = call(teamster, abort.signal);
        waits.catch(() => {});
        await until('request', () => requests.length > 0);
        abort.abort(reason);
        await waits.then(() => assert.fail(name), (error) => assert.ok(error === reason || (respond !== silent && error instanceof TeamsterError), `${name}: ${error}`));
        await until('end of the connection', () => open.size === 0);
      }, {reconnectMs: 20_000});
    }
  }
});

await check('an iterator that is left closes its connection, and no other', async () => {
  await against((socket, request) => stream(socket, request.includes('/v1/events') ? {type: 'snapshot'} : text(1)), async (teamster, {open}) => {
    const run = teamster.run('a');
    const other = run.entries();
    assert.equal((await other.next()).value.seq, 1);
    for (const iterator of [run, teamster.session('a').entries(), teamster.watch()]) {
      for await (const entry of iterator) {
        assert.ok(entry);
        assert.equal(open.size, 2);
        break;
      }
      await until('end of the connection', () => open.size === 1);
    }
    await other.return();
    await until('end of the connection', () => open.size === 0);
  });
});

await check('leaving an iterator ends a pending next too', async () => {
  await against((socket, request) => (request.startsWith('POST') ? reply(201, JSON_TYPE, '{"runId": "a.1", "seq": 0}')(socket) : stream(socket, {seq: 1, type: 'text'})), async (teamster, {open}) => {
    const turn = await teamster.session('a').send('x');
    for (const iterator of [teamster.run('a').entries(), turn.entries(), teamster.watch(), teamster.run('a').entries({signal: new AbortController().signal})]) {
      await iterator.next();
      const pending = iterator.next();
      assert.deepEqual(await iterator.return(), {done: true, value: undefined});
      assert.deepEqual(await pending, {done: true, value: undefined});
      await until('end of the connection', () => open.size === 0);
    }
    // One that has not begun.
    const unused = teamster.run('a').entries();
    assert.equal((await unused.return()).done, true);
    assert.equal((await unused.next()).done, true);
  }, {silenceMs: 60_000});
});

await check('one signal ends any number of iterators, without a warning', async () => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning.name);
  process.on('warning', warn);
  await against((socket) => stream(socket, text(1)), async (teamster, {open}) => {
    const abort = new AbortController();
    const iterators = Array.from({length: 130}, () => teamster.run('a').entries({signal: abort.signal}));
    await Promise.all(iterators.map((iterator) => iterator.next()));
    assert.equal(open.size, 130);
    const pending = iterators.map((iterator) => iterator.next());
    abort.abort();
    for (const next of pending) await assert.rejects(next, {name: 'AbortError'});
    await until('end of the connections', () => open.size === 0);
  });
  process.off('warning', warn);
  assert.deepEqual(warnings, []);
});

await check('an iterator that is forgotten closes its connection', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  await against((socket) => stream(socket, text(1)), async (teamster, {open}) => {
    await (async () => { await teamster.run('a').entries({signal: new AbortController().signal}).next(); })();
    await until('end of the connection', () => {
      collect();
      return open.size === 0;
    });
  });
});

await check('what a request cannot carry is an error of the family, without secrets', async () => {
  const is = (error) => error instanceof TeamsterError && !/hunter2/.test(error.message);
  assert.throws(() => new Teamster({token: 'hunter2\nx'}), is);
  assert.throws(() => new Teamster({token: 'hunter2ü'}), is);
  assert.throws(() => new Teamster({url: 'http://me:hunter2@127.0.0.1:1'}), is);
  await against(reply(200, JSON_TYPE, VIEW), async (teamster, {url, requests}) => {
    // The last line of a file.
    await new Teamster({url, token: 'abc\n'}).run('a').view();
    assert.match(requests.at(-1), /authorization: Bearer abc\r\n/i);
    await new Teamster({url, token: ''}).run('a').view();
    assert.doesNotMatch(requests.at(-1), /authorization/i);
    const sent = requests.length;
    for (const idempotencyKey of ['', 'a\nb', 'ü']) await assert.rejects(teamster.start({provider: 'claude', prompt: 'x'}, {idempotencyKey}), is);
    for (const id of ['', '.', '..', '\ud800']) {
      await assert.rejects(async () => teamster.run(id).view(), is);
      await assert.rejects(async () => teamster.run(id).entries().next(), is);
      await assert.rejects(async () => teamster.session(id).end(), is);
      await assert.rejects(teamster.agentLog(id), is);
      await assert.rejects(teamster.answer(`${id}/1`, {decision: 'allow'}), is);
    }
    await assert.rejects(teamster.answer('1', {decision: 'allow'}), is);
    assert.equal(requests.length, sent);
    await teamster.run('a/b ü?').view();
    assert.match(requests.at(-1), /^GET \/v1\/runs\/a%2Fb%20%C3%BC%3F /);
  });
});
