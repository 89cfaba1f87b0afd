// The page of `teamster serve` in a real browser. Each check names what it proves; .ci/page runs them.

import assert from 'node:assert/strict';
import {execFile, spawn} from 'node:child_process';
import {createServer} from 'node:http';
import {mkdir, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {promisify} from 'node:util';
import {browser, go, isClean, logOf, open, require, text} from './browser.mjs';
import {checkChanges} from './page-changes.mjs';
import {checkFleet} from './page-fleet.mjs';
import {checkForms} from './page-forms.mjs';
import {checkGoOn} from './page-go-on.mjs';
import {checkMarkdown} from './page-markdown.mjs';
import {checkNotifications} from './page-notifications.mjs';
import {checkSpeed} from './page-speed.mjs';
import {checkTerminal} from './page-terminal.mjs';
import {checkViews} from './page-views.mjs';
import {LIMIT, PROGRAM, Server, check, until} from './server.mjs';

async function prepare(folder) {
  await writeFile(join(folder, 'agents.config.json'), JSON.stringify({agents: [{id: 'triage', runtime: 'claude'}]}));
  await mkdir(join(folder, 'agents/triage'), {recursive: true});
  await writeFile(join(folder, 'agents/triage/CLAUDE.md'), 'triage\n');
  await writeFile(join(folder, 'agents/triage/.env'), 'AGENT_DEFAULT=fail\n');
}

const server = await Server.start({args: ['--agents', '../../agents.config.json'], prepare});
const chromium = await browser();

await check('a token in the fragment becomes a cookie that scripts cannot read, and leaves the address', async () => {
  const page = await open(chromium, server);
  assert.equal(new URL(page.url()).hash, '#/now');
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.value.includes(server.token)], [true, 'Strict', false]);
  const kept = await page.evaluate(() => JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, history.state]));
  assert.equal(kept, '["",{},{},null]');
  await page.reload();
  await page.waitForSelector('.calm:has-text("Nothing needs you")');
  isClean(page);
  // Without the cookie a token is asked for.
  await page.click('#help');
  await page.click('#logout');
  await page.waitForSelector('form.login');
  await page.fill('form.login input', 'not the token');
  await page.click('form.login button');
  await page.waitForSelector('form.login .error:not([hidden])');
  await page.fill('form.login input', server.token);
  await page.click('form.login button');
  await page.waitForSelector('.calm:has-text("Nothing needs you")');
  isClean(page, '401');
  await page.context().close();
});

