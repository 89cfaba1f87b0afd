// The checks of the view Fleet. The server has no fleet of its own: what /v1/fleet has is made up here.

import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {go, isClean, open, require, text} from './browser.mjs';
import {check} from './server.mjs';

const agent = (id, ready, version) => ({id, ready, version});
const worker = (name, more) => ({name, pools: ['default'], agents: [agent('claude', true, '2.1.197'), agent('gemini', false)], slots: 4, running: 1, draining: false, version: '0.1.0', ...more});

// A made-up fleet, also that of the pictures.
export function status() {
  return {
    workers: [worker('mini'), worker('gpu-box', {pools: ['default', 'gpu'], slots: 2, running: 2}), worker('pod', {draining: true})],
    queues: [{pool: 'gpu', waiting: 3, oldestAt: Date.now() - 200_000}, {machine: 'studio', waiting: 1, oldestAt: Date.now() - 30_000}],
    runs: {queued: 4, started: 4},
    holds: [{agent: 'claude', login: '3fa9c2d177', limit: 'five_hour', until: Date.now() + 5_000_000}],
  };
}

export async function checkFleet(chromium, server) {
  await check('a server without a fleet has no view of one', async () => {
    const page = await open(chromium, server);
    await page.waitForSelector('.tabs a[href="#/fleet"]', {state: 'hidden'});
    await page.keyboard.press('4');
    assert.equal(new URL(page.url()).hash, '#/now');
    await go(page, '#/fleet');
    await page.waitForSelector('p.empty:has-text("own machine")');
    isClean(page);
    await page.context().close();
  });

  await check('the view Fleet has workers, queues and limits, on a phone and in the dark', async () => {
    const axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
    for (const form of [{}, {width: 390, height: 844, dark: true}]) {
      let answer = (route) => route.fulfill({json: status()});
      const page = await open(chromium, server, form);
      await page.context().route('**/v1/fleet', (route) => answer(route));
      await page.reload();
      await page.waitForSelector('.tabs a[href="#/fleet"]:visible');
      await page.keyboard.press('4');
      await page.waitForSelector('.card.worker');
      assert.match(await text(page, 'h1'), /^2 workers at work\.\s+3 of 6 slots used\. 4 runs waiting\.$/);
      assert.deepEqual(await page.locator('.card.worker h3').allInnerTexts(), ['mini', 'gpu-box', 'pod']);
      assert.match(await text(page, '.card.worker:last-child'), /takes no new runs/);
      assert.equal(await page.locator('[role=meter]').first().getAttribute('aria-valuetext'), '1 of 4 slots used');
      assert.match(await text(page, '.card.queue:has-text("gpu")'), /3 waiting\s+the oldest for 3 min/);
      assert.match(await text(page, '.card.queue:has-text("five hour")'), /for 1 h/);
      await page.keyboard.press('j');
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'mini');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await window.axe.run()).violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`));
      assert.deepEqual(found, []);
      // What was read stays, with its age, while the fleet cannot be reached.
      answer = (route) => route.fulfill({status: 500, json: {detail: 'the fleet does not answer'}});
      await page.waitForSelector('.error:has-text("the fleet does not answer · shown is the state of")');
      assert.equal(await page.locator('.card.worker').count(), 3);
      answer = (route) => route.fulfill({json: {...status(), workers: []}});
      await page.waitForSelector('h1:has-text("No worker is present.")');
      isClean(page, '500');
      await page.context().close();
    }
  });
}
