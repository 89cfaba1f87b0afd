// The client for TypeScript as it is published, against a real server: .ci/clients installs it and runs this.

import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {readFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import {dirname, join} from 'node:path';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {PROGRAM, Server, check, until} from './server.mjs';

const installed = createRequire(join(process.env.CLIENT_MODULES, 'package.json')).resolve('@teamster-rs/client');
const {ConnectionLost, Problem, Teamster} = await import(pathToFileURL(installed));
const server = await Server.start();
const client = (more = {}) => new Teamster({url: server.url, token: server.token, ...more});
const here = {provider: 'claude', workingDirectory: server.work};

/// All entries of a run, which have to be whole.
async function all(run, then) {
  const entries = [];
  for await (const entry of run) {
    entries.push(entry);
    await then?.(entry);
  }
  assert.deepEqual(entries.map((entry) => entry.seq), entries.map((_, i) => i + 1));
  assert.equal(entries.at(-1).type, 'done');
  return entries;
}

const said = (entries) => entries.filter((entry) => entry.type === 'text').map((entry) => entry.text).join('');
const pieces = (number) => Array.from({length: number}, (_, i) => `piece ${i + 1}\n`).join('');

await check('a run is followed, answered and has a result', async () => {
  const run = await client().start({...here, prompt: 'ask'});
  const entries = await all(run, async (entry) => {
    if (entry.type === 'permission' && entry.decision === 'requested') await run.answer(entry.requestId, {decision: 'allow'});
  });
  assert.match(said(entries), /allowed/);
  assert.equal((await run.result()).status, 'completed');
  assert.deepEqual(await all(client().run(run.id)), entries);
  const rest = [];
  for await (const entry of run.entries({after: 3})) rest.push(entry.seq);
  assert.equal(rest[0], 4);
  for await (const entry of run.entries({after: entries.length})) assert.fail(JSON.stringify(entry));
});

await check('nothing is lost when the server is killed in the middle and started again', async () => {
  const run = await client().start({...here, prompt: 'count 60 0.05'});
  let back;
  const entries = await all(run, async (entry) => {
    if (entry.type !== 'text' || back) return;
    await server.kill();
    back = server.restart();
  });
  await back;
  assert.equal(said(entries), pieces(60));
});

await check('where no server is, every call fails at once', async () => {
  const closed = createServer();
  await new Promise((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const nothing = `http://127.0.0.1:${closed.address().port}`;
  await new Promise((resolve) => closed.close(resolve));
  for (const [url, why] of [[nothing, /ECONNREFUSED/], ['http://no-such-host.invalid', /ENOTFOUND|EAI_AGAIN/], ['nonsense', /Invalid URL/], ['http://127.0.0.1:9', /bad port/]]) {
    const wrong = client({url});
    for (const act of [() => wrong.start(here), () => wrong.runs(), () => wrong.run('x').view(), () => wrong.run('x').entries().next(), () => wrong.watch().next()]) {
      await assert.rejects(act, (error) => error instanceof ConnectionLost && why.test(error.message), `${url} ${act}`);
    }
  }
});

await check('an entry of 35 MB is parsed in time that is linear in its size', async () => {
  const {SseParser} = await import(pathToFileURL(join(dirname(installed), 'sse.js')));
  const parser = new SseParser();
  const piece = 'x'.repeat(16 << 10);
  assert.deepEqual(parser.push('id: 1\r\ndata: '), []);
  for (let i = 0; i < 2240; i++) parser.push(piece);
  const [event] = parser.push('\r\n\r\n');
  assert.deepEqual([event.event, event.data.length], ['message', 2240 * piece.length]);
});

await check('a key needs no secure context', async () => {
  const {randomUUID} = crypto;
  crypto.randomUUID = undefined;
  const run = await client().start({...here, prompt: 'echo'}).finally(() => { crypto.randomUUID = randomUUID; });
  assert.equal((await run.result()).status, 'completed');
});

await check('a reader that was slow loses no connection for that', async () => {
  const run = await client({reconnectMs: 1500}).start({...here, prompt: 'count 3 0.1'});
  let slow = false;
  await all(run, async (entry) => {
    if (entry.type !== 'text' || slow) return;
    slow = true;
    await server.kill();
    // Longer than the limit: what counts is when the break is noticed.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await server.restart();
  });
});

await check('a start during a restart starts one run', async () => {
  const before = (await client().runs()).runs.length;
  await server.kill();
  const starting = client().start({...here, prompt: 'echo'});
  await server.restart();
  assert.equal((await (await starting).result()).status, 'completed');
  assert.equal((await client().runs()).runs.length, before + 1);
});

await check('errors have their codes, and end what cannot go on', async () => {
  const is = (status, code) => (error) => error instanceof Problem && error.status === status && error.code === code;
  await assert.rejects(client({token: 'x'.repeat(20)}).runs(), is(401, 'UNAUTHORIZED'));
  await assert.rejects(all(client().run('00000000-0000-7000-8000-000000000000')), is(404, 'RUN_NOT_FOUND'));
  await assert.rejects(client().start({...here, prompt: ' '}), is(422, 'INVALID_PARAMS'));
  const run = await client().start({...here, prompt: 'ask'});
  const [request] = await until('request', async () => { const requests = await client().requests(); return requests.length > 0 && requests; });
  await client().answer(request.requestId, {decision: 'deny', reason: 'no'});
  await assert.rejects(client().answer(request.requestId, {decision: 'allow'}), (error) => error.status === 409 || error.status === 404);
  assert.match((await run.result()).text, /denied: no/);
  const lost = new Teamster({url: 'http://127.0.0.1:9', token: 'x', reconnectMs: 300});
  await assert.rejects(all(lost.run('x')), ConnectionLost);
});

await check('a token that is revoked ends the streams that have it', async () => {
  const {stdout} = spawnSync(PROGRAM, ['token', 'add', 'guest', '--scope', 'read'], {env: server.env, encoding: 'utf8'});
  const run = await client().start({...here, prompt: 'wait'});
  const entries = client({token: stdout}).run(run.id).entries();
  assert.equal((await entries.next()).value.seq, 1);
  assert.equal(spawnSync(PROGRAM, ['token', 'revoke', 'guest'], {env: server.env}).status, 0);
  await assert.rejects(async () => { for await (const entry of entries) assert.ok(entry); }, (error) => error instanceof Problem && error.status === 401);
  await run.cancel({kill: true});
});

await check('a loop that is left or aborted ends its stream', async () => {
  const run = await client().start({...here, prompt: 'wait'});
  for await (const entry of run) if (entry.type === 'text') break;
  const abort = new AbortController();
  await assert.rejects(async () => {
    for await (const entry of run.entries({signal: abort.signal})) if (entry.type === 'text') abort.abort();
  }, {name: 'AbortError'});
  assert.equal((await run.view()).state, 'running');
  await run.cancel();
  assert.equal((await run.result()).status, 'aborted');
});

await check('all runs are watched, over a restart too', async () => {
  const abort = new AbortController();
  const seen = [];
  const watching = (async () => {
    for await (const change of client().watch({signal: abort.signal})) seen.push(change);
  })();
  await until('snapshot', () => seen.some((change) => change.type === 'snapshot'));
  await server.kill();
  await server.restart();
  await until('second snapshot', () => seen.filter((change) => change.type === 'snapshot').length === 2);
  const run = await client().start({...here, prompt: 'echo'});
  await until('end', () => seen.some((change) => change.type === 'run' && change.run.runId === run.id && change.run.state === 'ended'));
  abort.abort();
  await assert.rejects(watching, {name: 'AbortError'});
});

await check('a session takes one prompt after the other, over a restart too', async () => {
  const session = await client().startSession({provider: 'claude', workingDirectory: server.work});
  const first = await session.send('count 40 0.05', {from: 'test'});
  let back;
  const entries = [];
  for await (const entry of first) {
    entries.push(entry);
    if (entry.type !== 'text' || back) continue;
    await server.kill();
    back = server.restart();
  }
  await back;
  assert.equal(said(entries), pieces(40));
  assert.deepEqual([entries.at(-1).type, entries.at(-1).runId], ['done', first.id]);
  const short = await session.send('count 10 0.05');
  const queued = await session.send('echo', {queue: true});
  assert.equal((await short.result()).status, 'completed');
  assert.equal((await queued.result()).finalMessage, 'echo');
  const second = await session.send('wait');
  await until('turn in progress', async () => (await session.view()).live?.state === 'running');
  await assert.rejects(session.send('more'), (error) => error.code === 'SESSION_BUSY');
  await session.steer('go on');
  assert.match((await second.result()).text, /heard: go on/);
  const third = await session.send('wait');
  for await (const entry of third) if (entry.type === 'text') break;
  await session.interrupt();
  assert.equal((await third.result()).status, 'aborted');
  await session.change({permission: 'accept-edits'});
  assert.equal((await (await session.send('echo')).result()).finalMessage, 'echo');
  assert.equal((await client().sessions()).length, 1);
  await session.end();
  const log = [];
  for await (const entry of session.entries()) log.push(entry);
  assert.deepEqual(log.map((entry) => entry.seq), log.map((_, i) => i + 1));
  assert.deepEqual(log.filter((entry) => entry.type === 'user:message').map((entry) => entry.from).slice(0, 1), ['test']);
});

await check('what a run has changed comes back', async () => {
  const git = (...args) => assert.equal(spawnSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-C', server.work, ...args]).status, 0);
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'first');
  const run = await client().start({...here, prompt: 'create', worktree: true, artifacts: ['*.txt']});
  assert.equal((await run.result()).workspace.filesChanged, 1);
  await until('end', async () => (await run.view()).state === 'ended');
  const diff = await run.diff();
  assert.deepEqual([diff.files[0].path, diff.insertions], ['large.txt', 48 << 10]);
  assert.deepEqual((await run.diff({paths: ['other', 'another']})).files, []);
  assert.equal((await run.diff({stat: true})).files[0].hunks, undefined);
  assert.deepEqual((await run.files()).files.map((file) => file.name), ['bundle', 'files/large.txt', 'patch']);
  const text = new TextDecoder();
  assert.equal(text.decode(await run.read('files/large.txt')), '0123456789abcde\n'.repeat(48 << 10));
  assert.match(text.decode(await run.read('patch')), /^diff --git a\/large.txt b\/large.txt\n/);
  await assert.rejects(run.read('files/none'), (error) => error.code === 'FILE_NOT_FOUND');
  assert.equal((await run.apply()).filesChanged, 1);
  await assert.rejects(run.apply(), (error) => error.code === 'CHANGES_CONFLICT');
  await run.discard();
  await assert.rejects(run.diff(), (error) => error.code === 'NO_WORKSPACE');
  const plain = await client().start({...here, prompt: 'count 1 0'});
  await assert.rejects(plain.diff(), (error) => error.code === 'NO_WORKSPACE');
});

await check('the rest of the API', async () => {
  assert.ok((await client().providers()).some((provider) => provider.id === 'claude'));
  assert.equal((await client().usage({by: 'model', since: '7d'})).by, 'model');
  assert.deepEqual((await client().limits()).limits, []);
  assert.ok((await client().history({agent: 'claude', limit: 1})).runs.length === 1);
  assert.deepEqual((await client().agents()).agents, []);
  await assert.rejects(client().command('x', 'stop'), (error) => error.code === 'AGENT_NOT_FOUND');
});

await check('the examples of its README', async () => {
  const readme = await readFile(new URL('../typescript/README.md', import.meta.url), 'utf8');
  const [example, ...others] = [...readme.matchAll(/```[jt]s\n([^]*?)```/g)].map((found) => found[1]);
  assert.ok(example.trim().split('\n').length <= 12);
  // The package is where it is installed, and the agent asks if it has its word.
  const code = example.replace('"@teamster-rs/client"', JSON.stringify(pathToFileURL(installed).href)).replace('http://127.0.0.1:7420', server.url).replace('Fix the failing test', 'ask');
  process.env.TEAMSTER_TOKEN = server.token;
  const lines = [];
  const {log} = console;
  console.log = (line) => lines.push(line);
  try {
    await import(`data:text/javascript,${encodeURIComponent(code)}`);
  } finally {
    console.log = log;
  }
  process.stdout.write('\n');
  assert.deepEqual(lines, ['completed']);
  /// What a block prints, with these variables.
  const printed = async (block, variables) => {
    const found = [];
    const scope = {console: {log: (...words) => found.push(words.join(' '))}, ...variables};
    const body = block.replace(/^import \{(.*)\} from .*$/m, 'const {$1} = client;');
    await new Function('client', ...Object.keys(scope), `return (async () => { ${body} })()`)(await import(pathToFileURL(installed)), ...Object.values(scope));
    return found;
  };
  const [session, errors, limits] = others;
  assert.equal(others.length, 3);
  assert.equal((await printed(session, {teamster: client()})).at(-1), 'And the docs?');
  // One call for each kind of error.
  const text = createServer((_, response) => response.end('hello'));
  await new Promise((resolve) => text.listen(0, '127.0.0.1', resolve));
  const other = `http://127.0.0.1:${text.address().port}`;
  for (const [teamster, right] of [[client(), /^RUN_NOT_FOUND 404 no /], [client({url: 'http://127.0.0.1:9'}), /^no server: /], [client({url: other}), /^not teamster serve: /], [client({url: ''}), /^no server: /]]) {
    const [line] = await printed(errors, {teamster, id: '00000000-0000-7000-8000-000000000000'});
    assert.match(line, right);
  }
  await assert.rejects(printed(errors, {teamster: client(), id: ''}), {name: 'TeamsterError'});
  text.close();
  const run = await client().start({...here, prompt: 'wait'});
  const waits = printed(limits, {url: server.url, token: server.token, id: run.id, setTimeout: (act) => setTimeout(act, 200)});
  assert.deepEqual(await waits, ['running', 'stopped waiting']);
  await run.cancel({kill: true});
});

await server.end();