await check('runs appear and end by themselves, over one stream for all tabs of a browser', async () => {
  const first = await open(chromium, server);
  let streams = 0;
  const opened = first.context();
  opened.on('request', (request) => { if (request.url().endsWith('/v1/events')) streams += 1; });
  const second = await opened.newPage();
  await second.goto(`${server.url}/`);
  await second.waitForSelector('.calm:has-text("Nothing needs you")');
  assert.equal(streams, 0);
  const id = await server.run('wait');
  for (const page of [first, second]) await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("running")`);
  // The tab with the stream is closed: another one opens it.
  await first.close();
  await until('stream of the other tab', () => streams === 1);
  await server.api(`/runs/${id}/cancel`, {});
  await second.waitForSelector(`a.run[href="#/run/${id}"]:has-text("cancelled")`);
  await opened.close();
});

await check('an answer at the width of a phone reaches the agent, and its run goes on to its end', async () => {
  const page = await open(chromium, server, {width: 390, height: 844});
  const id = await server.run('ask');
  await page.waitForSelector('.request');
  assert.equal(await page.title(), '(1) teamster');
  assert.equal(await page.getAttribute('link[rel=icon]', 'href'), 'page/icon-waiting.svg');
  const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width[0] <= width[1], `the page is ${width[0]} wide`);
  const button = await page.locator('.request .allow').boundingBox();
  assert.ok(button.height >= 40 && button.x + button.width <= 390, JSON.stringify(button));
  assert.equal(await text(page, '.calm span'), 'One request waits for you.');
  await page.click('.request .allow');
  const run = await server.reaches(id, 'ended');
  assert.deepEqual([run.status, run.result.finalMessage ?? run.result.text], ['completed', 'allowed']);
  await page.waitForSelector('.calm:has-text("Nothing needs you")');
  assert.equal(await page.title(), 'teamster');
  assert.equal(await page.locator('.request').count(), 0);
  isClean(page);
  await page.context().close();
});

await check('a denial with its reason reaches the agent, by the keyboard too', async () => {
  const page = await open(chromium, server);
  const denied = await server.run('ask');
  await page.waitForSelector('.request');
  await page.fill('.reason input', 'use cargo test');
  await page.press('.reason input', 'Enter');
  assert.match((await server.reaches(denied, 'ended')).result.text, /denied: use cargo test/);
  await page.waitForSelector('.request', {state: 'detached'});
  const other = await server.run('ask');
  await page.waitForSelector('.request');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  assert.equal((await server.reaches(other, 'ended')).result.finalMessage, 'allowed');
  await page.keyboard.press('3');
  await page.waitForSelector('main.cost');
  await page.keyboard.press('Escape');
  await page.waitForSelector('main.now');
  // One that was answered elsewhere goes by itself.
  const elsewhere = await server.run('ask');
  await page.waitForSelector(`.request[data-request="${elsewhere}/1"]`);
  await server.api(`/requests/${elsewhere}/1`, {decision: 'allow'});
  await page.waitForSelector('.request', {state: 'detached'});
  await server.reaches(elsewhere, 'ended');
  isClean(page, '/v1/limits');
  await page.context().close();
});

await check('a question of an MCP server is answered by its form', async () => {
  const page = await open(chromium, server, {width: 390, height: 844});
  const id = await server.run('question');
  await page.waitForSelector('.request .message:has-text("Which crate?")');
  // What is required is asked for by the browser.
  await page.click('.request .allow');
  assert.equal((await server.api(`/runs/${id}`)).state, 'waiting');
  await page.fill('.request input[type=text]', 'lighthouse');
  await page.fill('.request input[type=number]', '2');
  await page.selectOption('.request label:has-text("Kind") select', {label: 'bin'});
  await page.selectOption('.request label:has-text("Publish it") select', {label: 'Yes'});
  await page.click('.request .allow');
  const {result} = await server.reaches(id, 'ended');
  assert.deepEqual(JSON.parse(result.finalMessage ?? result.text).content, {name: 'lighthouse', count: 2, kind: 'bin', publish: true});
  isClean(page);
  await page.context().close();
});

await check('a run is started by the form, followed, and cancelled', async () => {
  const page = await open(chromium, server);
  await page.keyboard.press('c');
  await page.waitForSelector('option[value=claude]', {state: 'attached'});
  await page.selectOption('select[name=provider]', 'claude');
  await page.fill('textarea', 'wait for nothing');
  await page.fill('input[name=directory]', server.work);
  await page.click('form.start .primary');
  await page.waitForSelector('main.run .card.text:has-text("I wait for something.")');
  const id = new URL(page.url()).hash.split('/').pop();
  assert.equal((await server.api(`/runs/${id}`)).directory, server.work);
  await page.click('.run-head button:has-text("Cancel")');
  assert.equal((await server.reaches(id, 'ended')).status, 'aborted');
  await page.waitForSelector('.run-head .condition:has-text("cancelled")');
  await page.waitForSelector('.card.done:has-text("Cancelled")');
  assert.equal(await page.locator('.run-head .actions button:visible').count(), 0);
  // What cannot be started is explained in the form.
  await go(page, '#/new');
  await page.waitForSelector('option[value=claude]', {state: 'attached'});
  await page.fill('textarea', 'x');
  await page.fill('input[name=directory]', '/does/not/exist');
  await page.click('form.start .primary');
  await page.waitForSelector('form.start .error:has-text("/does/not/exist")');
  isClean(page, '422');
  await page.context().close();
});

await check('a run whose process does not answer is shown so, until it answers again', async () => {
  const page = await open(chromium, server);
  const id = await server.run('wait');
  await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("running")`);
  const {pid} = JSON.parse(await readFile(join(server.folder, 'state/teamster/runs', id, 'lock'), 'utf8'));
  process.kill(pid, 'SIGSTOP');
  try {
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("does not answer (pid ${pid})")`);
    assert.equal(await text(page, '.calm span'), 'One run does not answer.');
    await go(page, `#/run/${id}`);
    await page.waitForSelector(`.run-head .condition:has-text("does not answer (pid ${pid})")`);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await page.waitForSelector('.run-head .condition:has-text("running")');
  await server.api(`/runs/${id}/cancel`, {});
  await server.reaches(id, 'ended');
  isClean(page);
  await page.context().close();
});

