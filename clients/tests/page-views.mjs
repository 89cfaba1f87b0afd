// Checks of addresses, and what a view needs to be of use, for page.mjs.

import assert from 'node:assert/strict';
import {go, isClean, open, text} from './browser.mjs';
import {check, until} from './server.mjs';

export async function checkViews(chromium, server) {
  await check('an address that no view made is harmless, also as the first one', async () => {
    const page = await open(chromium, server);
    const id = await server.run('wait');
    for (const hash of ['#/run/%', '#/run/%00', '#/run/..', '#/run/%2e%2e%2f', '#/run/%E0%A4/all', `#/run/${'x'.repeat(100_000)}`, '#/agents/%E0', '#/agents/"><b>', '#/nothing/at/all', '#%', '#']) {
      await page.goto('about:blank');
      await page.goto(`${server.url}/${hash}`);
      await page.waitForSelector(hash.startsWith('#/run/') ? 'main.run .error:visible' : hash.startsWith('#/agents') ? 'main.agents .calm' : `a.run[href="#/run/${id}"]`);
      // The stream was opened: the page is alive.
      await go(page, '#/now');
      await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("running")`);
      await go(page, hash);
      await go(page, '#/now');
      await page.waitForSelector(`a.run[href="#/run/${id}"]`);
    }
    await server.api(`/runs/${id}/cancel`, {kill: true});
    isClean(page, 'status of 4');
    await page.context().close();
  });

  await check('the prompt of a run is its first card, folded if it is long, and absent where it is not kept', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const shown = async (prompt) => {
      const id = await server.run(prompt);
      await server.reaches(id, 'ended');
      await go(page, `#/run/${id}`);
      await page.waitForSelector('.card.done');
      await page.waitForSelector('.story > :first-child > .card.user:has-text("Prompt")');
      return page.locator('.asked details');
    };
    assert.equal(await (await shown('echo **this** <b>\n- and that')).count(), 0);
    assert.deepEqual([await page.locator('.asked p').innerText(), await page.locator('.asked li').innerText()], ['echo this <b>', 'and that']);
    const long = `echo ${'line\n'.repeat(30)}the end`;
    const folded = await shown(long);
    assert.match(await folded.locator('summary').innerText(), /^\W*Prompt echo line… 31 lines/);
    assert.equal(await folded.locator('p').isVisible(), false);
    await folded.locator('summary').click();
    assert.match(await folded.locator('p').innerText(), /the end$/);
    assert.equal(await (await shown(`echo ${'word '.repeat(1000)}`)).count(), 1);
    // What the server does not keep is not shown.
    await page.route(/\/v1\/runs\/[^/]+$/, async (route) => {
      const response = await route.fetch();
      const {prompt, ...run} = await response.json();
      await route.fulfill({json: run});
    });
    await page.reload();
    await page.waitForSelector('.card.done');
    assert.equal(await page.locator('.asked .card.user').count(), 0);
    isClean(page);
    await page.context().close();
  });

  await check('everything that is touched has 44 px at the width of a phone', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const id = await server.run('story');
    await server.reaches(id, 'waiting');
    const small = () => page.evaluate(() => {
      for (const one of document.querySelectorAll('details')) one.open = true;
      const targets = [...document.querySelectorAll('a, button, input, select, textarea, summary')].filter((one) => one.checkVisibility() && !one.matches('.skip'));
      // A link in a sentence is as high as its line.
      const alone = targets.filter((one) => one.localName !== 'a' || getComputedStyle(one).display !== 'inline');
      return alone.map((one) => one.closest('label.check, label.choice') ?? one).filter((one) => {
        const {width, height} = one.getBoundingClientRect();
        return width < 43.9 || height < 43.9;
      }).map((one) => `${one.outerHTML.slice(0, 120)} ${one.getBoundingClientRect().width}x${one.getBoundingClientRect().height}`);
    });
    for (const [hash, selector] of [['#/now', '.request'], [`#/run/${id}`, '.request'], ['#/agents', '.card.agent'], ['#/cost', '.controls'], ['#/new', 'option[value=claude]']]) {
      await go(page, hash);
      await page.waitForSelector(selector, {state: 'attached'});
      assert.deepEqual(await small(), [], hash);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash);
    }
    await page.click('#help');
    assert.deepEqual(await small(), []);
    await page.click('#keys-close');
    await page.click('#notify');
    await page.waitForSelector('#notifications[open]');
    assert.deepEqual(await small(), []);
    await page.click('#notifications button:has-text("Close")');
    await server.api(`/requests/${id}/1`, {decision: 'deny'});
    await server.reaches(id, 'ended');
    await go(page, `#/run/${id}`);
    await page.click('.follow button:has-text("Follow up")');
    await page.waitForSelector('.follow .composer');
    assert.deepEqual(await small(), []);
    await page.context().close();
  });

  await check('a run whose end is in view has no button that goes there, and the pencil is in the line of its title', async () => {
    const id = await server.run('fail');
    await server.reaches(id, 'ended');
    const long = await server.run('fail', {title: 'Explain the policy of retries and their delays'});
    await server.reaches(long, 'ended');
    for (const form of [{}, {width: 390, height: 844}]) {
      const page = await open(chromium, server, form);
      await go(page, `#/run/${id}`);
      await page.waitForSelector('.card.done');
      await page.waitForSelector('.jump', {state: 'hidden'});
      const apart = await page.evaluate(() => {
        const middle = (one) => {
          const {top, bottom} = one.getBoundingClientRect();
          return (top + bottom) / 2;
        };
        const title = document.querySelector('h1 b');
        const {left} = document.querySelector('.rename').getBoundingClientRect();
        return [Math.abs(middle(document.querySelector('.rename svg')) - middle(title)), Math.abs(left - title.getBoundingClientRect().right)];
      });
      assert.ok(apart.every((px) => px < 3), `${apart} px`);
      await go(page, `#/run/${long}`);
      await page.waitForSelector('h1 b:has-text("delays")');
      const [title, pencil] = [await page.locator('h1 b').boundingBox(), await page.locator('.rename svg').boundingBox()];
      assert.ok(pencil.y > title.y && pencil.y + pencil.height < title.y + title.height, 'the pencil is in the line of a title that takes the whole width');
      isClean(page);
      await page.context().close();
    }
  });

  await check('a phone can put the page among its apps', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const session = await page.context().newCDPSession(page);
    const {url, errors, manifest} = await session.send('Page.getAppManifest');
    assert.deepEqual([url, errors], [`${server.url}/page/manifest.webmanifest`, []]);
    assert.deepEqual([manifest.startUrl, manifest.scope, manifest.id], [`${server.url}/#/now`, `${server.url}/`, `${server.url}/`]);
    const sizes = await page.evaluate(() => Promise.all([...document.querySelectorAll('link[rel=apple-touch-icon]')].map(({href}) => href).concat(['page/icon-192.png', 'page/icon-512.png']).map(async (src) => {
      const image = new Image();
      image.src = src;
      await image.decode();
      return image.naturalWidth;
    })));
    assert.deepEqual(sizes, [180, 192, 512]);
    isClean(page);
    await page.context().close();
  });

  await check('a message, a command, a diff and the prompt are copied as they are', async () => {
    const page = await open(chromium, server);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], {origin: server.url});
    const id = await server.run('story');
    await server.reaches(id, 'waiting');
    await go(page, `#/run/${id}`);
    await page.waitForSelector('.request');
    const copies = async (selector) => {
      await page.locator(selector).first().hover();
      await page.locator(`${selector} .copy`).first().click();
      await page.waitForSelector(`${selector} .copy[data-done=Copied]`);
      return page.evaluate(() => navigator.clipboard.readText());
    };
    assert.equal(await copies('.request .copied'), 'cargo add httpdate && cargo nextest run --workspace');
    assert.equal(await copies('.asked .card'), 'story');
    assert.match(await copies('.card.text:has-text("httpdate")'), /^The crate is not among.*\n\n- `httpdate` reads/);
    await page.click('.card.tool:has-text("Edit") summary');
    assert.match(await copies('.card.tool:has-text("Edit") .hunks'), /^-    headers\.get.*\n\+    let value = /);
    await server.api(`/requests/${id}/1`, {decision: 'deny'});
    await server.reaches(id, 'ended');
    isClean(page);
    await page.context().close();
  });

  await check('an ended run is followed up in its session, and begins a new one like it', async () => {
    const page = await open(chromium, server);
    const id = await server.run('echo first', {model: 'opus'});
    const {sessionId} = await server.reaches(id, 'ended');
    await go(page, `#/run/${id}`);
    const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
    await page.click('.follow button:has-text("Follow up")');
    await page.fill('.follow textarea', 'echo second');
    await page.click('.follow button:has-text("Follow up")');
    const {provider, ...body} = (await asked).postDataJSON();
    assert.deepEqual(body, {prompt: 'echo second', sessionId, workingDirectory: server.work, model: 'opus', permission: 'default'});
    await page.waitForFunction((id) => !location.hash.endsWith(id), id);
    await page.waitForSelector('.asked .card:has-text("echo second")');
    await page.waitForSelector('.card.done:has-text("Completed")');
    // One that cannot be followed up has the reason beside it.
    await page.route('**/v1/runs', (route) => route.fulfill({status: 422, json: {detail: 'no such directory'}}));
    await page.click('.follow button:has-text("Follow up")');
    await page.fill('.follow textarea', 'echo third');
    await page.press('.follow textarea', 'Control+Enter');
    await page.waitForSelector('.follow .error:has-text("no such directory")');
    await page.unroute('**/v1/runs');
    await page.click('a:has-text("New run like this")');
    await page.waitForFunction(() => document.querySelector('textarea[name=prompt]')?.value === 'echo second');
    await page.waitForSelector('.note:has-text("Like this run. Not taken over: sessionId.")');
    assert.deepEqual(await page.evaluate(() => ['directory', 'model'].map((name) => document.querySelector(`input[name=${name}]`).value)), [server.work, 'opus']);
    await page.waitForSelector('option[value=claude]', {state: 'attached'});
    const alike = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
    await page.click('form.start .primary');
    assert.equal((await alike).postDataJSON().sessionId, undefined);
    await page.waitForSelector('main.run .card.done:has-text("Completed")');
    // What belongs to one run only is named, and not taken over.
    const titled = await server.run('echo titled', {title: 'Mine', sessionKey: 'page:like', maxTurns: 3});
    await server.reaches(titled, 'ended');
    await go(page, `#/new/${titled}`);
    await page.waitForSelector('.note:has-text("Like this run, also in maxTurns. Not taken over: title, sessionKey.")');
    await page.waitForSelector('option[value=claude]', {state: 'attached'});
    const other = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
    await page.click('form.start .primary');
    const {title, sessionKey, maxTurns} = (await other).postDataJSON();
    assert.deepEqual([title, sessionKey, maxTurns], [undefined, undefined, 3]);
    await page.waitForSelector('main.run .card.done:has-text("Completed")');
    // Made by hand: the branch exists already, and the commit at which a worktree starts may be the same.
    const workspace = {kind: 'worktree', directory: server.work, from: 'main', branch: 'fix'};
    for (const [fields, note, sent] of [
      [{worktree: 'fix'}, 'Like this run. Not taken over: worktree.branch.', {worktree: true}],
      [{workspace}, 'Like this run, also in workspace. Not taken over: workspace.branch.', {workspace: {kind: 'worktree', directory: server.work, from: 'main'}}],
    ]) {
      await page.route('**/spec', (route) => route.fulfill({json: {version: 1, what: {run: {provider: 'claude', prompt: 'echo on a branch', ...fields}}}}));
      await go(page, '#/now');
      await page.waitForSelector('.calm');
      await go(page, `#/new/${titled}`);
      await page.waitForSelector(`.note:has-text("${note}")`);
      await page.waitForSelector('option[value=claude]', {state: 'attached'});
      await page.route('**/v1/runs', (route) => route.fulfill({status: 422, json: {detail: 'not now'}}));
      const started = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/runs'));
      await page.click('form.start .primary');
      assert.deepEqual((await started).postDataJSON(), {...sent, provider: 'claude', permission: 'default', prompt: 'echo on a branch'});
      await page.waitForSelector('form.start .error:has-text("not now")');
      await page.unroute('**/v1/runs');
      await page.unroute('**/spec');
    }
    // A session is followed by a session.
    const {runId} = await server.api('/sessions', {provider: 'claude', workingDirectory: server.work});
    await server.api(`/sessions/${runId}/turns`, {prompt: 'echo in a session'});
    await until('end of its turn', async () => {
      const {sessionId, live} = await server.api(`/sessions/${runId}`);
      return sessionId && live?.state === 'idle';
    });
    await server.api(`/runs/${runId}/cancel`, {});
    await server.reaches(runId, 'ended');
    await go(page, `#/run/${runId}`);
    await page.click('.follow button:has-text("Follow up")');
    await page.fill('.follow textarea', 'echo again');
    await page.click('.follow button:has-text("Follow up")');
    await page.waitForFunction((id) => !location.hash.endsWith(id), runId);
    await page.waitForSelector('.log .card.text:has-text("echo again")');
    const next = new URL(page.url()).hash.split('/').pop();
    assert.equal((await server.api(`/runs/${next}`)).continues, runId);
    await server.api(`/runs/${next}/cancel`, {});
    await server.reaches(next, 'ended');
    isClean(page, '422');
    await page.context().close();
  });

  // Files that are not the program's own have no tags.
  if (!process.env.PAGE) await check('the first load is small, and the second one has no bodies', async () => {
    const page = await open(chromium, server);
    const loaded = () => page.evaluate(() => {
      const files = performance.getEntries().filter(({entryType, name}) => entryType === 'navigation' || /\/page\//.test(name));
      const sum = (name) => files.reduce((sum, file) => sum + file[name], 0);
      // A part of a file may be asked for once more, for nothing.
      return {count: new Set(files.map(({name}) => name.split('#')[0])).size, body: sum('encodedBodySize'), sent: sum('transferSize'), full: sum('decodedBodySize')};
    });
    const first = await loaded();
    assert.ok(first.body <= 40 * 1024 && first.full > 2 * first.body, JSON.stringify(first));
    await page.reload();
    await page.waitForSelector('.calm:has-text("Nothing needs you")');
    const second = await loaded();
    // What is sent of a file that the browser has is an answer without a body.
    assert.ok(second.count >= first.count && second.sent <= second.count * 400, JSON.stringify(second));
    isClean(page);
    await page.context().close();
  });
}
