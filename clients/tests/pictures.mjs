// Makes the pictures of docs/page.md: each view in light and dark, and both at the width of a phone. What they show is made
// up, but it goes through the real program.

import {execFileSync, spawn} from 'node:child_process';
import {mkdir, writeFile} from 'node:fs/promises';
import {dirname, join} from 'node:path';
import {browser, open} from './browser.mjs';
import {RETRY, diffOf, openPart, opened} from './page-changes.mjs';
import {status} from './page-fleet.mjs';
import {PROGRAM, Server, until} from './server.mjs';

const out = process.argv[2] ?? join(import.meta.dirname, '../../docs/images');
const AGENTS = [
  {id: 'triage', role: 'Labels new issues', prompt: 'tick'},
  {id: 'nightly', role: 'Updates dependencies', prompt: 'tick'},
  {id: 'docs', role: 'Keeps the docs true', prompt: 'fail'},
];

async function prepare(folder) {
  await writeFile(join(folder, 'agents.config.json'), JSON.stringify({agents: AGENTS.map(({id, role}) => ({id, role, runtime: 'claude'}))}));
  for (const {id, prompt} of AGENTS) {
    await mkdir(join(folder, 'agents', id), {recursive: true});
    await writeFile(join(folder, 'agents', id, 'CLAUDE.md'), `${id}\n`);
    await writeFile(join(folder, 'agents', id, '.env'), `AGENT_DEFAULT=${prompt}\nMIN_SLEEP=600\nIDLE_STEP=600\n`);
  }
  // Usage of the last days, as the CLIs leave it.
  const models = [['claude-opus-4-8', 40, 1], ['claude-sonnet-4-5', 90, 0.9], ['claude-haiku-4-5-20251001', 120, 0.6]];
  const lines = [];
  for (let day = 26; day >= 0; day--) {
    const at = Date.now() - day * 86_400_000;
    if (new Date(at).getUTCDay() === 0) continue;
    models.forEach(([model, size, share], which) => {
      const number = 3 + ((day * 7 + which * 5) % 6);
      if ((day + which) % 9 === 0) return;
      for (let i = 0; i < number; i++) {
        const usage = {input_tokens: size * 40 + i * 90, output_tokens: Math.round(size * 14 * share), cache_read_input_tokens: 52_000 + day * 900, cache_creation_input_tokens: 5200};
        lines.push(JSON.stringify({type: 'assistant', timestamp: new Date(at - i * 60_000).toISOString(), sessionId: `00000000-0000-4000-8000-0000000000${10 + day}`, cwd: '/home/ada/code/lighthouse', version: '2.1.330', uuid: `u${day}-${which}-${i}`, requestId: `req_${day}_${which}_${i}`,
          message: {id: `msg_01${String(day).padStart(2, '0')}${which}${String(i).padStart(18, 'A')}`, type: 'message', role: 'assistant', model, content: [], usage}}));
      }
    });
  }
  await mkdir(join(folder, '.claude/projects/lighthouse'), {recursive: true});
  await writeFile(join(folder, '.claude/projects/lighthouse/a.jsonl'), `${lines.join('\n')}\n`);
  const now = new Date();
  const today = now.toISOString().slice(0, 10).replaceAll('-', '/');
  await mkdir(join(folder, '.codex/sessions', today), {recursive: true});
  const seconds = Math.floor(now / 1000);
  const limits = {primary: {used_percent: 34, window_minutes: 300, resets_at: seconds + 8040}, secondary: {used_percent: 78, window_minutes: 10080, resets_at: seconds + 190_000}};
  await writeFile(join(folder, '.codex/sessions', today, 'rollout-1.jsonl'), `${JSON.stringify({timestamp: now.toISOString(), type: 'event_msg', payload: {type: 'token_count', info: null, rate_limits: limits}})}\n`);
}