await check('a page catches up after its server was killed in the middle of a run, without loss or repetition', async () => {
  const page = await open(chromium, server);
  const other = await open(chromium, server);
  const id = await server.run('count 150 0.06');
  await go(page, `#/run/${id}`);
  await page.waitForSelector('.log:has-text("piece 5")');
  await server.kill();
  await page.waitForSelector('#lost:not([hidden])');
  assert.match(await text(page, '.run-head .condition'), /cannot know/);
  await other.waitForSelector('.calm:has-text("Cannot know: no connection")');
  await server.restart();
  await page.waitForSelector('#lost', {state: 'hidden'});
  await other.waitForSelector('.calm:has-text("Nothing needs you.")');
  // It goes on with the run, which is still at work.
  await page.waitForSelector('.run-head .condition:has-text("running")');
  await page.waitForSelector('.card.done:has-text("Completed")');
  const shown = await logOf(page);
  const pieces = [...shown.matchAll(/piece (\d+)/g)].map((match) => Number(match[1]));
  assert.deepEqual(pieces, Array.from({length: 150}, (_, i) => i + 1));
  isClean(page, 'ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING', 'ERR_EMPTY_RESPONSE');
  await page.context().close();
  await other.context().close();
});

await check('a page connects again after an error of a proxy', async () => {
  const page = await open(chromium, server);
  let errors = 0;
  await page.route('**/v1/events', (route) => (errors++ < 2 ? route.fulfill({status: 502, body: 'Bad Gateway'}) : route.continue()));
  await page.reload();
  await page.waitForSelector('.calm:has-text("Nothing needs you.")');
  const id = await server.run('echo');
  await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("completed")`);
  assert.ok(errors > 2, `${errors} requests`);
  isClean(page, '502');
  await page.context().close();
});

await check('older runs are those of the history too, with what is known of them', async () => {
  // A run that was attached to a terminal has a row in the history and no log.
  await promisify(execFile)(PROGRAM, ['run', 'claude', 'echo attached', '--stdin', 'ignore', '--cwd', server.work], {env: server.env});
  const [record] = (await server.api('/history?limit=1')).runs;
  const page = await open(chromium, server);
  assert.equal(await page.locator(`a.run[href="#/run/${record.runId}"]`).count(), 0);
  await page.click('button:has-text("Older runs")');
  await page.waitForSelector(`a.run[href="#/run/${record.runId}"]`);
  // They stay while there is a search, and after it.
  await page.keyboard.press('/');
  await page.fill('.search [name=text]', 'no such words');
  await page.waitForSelector('.empty:has-text("No run matches.")');
  await page.click('button:has-text("Show all")');
  await page.waitForSelector('.search', {state: 'detached'});
  await page.click(`a.run[href="#/run/${record.runId}"]`);
  await page.waitForSelector('main.run .empty:has-text("There is no log of this run")');
  await page.waitForSelector('main.run .asked .card.user:has-text("echo attached")');
  await page.waitForSelector('.facts:has-text("$0.0421")');
  isClean(page, '404');
  await page.context().close();
});

await check('a quiet run may wait, and one that asks does wait', async () => {
  const page = await open(chromium, server);
  const id = await server.run('wait');
  await page.waitForSelector('a.run:has-text("running")');
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 600_000;
  });
  await page.waitForSelector('a.run:has-text("may wait: quiet for 10 min")');
  await page.waitForSelector('.calm:has-text("One run may wait for something.")');
  await server.api(`/runs/${id}/cancel`, {kill: true});
  await page.waitForSelector('.calm:has-text("Nothing needs you.")');
  await page.context().close();
});

await check('text of an agent is inert, wherever it is shown', async () => {
  const page = await open(chromium, server);
  const id = await server.run('hostile');
  await page.waitForSelector('.request');
  await page.evaluate(() => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
  await go(page, `#/run/${id}`);
  await page.waitForSelector('main.run .request');
  await page.evaluate(() => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
  await page.click('.request .allow');
  await page.waitForSelector('.card.done');
  const found = await page.evaluate(() => ({
    hacked: window.hacked,
    elements: document.querySelectorAll('main img, main script, main iframe, main a[href^=javascript], main [onerror], main [onload]').length,
    shown: document.querySelector('.log').textContent.split('<script>window.hacked=2').length,
    plan: document.querySelector('.plan').textContent.includes('onerror='),
    files: document.querySelector('.files').textContent.includes('<script>'),
  }));
  assert.deepEqual({...found, shown: found.shown > 6}, {hacked: undefined, elements: 0, shown: true, plan: true, files: true});
  isClean(page);
  await page.context().close();
});

await check('what cannot be seen in a command is marked on the card that asks for it, in prose only what disguises', async () => {
  const page = await open(chromium, server, {width: 390, height: 844});
  const id = await server.run('disguise');
  await page.waitForSelector('.request .warning');
  assert.equal(
    await text(page, '.request .subject'),
    'cat U+202Etxt.ssapU+202C U+2066# U+2069U+200BnotesU+00A0xU+001B[8mU+000D; rm -r U+E0041',
  );
  assert.match(await text(page, '.request .whole'), /reU\+200DadU\+202E it/);
  await page.click('.request .deny');
  await server.reaches(id, 'ended');
  const shown = await page.evaluate(async () => {
    const {h, marked} = await import('/page/dom.js');
    const prose = 'می\u200cخواهم \u2764\ufe0f 1\u2009km re\u200dad\u202e it\r\n';
    // A call has room for fewer arguments than these are nodes.
    const many = h('pre', '\u200b'.repeat(200_000));
    return [h('p', prose).textContent, marked('a\u202eb'), many.childNodes.length];
  });
  assert.deepEqual(shown, ['می\u200cخواهم \u2764\ufe0f 1\u2009km reU+200DadU+202E it\r\n', 'a[U+202E]b', 200_000]);
  isClean(page);
  await page.context().close();
});

await check('a page of another origin can read nothing and change nothing', async () => {
  const id = await server.run('wait');
  const run = `${server.url}/v1/runs/${id}`;
  const hostile = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end('<!doctype html><title>hostile</title><body>');
  });
  await new Promise((resolve) => hostile.listen(0, '127.0.0.1', resolve));
  const {port} = hostile.address();
  // The other port is the same site, so that the cookie goes with its requests; the other name is not.
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const page = await open(chromium, server);
    const other = await page.context().newPage();
    await other.goto(origin);
    const read = await other.evaluate(async ({run, url}) => {
      const got = [];
      const attempt = async (name, act) => {
        try {
          const value = await act();
          if (value !== undefined) got.push(`${name}: ${value}`);
        } catch {
          // Refused by the browser.
        }
      };
      await attempt('read', async () => (await fetch(run, {credentials: 'include'})).text());
      await attempt('opaque', async () => (await (await fetch(run, {credentials: 'include', mode: 'no-cors'})).text()) || undefined);
      for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
        for (const mode of ['cors', 'no-cors']) {
          await attempt(`cancel ${type}`, async () => {
            const response = await fetch(`${run}/cancel`, {method: 'POST', credentials: 'include', mode, headers: {'Content-Type': type}, body: '{"kill": true}'});
            return response.type === 'opaque' ? undefined : response.status;
          });
        }
      }
      await attempt('start', async () => (await fetch(`${url}/v1/runs`, {method: 'POST', credentials: 'include', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: '{"provider": "claude", "prompt": "hacked"}'})).status || undefined);
      await attempt('stream', () => new Promise((resolve, reject) => {
        const source = new EventSource(`${url}/v1/events`, {withCredentials: true});
        source.onmessage = (event) => resolve(event.data);
        source.onerror = reject;
      }));
      await attempt('script', () => new Promise((resolve, reject) => {
        const script = document.createElement('script');
        script.src = run;
        script.onload = () => resolve('loaded');
        script.onerror = reject;
        document.body.append(script);
      }));
      await attempt('frame', () => new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.src = `${url}/`;
        frame.onload = () => {
          try {
            resolve(frame.contentDocument?.title || undefined);
          } catch {
            resolve(undefined);
          }
        };
        document.body.append(frame);
      }));
      return got;
    }, {run, url: server.url});
    assert.deepEqual(read, [], origin);
    // The frame shows an error of the browser, not the page.
    const framed = other.frames().filter((frame) => frame !== other.mainFrame());
    for (const frame of framed) assert.equal(await frame.locator('.bar').count(), 0);
    // A form leads away from the hostile page, with the cookie of the same site, and is refused all the same.
    const posted = other.waitForResponse((response) => response.url().endsWith('/cancel'));
    await other.evaluate((run) => {
      const form = document.createElement('form');
      form.method = 'POST';
      form.action = `${run}/cancel`;
      document.body.append(form);
      form.submit();
    }, run);
    assert.equal((await posted).status(), 403);
    await page.context().close();
  }
  const {state} = await server.api(`/runs/${id}`);
  assert.equal(state, 'running');
  const {runs} = await server.api('/runs?state=running');
  assert.equal(runs.length, 1);
  await server.api(`/runs/${id}/cancel`, {kill: true});
  hostile.closeAllConnections();
  hostile.close();
  const policy = (await fetch(`${server.url}/`)).headers.get('content-security-policy');
  assert.match(policy, /^default-src 'self';.*frame-ancestors 'none'/);
});

