// Checks of addresses, notifications, and what a view needs to be of use, for page.mjs.

import assert from 'node:assert/strict';
import {go, isClean, open, text} from './browser.mjs';
import {check} from './server.mjs';

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

  await check('the bell is offered only where it does something, and the page says why', async () => {
    const page = await open(chromium, server);
    /// The page in a browser whose notifications are like this.
    const like = async (permission, isRefused, isSecure = true) => {
      await page.addInitScript(([permission, isRefused, isSecure]) => {
        Object.defineProperty(window, 'isSecureContext', {value: isSecure, configurable: true});
        window.Notification = class {
          static permission = permission;
          static async requestPermission() { this.permission = 'granted'; }
          constructor() { if (isRefused) throw new TypeError('Illegal constructor.'); }
        };
      }, [permission, isRefused, isSecure]);
      await page.reload();
      await page.waitForSelector('.calm:has-text("Nothing needs you")');
      return [await page.locator('#notify').isVisible(), await page.locator('#notifications').textContent()];
    };
    const offered = await like('default', false);
    assert.deepEqual(offered, [true, 'The bell turns them on.']);
    await page.click('#notify');
    await page.waitForSelector('#notify', {state: 'hidden'});
    await page.click('#help');
    assert.match(await text(page, '#notifications'), /^Requests are notified of/);
    // Chrome on Android has a constructor that throws.
    for (const [[permission, isRefused, isSecure], why] of [[['default', true], /^This browser shows no notifications/], [['denied', false], /^They are blocked/], [['default', false, false], /HTTPS or localhost/]]) {
      const [isOffered, said] = await like(permission, isRefused, isSecure);
      assert.equal(isOffered, false);
      assert.match(said, why);
      assert.match(said, /teamster serve --callback URL/);
    }
    // With a permission from before, the first notification shows it.
    assert.match((await like('granted', true))[1], /^Requests are notified of/);
    await page.evaluate(() => { document.hasFocus = () => false; });
    const id = await server.run('ask');
    await page.waitForSelector('.request');
    await page.waitForFunction(() => /^This browser shows no/.test(document.querySelector('#notifications').textContent));
    await server.api(`/requests/${id}/1`, {decision: 'deny'});
    await server.reaches(id, 'ended');
    isClean(page);
    await page.context().close();
  });
}