const server = await Server.start({args: ['--agents', '../../agents.config.json', '--web-push'], prepare, env: {AGENT_PACE: '0.08'}});
const supervisor = spawn(PROGRAM, ['supervise', join(server.folder, 'agents.config.json')], {cwd: server.folder, env: {...server.env, AGENT_PACE: '0', IS_SANDBOX: '1'}, stdio: ['ignore', 'ignore', 'ignore']});
const chromium = await browser();
try {
  await until('ticks of all agents', async () => (await server.api('/agents')).agents.every((agent) => agent.lastTick));
  const jobs = {};
  const make = async (name, prompt, state, more) => {
    jobs[name] = await server.run(prompt, more);
    await server.reaches(jobs[name], state);
  };
  await make('failed', 'fail', 'ended', {title: 'Update the lock file'});
  await make('first', 'story', 'waiting', {model: 'opus', title: 'Read dates in Retry-After'});
  await server.api(`/requests/${jobs.first}/1`, {decision: 'allow'});
  await server.reaches(jobs.first, 'ended');
  await make('small', 'echo Which crate reads HTTP dates?', 'ended', {permission: 'read-only'});

  const shoot = async (page, name) => {
    await page.waitForTimeout(350);
    const path = join(out, `${name}.png`);
    await page.screenshot({path});
    execFileSync('pngquant', ['--force', '--strip', '--speed', '1', '--output', path, '128', path]);
  };
  const phone = {width: 390, height: 844, scale: 2};
  const forms = [['light', {}], ['dark', {dark: true}], ['phone', phone], ['phone-dark', {...phone, dark: true}]];
  const views = [
    ['agents', '#/agents', '.card.agent'],
    ['cost', '#/cost', '.chart'],
    ['new', '#/new', 'option[value=claude]'],
  ];
  const found = [
    ['text', () => `#/run/${jobs.text}`, '.card.done'],
    ['search', '#/now?text=opus&state=completed', '.search'],
  ];
  const busy = [
    ['now', '#/now', '.request'],
    ['run', () => `#/run/${jobs.waiting}`, '.request'],
  ];
  const fleet = [['fleet', '#/fleet', '.card.worker']];
  const all = async (views, arrange = async () => {}) => {
    for (const [form, options] of forms) {
      const page = await open(chromium, server, options);
      await arrange(page);
      for (const [name, hash, selector] of views) {
        await page.evaluate((hash) => { location.hash = hash; }, typeof hash === 'string' ? hash : hash());
        await page.waitForSelector(selector, {state: 'attached'});
        await shoot(page, `${name}-${form}`);
      }
      if (page.faults.length > 0) throw new Error(page.faults.join('\n'));
      await page.context().close();
    }
  };
  await mkdir(out, {recursive: true});
  await all(views);
  await make('text', 'markdown', 'ended', {model: 'opus', title: 'Explain the retry policy'});
  await all(found);
  // What a run has left is made up.
  for (const [form, options] of forms) {
    const page = await opened(chromium, server, jobs.first, diffOf(RETRY), options);
    await openPart(page);
    await page.locator('.hunks .added:has-text("match value")').click({position: {x: 10, y: 5}});
    await page.fill('form.comment textarea', 'An HTTP date is missing here.');
    await shoot(page, `comment-${form}`);
    await page.context().close();
  }
  await all(fleet, async (page) => {
    await page.context().route('**/v1/fleet', (route) => route.fulfill({json: status()}));
    await page.reload();
  });
  await make('quiet', 'wait', 'running', {model: 'sonnet', title: 'Watch the nightly build'});
  await make('waiting', 'story', 'waiting', {model: 'opus', title: 'Read dates in Retry-After'});
  await all(busy);
  for (const [form, options] of forms) {
    const page = await open(chromium, server, options);
    await page.click('#notify');
    await page.waitForSelector('#notifications:has-text("encrypted")');
    await shoot(page, `bell-${form}`);
    await page.context().close();
  }
} finally {
  await chromium.close();
  supervisor.kill('SIGTERM');
  await new Promise((resolve) => supervisor.once('exit', resolve));
  await server.end();
}