await check('agents are started, woken and stopped, and show why they failed', async () => {
  const page = await open(chromium, server, {hash: '#/agents'});
  await page.waitForSelector('.empty:has-text("teamster supervise")');
  // As root, Claude's permissions are bypassed only where the machine is said to be a sandbox.
  const supervisor = spawn(PROGRAM, ['supervise', join(server.folder, 'agents.config.json')], {cwd: server.folder, env: {...server.env, IS_SANDBOX: '1'}, stdio: 'ignore'});
  try {
    await page.waitForSelector('.card.agent .failure:has-text("Invalid API key")');
    await page.waitForSelector('.calm:has-text("1 of 1 needs a look.")');
    const tick = async () => (await server.api('/agents')).agents[0].lastTick?.tick ?? 0;
    const before = await tick();
    await page.click('[data-command=wake]');
    await until('tick of the woken agent', async () => (await tick()) > before);
    await page.click('.logbox summary');
    await page.waitForSelector('.logfile:has-text("agent-loop start")');
    await page.click('[data-command=stop]');
    await page.waitForSelector('.card.agent .condition:has-text("stopped")');
    await page.click('[data-command=start]');
    await page.waitForSelector('.card.agent [data-command=stop]:visible');
  } finally {
    const gone = new Promise((resolve) => supervisor.once('exit', resolve));
    supervisor.kill('SIGTERM');
    await gone;
  }
  isClean(page);
  await page.context().close();
});

