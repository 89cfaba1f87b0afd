// A headless Chromium: playwright-core is in the folder that BROWSER_MODULES names, the program in CHROMIUM.

import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {join} from 'node:path';

export const require = createRequire(join(process.env.BROWSER_MODULES ?? process.cwd(), 'package.json'));
const {chromium} = require('playwright-core');

/// What keeps it from asking anyone else for anything.
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  // There is no internet, whether this machine has one or not.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost'];

export function browser() {
  return chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS});
}

/// A page that is logged in, with a list of what it has asked for elsewhere and of its errors.
export async function open(browser, server, {width = 1280, height = 860, dark = false, scale = 1, hash = ''} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', deviceScaleFactor: scale, timezoneId: 'UTC', locale: 'en-GB', reducedMotion: 'reduce'});
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(String(error)));
  page.on('console', (line) => line.type() === 'error' && page.faults.push(`${line.text()} ${line.location().url}`));
  page.on('request', (request) => !request.url().startsWith(`${server.url}/`) && page.faults.push(`asks for ${request.url()}`));
  if (process.env.PAGE) await serveFrom(process.env.PAGE, context, server);
  await page.goto(`${server.url}/#token=${server.token}`);
  await page.waitForSelector('main:not(.loading) .calm');
  if (hash) await page.evaluate((hash) => { location.hash = hash; }, hash);
  return page;
}

/// Takes the files of the page from a folder, to try a change of them without a build.
async function serveFrom(folder, context, server) {
  const policy = (await fetch(`${server.url}/`)).headers.get('content-security-policy');
  /// The path below that of the page.
  const within = ({href}) => href.startsWith(`${server.url}/`) ? new URL(href).pathname.slice(new URL(`${server.url}/`).pathname.length) : undefined;
  const isPage = (url) => ['', 'service-worker.js'].includes(within(url)) || within(url)?.startsWith('page/');
  await context.route(isPage, (route) => {
    const name = within(new URL(route.request().url())).replace('page/', '') || 'index.html';
    return route.fulfill({path: join(folder, name), headers: {'content-security-policy': policy}});
  });
}

/// Goes to a view.
export const go = (page, hash) => page.evaluate((hash) => { location.hash = hash; }, hash);

/// The text of the first element.
export const text = (page, selector) => page.locator(selector).first().innerText();

/// Checks that there was no error of a script or of the policy, and no request to elsewhere; `except` are those that a
/// check causes.
export const isClean = (page, ...except) => assert.deepEqual(page.faults.filter((fault) => !except.some((part) => fault.includes(part))), []);

/// The texts of a log, also those that are not laid out.
export const logOf = (page) => page.locator('.log').evaluate((log) => [...log.querySelectorAll(':scope > p, .cards > *')].map((one) => `${one.textContent}\n`).join(''));
