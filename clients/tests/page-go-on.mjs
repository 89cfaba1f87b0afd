// How a person goes on from what is shown: comments on lines, stop and change, search, and completion in the form.

import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {go, isClean, open, require, text} from './browser.mjs';
import {RETRY, deleted, diffOf, file, hunk, openPart, opened} from './page-changes.mjs';
import {check} from './server.mjs';

const shown = (page) => page.locator('a.run:visible').evaluateAll((all) => all.map((one) => one.getAttribute('href').slice('#/run/'.length)));

export async function checkGoOn(chromium, server) {
  await check('comments on lines of a diff are the next prompt in the session of the run', async () => {
    const id = await server.run('echo first');
    const {sessionId} = await server.reaches(id, 'ended');
    const page = await opened(chromium, server, id, diffOf(RETRY, file('deleted', 'old.rs', [hunk(3, 0, [deleted('gone')])])));
    await openPart(page);
    const retry = page.locator('.file:has(h3:has-text("src/retry.rs"))');
    // The number of a line begins a comment on it, its text does not.
    const line = retry.locator('.added:has-text("match value")');
    await line.click({position: {x: 120, y: 5}});
    assert.equal(await page.locator('form.comment').count(), 0);
    await line.click({position: {x: 10, y: 5}});
    assert.equal(await page.inputValue('form.comment input'), '10');
    await page.fill('form.comment textarea', 'Use let else here.');
    await page.click('form.comment .primary');
    await page.waitForSelector('.comment:has-text("The comment on line 10 is in the next prompt.")');
    // By the keyboard, the button begins one, and the line can be changed.
    await retry.locator('button:has-text("Comment on a line")').focus();
    await page.keyboard.press('Enter');
    await page.fill('form.comment:has(textarea) input', '114');
    await page.fill('form.comment textarea', 'Why?');
    await page.press('form.comment textarea', 'Control+Enter');
    // Without a number there is no place.
    await retry.locator('button:has-text("Comment on a line")').click();
    await page.fill('form.comment:has(textarea) input', '');
    await page.fill('form.comment textarea', 'Where?');
    await page.click('form.comment .primary');
    assert.equal(await page.locator('form.comment textarea').count(), 1);
    await page.click('form.comment button:has-text("Cancel")');
    // Side by side, an unchanged line has two numbers.
    await page.check('.split input');
    const sides = retry.locator('.pair:has-text("let a = 1;") > *');
    for (const [side, words] of [[0, 'Left.'], [1, 'Right.']]) {
      await sides.nth(side).click({position: {x: 10, y: 5}});
      await page.fill('form.comment textarea', words);
      await page.press('form.comment textarea', 'Control+Enter');
    }
    await page.uncheck('.split input');
    const old = page.locator('.file:has(h3:has-text("old.rs"))');
    await old.locator('.deleted').click({position: {x: 10, y: 5}});
    await old.locator('textarea').fill('Keep it.');
    await old.locator('.primary').click();
    await old.locator('button:has-text("Show it")').click();
    const prompt = 'src/retry.rs, line 10:\n> +    match value {\nUse let else here.\n\nsrc/retry.rs, line 114:\n> +let b = 2;\nWhy?\n\nsrc/retry.rs, old line 112:\n>  let a = 1;\nLeft.\n\nsrc/retry.rs, line 113:\n>  let a = 1;\nRight.\n\nold.rs, old line 3:\n> -gone\nKeep it.';
    assert.equal(await page.inputValue('.follow textarea'), prompt);
    assert.equal(await page.evaluate(() => document.activeElement.closest('.follow') !== null), true);
    await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
    const faults = await page.evaluate(async () => (await window.axe.run()).violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`));
    assert.deepEqual(faults, []);
    const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
    await page.press('.follow textarea', 'Control+Enter');
    const body = (await asked).postDataJSON();
    assert.deepEqual([body.prompt, body.sessionId], [prompt, sessionId]);
    await page.waitForFunction((id) => !location.hash.endsWith(id), id);
    await page.waitForSelector('.card.done:has-text("Completed")');
    isClean(page);
    await page.context().close();
  });

  await check('a run is stopped and changed: the form has its prompt once it has ended', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const id = await server.run('wait', {model: 'opus'});
    await go(page, `#/run/${id}`);
    await page.click('.follow button:has-text("Stop and change")');
    await page.waitForSelector('form.start');
    assert.equal((await server.api(`/runs/${id}`)).status, 'aborted');
    await page.waitForFunction(() => document.querySelector('textarea[name=prompt]').value === 'wait');
    assert.equal(await page.inputValue('input[name=model]'), 'opus');
    // The stream may report the end before the request returns.
    const second = await server.run('wait', {model: 'opus'});
    await go(page, `#/run/${second}`);
    await page.route('**/cancel', async (route) => {
      const response = await route.fetch();
      await page.waitForSelector('.follow a:has-text("New run like this")');
      await route.fulfill({response});
    });
    await page.click('.follow button:has-text("Stop and change")');
    await page.waitForSelector('form.start');
    await page.waitForFunction(() => document.querySelector('textarea[name=prompt]').value === 'wait');
    assert.equal(new URL(page.url()).hash, `#/new/${second}`);
    isClean(page);
    await page.context().close();
  });

  await check('runs are found by text, agent, directory and state, and the address has what is searched for', async () => {
    const failed = await server.run('fail', {model: 'haiku'});
    const live = await server.run('wait', {model: 'sonnet'});
    const done = await server.run('echo yes', {model: 'haiku'});
    await server.reaches(failed, 'ended');
    await server.reaches(done, 'ended');
    const page = await open(chromium, server, {width: 390, height: 844});
    const among = async (...ids) => (await shown(page)).filter((id) => ids.includes(id));
    await page.waitForSelector(`a.run[href="#/run/${live}"]`);
    await page.keyboard.press('/');
    await page.waitForSelector('.search');
    assert.equal(await page.evaluate(() => document.activeElement.name), 'text');
    await page.keyboard.type('HAIKU');
    await page.waitForSelector(`a.run[href="#/run/${live}"]`, {state: 'detached'});
    assert.deepEqual(await among(failed, live, done), [done, failed]);
    await page.selectOption('.search [name=state]', 'failed');
    assert.deepEqual(await among(failed, live, done), [failed]);
    assert.equal(new URL(page.url()).hash, '#/now?text=HAIKU&state=failed');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
    const faults = await page.evaluate(async () => (await window.axe.run()).violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`));
    assert.deepEqual(faults, []);
    await page.reload();
    await page.waitForSelector('.search');
    assert.deepEqual([await page.inputValue('.search [name=text]'), await page.inputValue('.search [name=state]')], ['HAIKU', 'failed']);
    assert.deepEqual(await among(failed, live, done), [failed]);
    await page.fill('.search [name=text]', 'no such words');
    await page.waitForSelector('.empty:has-text("No run matches.")');
    await page.press('.search [name=text]', 'Escape');
    await page.waitForSelector('.search', {state: 'detached'});
    assert.equal(new URL(page.url()).hash, '#/now');
    await page.waitForSelector(`a.run[href="#/run/${live}"]`);
    // The server finds what only a prompt has, and what is not shown.
    const hidden = await server.run('echo first line\nthe needle', {model: 'opus'});
    await server.reaches(hidden, 'ended');
    await go(page, '#/now?text=needle');
    await page.waitForSelector('.empty:has-text("No run matches.")');
    const asked_ = page.waitForRequest((request) => request.url().includes('/v1/runs?') && request.url().includes('prompts=true'));
    await page.check('.search [name=prompts]');
    const query = new URL((await asked_).url()).searchParams;
    assert.deepEqual([query.get('text'), query.get('agent')], ['needle', null]);
    await page.waitForSelector(`a.run[href="#/run/${hidden}"]`);
    assert.deepEqual(await shown(page), [hidden]);
    assert.equal(new URL(page.url()).hash, '#/now?text=needle&prompts=true');
    // A run ends, and is in the list of its state.
    await go(page, '#/now?state=live&agent=claude');
    await page.waitForSelector('.search');
    assert.deepEqual(await among(failed, live, done), [live]);
    await server.api(`/runs/${live}/cancel`, {});
    await page.waitForSelector(`a.run[href="#/run/${live}"]`, {state: 'detached'});
    const found = await page.evaluate(async () => {
      const {matching} = await import('/page/search.js');
      const run = {runId: 'r', provider: 'codex', directory: '/home/ada/code', state: 'ended', status: 'timed_out', title: 'Fix the parser', error: {message: 'time is over'}};
      return [{text: 'parser fix'}, {text: 'over'}, {text: 'fix lexer'}, {agent: 'codex'}, {agent: 'claude'}, {directory: '/home/ada/'}, {directory: '/home/ada/code/'}, {directory: '/home/ada/co'}, {state: 'failed'}, {state: 'live'}, {state: 'unknown'}, {}].map((query) => matching(query)(run));
    });
    assert.deepEqual(found, [true, true, false, true, false, true, true, false, true, false, true, true]);
    // A module that comes late changes no other view.
    const late = await open(chromium, server);
    let send;
    const isSent = new Promise((resolve) => { send = resolve; });
    await late.route('**/page/search.js', async (route) => {
      await isSent;
      await route.fallback();
    });
    const asked = late.waitForRequest('**/page/search.js');
    await late.keyboard.press('/');
    await asked;
    await go(late, '#/new');
    await late.waitForSelector('form.start');
    send();
    await late.evaluate(() => import('/page/search.js'));
    assert.equal(new URL(late.url()).hash, '#/new');
    isClean(late);
    await late.context().close();
    isClean(page);
    await page.context().close();
  });

  await check('a run has the first line of its prompt as its title, which a person may change', async () => {
    const id = await server.run('ask', {title: 'Fix the <b>login</b>'});
    await server.reaches(id, 'waiting');
    const page = await open(chromium, server, {width: 390, height: 844});
    await page.waitForSelector(`a.run[href="#/run/${id}"] .name b:text-is("Fix the <b>login</b>")`);
    assert.equal(await page.locator(`a.run[href="#/run/${id}"] .by`).textContent(), 'claude');
    await page.waitForSelector('.request .of:text-is("Fix the <b>login</b>")');
    await go(page, `#/run/${id}`);
    await page.waitForSelector('h1 b:text-is("Fix the <b>login</b>")');
    await page.waitForFunction(() => document.title.includes('Fix the <b>login</b>'));
    await page.click('.rename');
    await page.press('form.title input', 'Escape');
    await page.waitForSelector('h1 b:text-is("Fix the <b>login</b>")');
    await page.click('.rename');
    await page.fill('form.title input', ' The shop ');
    await page.press('form.title input', 'Enter');
    await page.waitForSelector('h1 b:text-is("The shop")');
    assert.equal((await server.api(`/runs/${id}`)).title, 'The shop');
    // Another client changes it.
    await server.api(`/runs/${id}`, {title: null}, 'PATCH');
    await page.waitForSelector('h1 b:text-is("Fix the <b>login</b>")');
    await server.api(`/requests/${id}/1`, {decision: 'deny'});
    await server.reaches(id, 'ended');
    await page.click('.rename');
    await page.fill('form.title input', '');
    await page.click('form.title button');
    await page.waitForSelector('h1 b:text-is("Fix the <b>login</b>")');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    isClean(page);
    await page.context().close();
  });

  await check('a new run like another one has all of its spec, and says what was not kept', async () => {
    const id = await server.run('echo limited', {model: 'opus', permission: 'read-only', maxTurns: 7, images: [{mediaType: 'image/png', data: 'iVBORw0KGgo='}]});
    await server.reaches(id, 'ended');
    const page = await open(chromium, server, {hash: `#/new/${id}`});
    await page.waitForSelector('.note:has-text("also in maxTurns. Not kept: images.")');
    await page.waitForSelector('option[value=claude]', {state: 'attached'});
    const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
    await page.click('form.start .primary');
    assert.deepEqual((await asked).postDataJSON(), {provider: 'claude', prompt: 'echo limited', workingDirectory: server.work, model: 'opus', permission: 'read-only', maxTurns: 7});
    await page.waitForSelector('.card.done:has-text("Completed")');
    isClean(page);
    await page.context().close();
  });

  await check('the form completes models of the agent and directories of earlier runs', async () => {
    const id = await server.run('echo x', {model: 'opus'});
    await server.reaches(id, 'ended');
    const page = await open(chromium, server, {hash: '#/new'});
    await page.waitForSelector('#models option[value="claude-opus-4-8"]', {state: 'attached'});
    assert.ok((await page.locator('#directories option').evaluateAll((all) => all.map((one) => one.value))).includes(server.work));
    await page.waitForSelector('option[value=codex]', {state: 'attached'});
    await page.selectOption('select[name=provider]', 'codex');
    assert.equal(await page.locator('#models option').count(), 0);
    assert.match(await text(page, 'form.start'), /Directory/);
    isClean(page);
    await page.context().close();
  });
}