await check('no view has a fault of accessibility that axe finds', async () => {
  const axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
  const faults = (page) => page.evaluate(async () => (await window.axe.run()).violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`));
  const waiting = await server.run('story');
  await server.reaches(waiting, 'waiting');
  for (const form of [{width: 390, height: 844}, {dark: true}]) {
    const page = await open(chromium, server, form);
    await page.evaluate(axe);
    for (const [hash, selector] of [['#/now', '.request'], [`#/run/${waiting}`, '.request'], ['#/agents', '.card.agent'], ['#/cost', '.limits li'], ['#/new', 'option[value=claude]']]) {
      await go(page, hash);
      await page.waitForSelector(selector, {state: 'attached'});
      assert.deepEqual(await faults(page), [], hash);
    }
    for (const [opener, dialog] of [['#help', '#keys'], ['#notify', '#notifications']]) {
      await page.click(opener);
      await page.waitForSelector(`${dialog}[open] button`);
      assert.deepEqual(await faults(page), [], dialog);
      await page.click(`${dialog} button:has-text("Close")`);
    }
    await page.context().close();
  }
  await server.api(`/runs/${waiting}/cancel`, {kill: true});
});

await check('a session is started by the form, and takes prompts, steering and interruption', async () => {
  const page = await open(chromium, server);
  await go(page, '#/new');
  await page.waitForSelector('option[value=claude]', {state: 'attached'});
  await page.selectOption('select[name=provider]', 'claude');
  await page.fill('textarea', 'echo');
  await page.fill('input[name=directory]', server.work);
  await page.check('input[name=session]');
  await page.click('form.start .primary');
  await page.waitForSelector('main.run .card.done');
  const id = new URL(page.url()).hash.split('/').pop();
  await page.waitForSelector('.run-head .condition:has-text("waits for a prompt")');
  await page.fill('.composer textarea', 'wait');
  await page.click('.composer button:has-text("Send")');
  await page.waitForSelector('.log .card.text:has-text("I wait for something.")');
  await page.waitForSelector('.run-head .condition:has-text("running")');
  await page.fill('.composer textarea', 'go on');
  await page.click('.composer button:has-text("Say meanwhile")');
  await page.waitForSelector('.log .card.text:has-text("heard: go on")');
  await page.waitForSelector('.composer button:has-text("Send")');
  await page.fill('.composer textarea', 'wait again');
  await page.press('.composer textarea', 'Control+Enter');
  await page.click('.composer button:has-text("Interrupt"):visible');
  await page.waitForSelector('.card.done:has-text("Cancelled")');
  await page.waitForSelector('.run-head .condition:has-text("waits for a prompt")');
  await go(page, '#/now');
  await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("waits for a prompt")`);
  await page.waitForSelector('.calm:has-text("Nothing needs you.")');
  await go(page, `#/run/${id}`);
  await page.click('.run-head button:has-text("End session")');
  await server.reaches(id, 'ended');
  await page.waitForSelector('.say .composer', {state: 'detached'});
  isClean(page);
  await page.context().close();
});

await checkForms(chromium, server);
await checkGoOn(chromium, server);
await checkMarkdown(chromium, server);
await checkTerminal(chromium, server);
await checkViews(chromium, server);

await checkNotifications(chromium, server);
await checkChanges(chromium, server);
await checkFleet(chromium, server);
await checkSpeed(chromium, server);

await chromium.close();
await server.end();
console.log(`all of it is well; no wait was longer than ${LIMIT / 1000} s`);
