// Long logs: what is shown of them, and how long they keep the browser busy.

import assert from 'node:assert/strict';
import {go, isClean, logOf, open} from './browser.mjs';
import {check} from './server.mjs';

/// Number of entries of the long log.
const ENTRIES = 50_000;
/// The longest time, in milliseconds, for which the browser may do nothing else.
const LONGEST = 200;
/// Where the browser writes its tasks, and how much of the processor each took. Other processes do not count.
const CATEGORIES = ['disabled-by-default-devtools.timeline'];

/// Milliseconds of the tasks of the page, the longest first.
function tasksOf(trace) {
  const {traceEvents} = JSON.parse(trace.toString());
  const thread = ({pid, tid}) => `${pid} ${tid}`;
  const main = new Set(traceEvents.filter(({name, args}) => name === 'thread_name' && args.name === 'CrRendererMain').map(thread));
  const tasks = traceEvents.filter((event) => event.name === 'RunTask' && event.ph === 'X' && main.has(thread(event)));
  return tasks.map(({tdur}) => tdur / 1000).sort((a, b) => b - a);
}

export async function checkSpeed(chromium, server) {
  await check('of a long log the end is shown, and all of it on request', async () => {
    const page = await open(chromium, server);
    const id = await server.run('count 5000 0');
    // The page's own state has the length of the log; of a run that it still sees at its beginning, it shows all.
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("completed")`);
    await go(page, `#/run/${id}`);
    await page.waitForSelector('.card.done');
    const shown = await logOf(page);
    assert.match(shown.slice(0, 200), /The first \d+ entries of this log are not shown/);
    assert.deepEqual([/piece 1\n/.test(shown), /piece 5000\n/.test(shown)], [false, true]);
    await page.click('.log a:has-text("Show all of it")');
    await page.waitForFunction(() => [...document.querySelectorAll('.log .card')].some((one) => one.textContent === 'piece 1'));
    await page.waitForSelector('.card.done');
    const pieces = [...(await logOf(page)).matchAll(/piece (\d+)/g)].map((match) => Number(match[1]));
    assert.deepEqual(pieces, Array.from({length: 5000}, (_, i) => i + 1));
    isClean(page);
    await page.context().close();
  });

  await check(`of a log of ${ENTRIES} entries no task takes ${LONGEST} ms`, async () => {
    const id = await server.run(`many ${ENTRIES}`);
    await server.reaches(id, 'ended');
    const page = await open(chromium, server);
    await chromium.startTracing(page, {categories: CATEGORIES});
    const begin = Date.now();
    await go(page, `#/run/${id}/all`);
    // A selector of the test would look at all elements, again and again.
    const has = (expression) => page.waitForFunction(expression, undefined, {polling: 250, timeout: 120_000});
    await has(() => document.querySelector('.card.done') !== null);
    const took = Date.now() - begin;
    await page.evaluate(async () => {
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      for (const part of [1, 0.5, 0.25, 0]) {
        window.scrollTo(0, document.documentElement.scrollHeight * part);
        await frame();
        await frame();
      }
      document.querySelector('.jump').click();
    });
    // The end is reached, although the parts before it had no height.
    await has(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2);
    const tasks = tasksOf(await chromium.stopTracing());
    const cards = await page.evaluate(() => document.querySelectorAll('.cards > *').length);
    const long = tasks.filter((time) => time > 50);
    console.log(`   ${cards} cards in ${took} ms; ${long.length} tasks over 50 ms, the longest ${tasks[0].toFixed()} ms`);
    assert.ok(cards > ENTRIES / 3 && tasks.length > 1000, `${cards} cards, ${tasks.length} tasks`);
    assert.ok(tasks[0] < LONGEST, `${tasks[0]} ms`);
    isClean(page);
    await page.context().close();
  });
}
