// Checks of notifications, for page.mjs: the bell with its states, the service worker, and Web Push with a stand-in of a
// push service, which decrypts what it gets.

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify} from 'node:crypto';
import {readFile, stat} from 'node:fs/promises';
import {createServer, request} from 'node:http';
import {join} from 'node:path';
import {isClean, open, text} from './browser.mjs';
import {PROGRAM, Server, check, until} from './server.mjs';

/// A proxy that serves the server below a path; its address.
async function below(server, path) {
  const proxy = createServer((from, to) => {
    const {hostname, port} = new URL(server.url);
    const passed = request({hostname, port, method: from.method, path: from.url.slice(path.length), headers: from.headers}, (response) => {
      to.writeHead(response.statusCode, response.headers);
      response.pipe(to);
    });
    passed.on('error', () => to.destroy());
    to.on('close', () => passed.destroy());
    from.pipe(passed);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {proxy, url: `http://127.0.0.1:${proxy.address().port}${path}`};
}

/// A push service with one browser, whose messages are in `came`.
async function pushService() {
  const keys = createECDH('prime256v1');
  const own = keys.generateKeys();
  const auth = randomBytes(16);
  const came = [];
  const service = createServer(async (message, response) => {
    const parts = [];
    for await (const part of message) parts.push(part);
    const body = Buffer.concat(parts);
    const [salt, sender, sealed, tag] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86, -16), body.subarray(-16)];
    const derive = (secret, salt, info, length) => Buffer.from(hkdfSync('sha256', secret, salt, info, length));
    // RFC 8291, 3.4.
    const shared = derive(keys.computeSecret(sender), auth, Buffer.concat([Buffer.from('WebPush: info\0'), own, sender]), 32);
    const decipher = createDecipheriv('aes-128-gcm', derive(shared, salt, 'Content-Encoding: aes128gcm\0', 16), derive(shared, salt, 'Content-Encoding: nonce\0', 12));
    decipher.setAuthTag(tag);
    const plain = Buffer.concat([decipher.update(sealed), decipher.final()]);
    came.push({path: message.url, headers: message.headers, delimiter: plain.at(-1), ...JSON.parse(plain.subarray(0, -1))});
    response.writeHead(201).end();
  });
  await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${service.address().port}`;
  const subscription = {endpoint: `${url}/browser`, expirationTime: null, keys: {p256dh: own.toString('base64url'), auth: auth.toString('base64url')}};
  return {service, url, came, subscription};
}

/// Verifies the header by which a server identifies itself (RFC 8292).
function isIdentified({headers}, audience, key) {
  const [, token, own] = /^vapid t=(\S+), k=(\S+)$/.exec(headers.authorization);
  assert.equal(own, key);
  const [head, claims, signature] = token.split('.');
  const bytes = Buffer.from(key, 'base64url');
  const jwk = {kty: 'EC', crv: 'P-256', x: bytes.subarray(1, 33).toString('base64url'), y: bytes.subarray(33).toString('base64url')};
  const isSigned = verify('sha256', Buffer.from(`${head}.${claims}`), {key: createPublicKey({key: jwk, format: 'jwk'}), dsaEncoding: 'ieee-p1363'}, Buffer.from(signature, 'base64url'));
  const {aud, exp, sub} = JSON.parse(Buffer.from(claims, 'base64url'));
  const left = exp - Date.now() / 1000;
  assert.deepEqual([isSigned, aud, left > 0 && left <= 86_400, /^https:/.test(sub)], [true, audience, true, true]);
}

const shown = (page) => page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({title, body}) => [title, body]));

export async function checkNotifications(chromium, server) {
  await check('the bell shows whether there are notifications, why not, and what to use instead', async () => {
    const page = await open(chromium, server);
    /// What the dialog has in a browser that is like this.
    const like = async (change, argument) => {
      const context = page.context();
      const other = await context.newPage();
      await other.addInitScript(change, argument);
      await other.goto(`${server.url}/`);
      await other.waitForSelector('.calm:has-text("Nothing needs you")');
      await other.click('#notify');
      await other.waitForSelector('#notifications[open]');
      const isOff = await other.locator('#notify use[href$="#bell-off"]').count() === 1;
      const all = await text(other, '#notifications');
      const buttons = await other.locator('#notifications button').allInnerTexts();
      await other.close();
      return [isOff, all.replace(/\s+/g, ' '), buttons];
    };
    for (const [change, argument, expected] of [
      [() => { Object.defineProperty(window, 'isSecureContext', {value: false}); }, undefined, /Not possible at this address Browsers show notifications of pages on HTTPS and on localhost only/],
      [() => { delete window.Notification; }, undefined, /Not possible in this browser It has no notifications/],
      [() => { delete window.Notification; navigator.standalone = false; }, undefined, /add the page to the home screen/],
      [() => { Object.defineProperty(Notification, 'permission', {value: 'denied'}); }, undefined, /Blocked This browser blocks notifications of this page/],
    ]) {
      const [isOff, all, buttons] = await like(change, argument);
      assert.match(all, expected);
      assert.match(all, /teamster serve --callback URL/);
      assert.deepEqual([isOff, buttons], [true, ['Close']]);
    }
    // This server has no Web Push: only the open page notifies.
    await page.click('#notify');
    await page.waitForSelector('#notifications[open] .primary:has-text("Turn on")');
    assert.match(await text(page, '#notifications'), /Off\s+Turn them on.* while this page is open and has no focus/s);
    // Keys of the page do nothing behind it.
    await page.keyboard.press('3');
    assert.equal(new URL(page.url()).hash, '#/now');
    await page.context().grantPermissions(['notifications'], {origin: server.url});
    // What another page of this host was allowed turns nothing on.
    const other = await page.context().newPage();
    await other.goto(`${server.url}/`);
    await other.waitForSelector('.calm:has-text("Nothing needs you")');
    await other.waitForSelector('#notify[data-state=off]');
    await other.close();
    await page.click('#notifications .primary');
    await page.waitForSelector('#notifications:has-text("On while the page is open"):has-text("teamster serve --web-push")');
    await page.click('#notifications button:has-text("Close")');
    assert.deepEqual(await page.evaluate(() => [document.querySelector('#notify').dataset.state, document.querySelector('#notify').title]), ['on', 'Notifications: On while the page is open']);
    await page.evaluate(() => { document.hasFocus = () => false; });
    // A second tab adds nothing.
    const second = await page.context().newPage();
    await second.goto(`${server.url}/`);
    await second.waitForSelector('#notify[data-state=on]');
    const id = await server.run('ask', {title: 'Run the tests'});
    await until('a notification', async () => (await shown(page)).length > 0);
    assert.deepEqual(await shown(page), [['Run the tests needs an answer', 'claude: Bash: cargo nextest run --workspace']]);
    // One that was answered elsewhere is over; the end of the run takes its place, however late the browser tells what it shows.
    await page.evaluate(() => {
      const {getNotifications} = ServiceWorkerRegistration.prototype;
      ServiceWorkerRegistration.prototype.getNotifications = async function late() {
        const shown = await getNotifications.call(this);
        await new Promise((resolve) => setTimeout(resolve, 300));
        return shown;
      };
    });
    await server.api(`/requests/${id}/1`, {decision: 'allow'});
    await server.reaches(id, 'ended');
    await until('the end', async () => (await shown(page))[0]?.[1] === 'completed');
    assert.deepEqual(await shown(page), [['Run the tests', 'completed']]);
    // What a person stops is not reported, and turned off in one tab it is off in all.
    const stopped = await server.run('wait', {title: 'Wait'});
    await page.waitForSelector(`a.run[href="#/run/${stopped}"]:has-text("running")`);
    await server.api(`/runs/${stopped}/cancel`, {});
    await page.waitForSelector(`a.run[href="#/run/${stopped}"]:has-text("cancelled")`);
    await second.click('#notify');
    await second.click('#notifications button:has-text("Turn off")');
    await second.waitForSelector('#notifications .primary:has-text("Turn on")');
    await page.waitForSelector('#notify[data-state=off]');
    assert.deepEqual(await shown(page), [['Run the tests', 'completed']]);
    await page.reload();
    await page.waitForSelector('#notify[data-state=off]');
    isClean(page);
    await page.context().close();
  });

  await check('a browser that turned them on is notified once by its push service, below a path too, until it turns them off', async () => {
    const pushing = await Server.start({args: ['--web-push', '--allow-private-callbacks']});
    const {service, url, came, subscription} = await pushService();
    const front = await below(pushing, '/teamster');
    const page = await open(chromium, {url: front.url, token: pushing.token});
    const context = page.context();
    // The browser's own push service is on the internet.
    await context.addInitScript((subscription) => {
      PushManager.prototype.subscribe = async (options) => ({
        toJSON: () => subscription,
        unsubscribe: async () => { window.left = true; },
        options,
      });
      const {subscribe} = PushManager.prototype;
      PushManager.prototype.subscribe = async (options) => (window.made = await subscribe(options));
      PushManager.prototype.getSubscription = async () => window.made;
      document.hasFocus = () => false;
    }, subscription);
    await page.reload();
    await page.waitForSelector('.calm:has-text("Nothing needs you")');
    await page.click('#notify');
    await page.waitForSelector('#notifications:has-text("also while this page is closed") .primary:has-text("Turn on")');
    await context.grantPermissions(['notifications'], {origin: new URL(front.url).origin});
    await page.click('#notifications .primary');
    await page.waitForSelector('#notifications:has-text("also while the page is closed") button:has-text("Turn off")');
    await page.click('#notifications button:has-text("Close")');
    const {key} = await pushing.api('/web-push');
    assert.deepEqual(await page.evaluate(async () => [made.options, (await navigator.serviceWorker.ready).scope]), [{userVisibleOnly: true, applicationServerKey: key}, `${front.url}/`]);
    const kept = join(pushing.folder, 'state/teamster/server/web-push.json');
    const endpoints = async () => JSON.parse(await readFile(kept, 'utf8')).subscriptions.map(({endpoint}) => endpoint);
    assert.deepEqual([await endpoints(), (await stat(kept)).mode & 0o777], [[subscription.endpoint], 0o600]);
    const second = await context.newPage();
    await second.goto(`${front.url}/`);
    await second.waitForSelector('#notify[data-state=on]');
    const id = await pushing.run('ask', {title: 'Run the tests'});
    await until('a message for the request', () => came.length > 0);
    await pushing.api(`/requests/${id}/1`, {decision: 'allow'});
    await until('a message for the end', () => came.length > 1);
    assert.deepEqual(came.map(({path, delimiter, runId, requestId, title, text}) => [path, delimiter, runId, requestId, title, text]), [
      ['/browser', 2, id, `${id}/1`, 'Run the tests', 'claude asks for permission'],
      ['/browser', 2, id, undefined, 'Run the tests', 'completed'],
    ]);
    assert.deepEqual(came.map(({headers}) => headers.urgency), ['high', 'normal']);
    for (const message of came) isIdentified(message, url, key);
    // The pages left it to the push service.
    assert.deepEqual(await shown(page), []);

    // The subscription outlives the server.
    await pushing.kill();
    await pushing.restart();
    const other = await pushing.run('ask', {title: 'Once more'});
    await until('a message of the other server', () => came.length > 2);
    assert.deepEqual([came[2].runId, came[2].title], [other, 'Once more']);

    // Without a page the worker shows it, and a click opens the run.
    const session = await context.newCDPSession(page);
    const registered = new Promise((resolve) => { session.on('ServiceWorker.workerRegistrationUpdated', ({registrations: [one]}) => one && resolve(one)); });
    await session.send('ServiceWorker.enable');
    const {registrationId} = await registered;
    const [worker] = context.serviceWorkers();
    await second.close();
    await page.goto('about:blank');
    const push = async ({runId, requestId, title, text}) => {
      await session.send('ServiceWorker.deliverPushMessage', {origin: new URL(front.url).origin, registrationId, data: JSON.stringify({runId, requestId, title, text})});
      return until('its notification', () => worker.evaluate(async (id) => {
        const one = (await registration.getNotifications()).find(({tag}) => tag === id);
        return one && [one.title, one.body, new URL(one.icon).pathname];
      }, runId));
    };
    assert.deepEqual(await push(came[2]), ['Once more', 'claude asks for permission', '/teamster/page/icon-192.png']);
    // A browser opens and focuses windows after a real click only.
    const click = (id) => worker.evaluate(async (id) => {
      const opened = [];
      Clients.prototype.openWindow = async (url) => { opened.push(url); };
      WindowClient.prototype.focus = async function focus() { return this; };
      const [notification] = (await registration.getNotifications()).filter(({tag}) => tag === id);
      const event = new NotificationEvent('notificationclick', {notification});
      const waits = [];
      event.waitUntil = (done) => waits.push(done);
      self.dispatchEvent(event);
      await Promise.all(waits);
      return opened;
    }, id);
    assert.deepEqual(await click(other), [`${front.url}/#/run/${other}`]);
    // A page closes what was answered.
    await push(came[2]);
    await page.goto(`${front.url}/`);
    await page.waitForSelector('.request');
    assert.equal((await shown(page)).length, 1);
    await pushing.api(`/requests/${other}/1`, {decision: 'deny'});
    await pushing.reaches(other, 'ended');
    await until('no notification', async () => (await shown(page)).length === 0);
    await until('a message for its end', () => came.length > 3);

    // Another token of the person takes the subscription over.
    const holder = async () => JSON.parse(await readFile(kept, 'utf8')).subscriptions[0]?.token.hash;
    const before = await holder();
    execFileSync(PROGRAM, ['token', 'replace'], {env: pushing.env});
    pushing.token = (await readFile(join(pushing.folder, 'state/teamster/server/token'), 'utf8')).trim();
    await page.waitForSelector('form.login');
    await page.fill('form.login input', pushing.token);
    await page.click('form.login button');
    await until('the subscription of the token', async () => ![before, undefined].includes(await holder()));
    await page.waitForSelector('#notify[data-state=on]');

    // Turned off, the server knows it no more.
    await page.click('#notify');
    await page.click('#notifications button:has-text("Turn off")');
    await page.waitForSelector('#notifications .primary:has-text("Turn on")');
    assert.deepEqual([await endpoints(), await page.evaluate(() => window.left)], [[], true]);
    const last = await pushing.run('echo last');
    await pushing.reaches(last, 'ended');
    assert.equal(came.length, 4);
    isClean(page, '502', 'Failed to load resource', 'net::ERR');
    await context.close();
    front.proxy.closeAllConnections();
    front.proxy.close();
    service.closeAllConnections();
    service.close();
    await pushing.end();
  });
}
