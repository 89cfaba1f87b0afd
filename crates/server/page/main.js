// The page: login, views, keyboard. It is a client of the public API and has no paths of its own.

import {base, getIfThere, post, remove, unauthorized} from './api.js';
import {start as drawAttention, quiet, title} from './attention.js';
import {clock, fill, h} from './dom.js';
import {now} from './now.js';
import {connect, join, state, watch} from './state.js';

const main = document.querySelector('#main');
let view;
/// True if the login is missing, and the number of snapshots at that time.
let isOut = false;
let outAt = 0;

/// The token of `#token=…`, which is removed from the address first.
function tokenOfAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return undefined;
  history.replaceState(null, '', location.pathname + location.search + '#/now');
  return token;
}

async function logIn(token) {
  await post('/v1/login', {token, path: base});
  comeIn();
  connect();
}

function comeIn() {
  isOut = false;
  document.body.classList.remove('out');
  show();
}

/// Asks for a token.
function askForToken(problem) {
  isOut = true;
  outAt = state.snapshots;
  document.body.classList.add('out');
  view?.close?.();
  view = undefined;
  main.className = 'out';
  const input = h('input', {type: 'password', name: 'token', required: true, autocomplete: 'current-password', 'aria-label': 'Token', placeholder: 'tms_…'});
  const note = h('p.error', {role: 'alert', hidden: !problem}, problem);
  fill(main, h('form.login', {
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await logIn(input.value.trim());
      } catch (error) {
        note.hidden = false;
        note.textContent = error.message;
        input.select();
      }
    },
  }, h('h1', 'teamster'), h('p', 'Open the address that ', h('code', 'teamster serve'), ' prints, or give a token. ', h('code', 'teamster token add phone --scope answer'), ' makes one for a phone.'), input, note, h('button.primary', {type: 'submit'}, 'Log in')));
  document.title = 'teamster';
  input.focus();
}

/// Views: name, address, tab, and the module that has it, which is loaded once the view is opened.
const VIEWS = [
  ['run', /^#\/run\/([^/]+)(\/all)?$/, '#/now', () => import('./run.js')],
  ['agents', /^#\/agents(?:\/([^/]+))?$/, '#/agents', () => import('./agents.js')],
  ['cost', /^#\/cost$/, '#/cost', () => import('./cost.js')],
  ['fleet', /^#\/fleet$/, '#/fleet', () => import('./fleet.js')],
  ['start', /^#\/new(?:\/([^/]+))?$/, '', () => import('./start.js')],
  ['now', /^/, '#/now', () => ({now})],
];
/// The number of addresses that were gone to.
let visits = 0;

/// A part of an address without its `%`; one that no browser would make stays as it is.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/// Shows the view that the address names.
async function show() {
  if (isOut) return;
  view?.close?.();
  view = undefined;
  const visit = ++visits;
  const {hash} = location;
  const [name, pattern, tab, load] = VIEWS.find(([, pattern]) => pattern.test(hash));
  const [, argument, more] = pattern.exec(hash);
  let make;
  try {
    make = (await load())[name];
  } catch {
    // After an upgrade of the server, a new part of the page may not fit the old ones, too.
    if (visit === visits && !isOut) fill(main, h('p.error', {role: 'alert'}, 'This view cannot be loaded. Load the page again.'));
    return;
  }
  // Another address was gone to meanwhile.
  if (visit !== visits || isOut) return;
  main.className = name;
  window.scrollTo({top: 0});
  try {
    view = make(main, argument === undefined ? undefined : decoded(argument), more !== undefined);
  } catch (error) {
    fill(main, h('p.error', {role: 'alert'}, `This view cannot be shown: ${error.message}.`));
    reportError(error);
    return;
  }
  title(view.title);
  for (const link of document.querySelectorAll('.tabs a')) {
    if (link.getAttribute('href') === tab) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

const fleetLink = document.querySelector('.tabs a[href="#/fleet"]');
let isFleetAsked = false;

/// Finds out once whether there is a fleet, and shows the link to its view.
async function findFleet() {
  if (isFleetAsked || !state.loaded) return;
  isFleetAsked = true;
  try {
    fleetLink.hidden = await getIfThere('/v1/fleet') === undefined;
    document.querySelector('#keys-fleet').hidden = fleetLink.hidden;
  } catch {
    isFleetAsked = false;
  }
}

function showConnection() {
  const lost = document.querySelector('#lost');
  lost.hidden = state.lostAt === 0;
  document.body.classList.toggle('stale', state.lostAt !== 0);
  if (state.lostAt !== 0) lost.textContent = `No connection to the server since ${clock(state.lostAt)}. Runs go on without it; this page catches up.`;
}

const STEPS = '.request, .row, .card.agent, .card.worker, .file > summary';

/// Moves the focus among requests, runs, agents, workers and changed files.
function step(by) {
  const all = [...main.querySelectorAll(STEPS)].filter((one) => one.checkVisibility());
  const at = all.indexOf(document.activeElement?.closest?.(STEPS));
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  next?.focus();
  next?.scrollIntoView({block: 'nearest'});
}

const dialog = document.querySelector('#keys');

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isOut || document.querySelector('dialog[open]')) return;
  const inField = event.target.closest('input, textarea, select');
  if (event.key === 'Escape') {
    if (inField) inField.blur();
    else location.hash = '#/now';
    return;
  }
  if (inField) return;
  const request = document.activeElement?.closest?.('.request');
  const act = {
    1: () => { location.hash = '#/now'; },
    2: () => { location.hash = '#/agents'; },
    3: () => { location.hash = '#/cost'; },
    4: () => { if (!fleetLink.hidden) location.hash = '#/fleet'; },
    c: () => { location.hash = '#/new'; },
    j: () => step(1),
    k: () => step(-1),
    '/': () => view?.search?.(),
    a: () => request?.querySelector('.allow')?.click(),
    d: () => request?.querySelector('.deny')?.click(),
    '?': () => dialog.showModal(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

document.querySelector('#help').addEventListener('click', () => dialog.showModal());
document.querySelector('#keys-close').addEventListener('click', () => dialog.close());
document.querySelector('#logout').addEventListener('click', async () => {
  await quiet().catch(() => {});
  await remove(`/v1/login?path=${encodeURIComponent(base)}`).catch(() => {});
  dialog.close();
  location.reload();
});
document.addEventListener('keydown', onKey);
window.addEventListener('hashchange', () => {
  const token = tokenOfAddress();
  if (token !== undefined) logIn(token).catch((error) => askForToken(error.message));
  else show();
});
unauthorized.addEventListener('unauthorized', () => {
  if (!isOut) askForToken();
});

watch(() => {
  showConnection();
  findFleet();
  // Another tab logged in.
  if (isOut && state.snapshots > outAt) comeIn();
  if (!isOut) view?.update();
});
drawAttention();

const token = tokenOfAddress();
if (token !== undefined) {
  try {
    await post('/v1/login', {token, path: base});
    show();
  } catch (error) {
    askForToken(error.status === 401 ? 'This token is not valid, or was revoked.' : error.message);
  }
} else {
  show();
}
join();
