// Notifications of requests and of ended runs: the bell with its states, and the subscription of this browser. What a
// notification looks like is in service-worker.js.

import {base, getIfThere, post, remove, unauthorized} from './api.js';
import {isPossible} from './attention.js';
import {fill, h, marked} from './dom.js';
import {subject} from './edit.js';
import {nameOf} from './marks.js';
import {condition} from './now.js';
import {recall, remember} from './settings.js';
import {requests, runs, state, watch} from './state.js';

/// The setting of this browser: `on` or `off`, as a person has chosen last.
const SETTING = `teamster.notifications ${base}`;
const button = document.querySelector('#notify');

/// The registration of the service worker, once notifications are on.
let registration;
/// The id of this browser's subscription at the server, if it has one: then messages come while the page is closed, too.
let subscription;
/// Why this browser has no subscription, although the server offers it.
let problem;

const isApple = 'standalone' in navigator && !navigator.standalone;

/// The state: its kind, a word for it, and an explanation.
function current() {
  if (!window.isSecureContext) return ['impossible', 'Not possible at this address', 'Browsers show notifications of pages on HTTPS and on localhost only; docs/phone.md has ways to get there.'];
  if (!isPossible()) {
    return ['impossible', 'Not possible in this browser', isApple ? 'On an iPhone or iPad, add the page to the home screen (Share, Add to Home Screen), and open it from there.' : 'It has no notifications of pages, at least not in a private window.'];
  }
  if (Notification.permission === 'denied') return ['blocked', 'Blocked', 'This browser blocks notifications of this page. Allow them in its settings for this site, then load the page again.'];
  if (!registration) return ['off', 'Off', ''];
  if (subscription) return ['on', 'On', 'This browser notifies you of each request, of the end of each run and of a session that waits after a long turn, also while the page is closed.'];
  return ['on', 'On while the page is open', 'This browser notifies you of each request, of the end of each run and of a session that waits after a long turn, while the page is open and has no focus.'];
}

const INSTEAD = ['An app such as ntfy can notify you too: ', h('code.wrap', 'teamster serve --callback URL'), ' calls it (docs/phone.md).'];

function show() {
  const [kind, word] = current();
  button.dataset.state = kind;
  button.title = `Notifications: ${word}`;
  button.setAttribute('aria-label', button.title);
  const name = kind === 'impossible' || kind === 'blocked' ? 'bell-off' : 'bell';
  button.querySelector('use').setAttribute('href', `page/icons.svg#${name}`);
}

/// Subscribes at the browser's push service, and at the server.
async function subscribe(key) {
  const {pushManager} = registration;
  if (!pushManager) throw new Error('it has no Web Push');
  const make = () => pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key});
  const made = await make().catch(async (error) => {
    // The one that is there may be for an earlier key of the server.
    const other = await pushManager.getSubscription();
    if (!other) throw error;
    await other.unsubscribe();
    return make();
  });
  const {endpoint, keys} = made.toJSON();
  ({id: subscription} = await post('/v1/web-push/subscriptions', {endpoint, keys}));
}

/// Turns notifications on, if this browser allows them.
async function turnOn() {
  if (await Notification.requestPermission() !== 'granted') return;
  const wasOn = registration !== undefined;
  await navigator.serviceWorker.register('service-worker.js');
  registration = await navigator.serviceWorker.ready;
  remember(SETTING, 'on');
  problem = undefined;
  const push = await getIfThere('/v1/web-push').catch(() => undefined);
  if (!push) subscription = undefined;
  else await subscribe(push.key).catch((error) => { subscription = undefined; problem = error.message; });
  if (!wasOn) note();
}

/// Turns notifications off, in all tabs of this browser.
export async function turnOff() {
  if (!registration) return;
  remember(SETTING, 'off');
  const id = subscription;
  const made = await registration.pushManager?.getSubscription();
  registration = subscription = problem = undefined;
  show();
  // One that the server still has ends with the next message.
  if (id) await remove(`/v1/web-push/subscriptions/${id}`).catch(() => {});
  await made?.unsubscribe();
}

let dialog;

/// Opens the dialog of the notifications.
export async function open() {
  if (!dialog) {
    dialog = h('dialog', {id: 'notifications', 'aria-labelledby': 'notifications-title'});
    document.body.append(dialog);
  }
  render();
  dialog.showModal();
  // What turning on would do.
  if (current()[0] === 'off') render(await getIfThere('/v1/web-push').catch(() => undefined));
}

function render(push) {
  show();
  const [kind, word, text] = current();
  const turn = (name, label, act) => h(name, {
    type: 'button',
    onclick: async (event) => {
      event.target.disabled = true;
      await act().catch((error) => { problem = error.message; });
      render(push);
    },
  }, label);
  const all = 'Turn them on to be notified of each request and of the end of each run';
  const offer = push
    ? `${all}, also while this page is closed. The title of the run then goes, encrypted, through the push service of the browser’s maker.`
    : `${all} while this page is open and has no focus.`;
  const isOpenOnly = kind === 'on' && !subscription;
  fill(dialog,
    h('h2', {id: 'notifications-title'}, 'Notifications'),
    h('p', h('b', word)),
    h('p', kind === 'off' ? offer : text),
    problem && h('p.error', {role: 'alert'}, `No notifications while the page is closed: ${problem}.`),
    isOpenOnly && !problem && h('p', 'Also while it is closed: ', h('code.wrap', 'teamster serve --web-push'), '.'),
    kind !== 'off' && !subscription && h('p', INSTEAD),
    h('p.between',
      kind === 'off' ? turn('button.primary', 'Turn on', turnOn) : kind === 'on' ? turn('button', 'Turn off', turnOff) : h('span'),
      h('button', {type: 'button', onclick: () => dialog.close()}, 'Close')));
}

/// Runs that have not ended, and requests that wait, as of the last change; before it, they are not known.
let live = new Set();
let seen = new Set();
let isKnown = false;
/// The starts of turns in progress, by their session.
const working = new Map();
/// The milliseconds that a turn must have taken for its end to be worth a notification, as the server has it.
const LONG_TURN = 10_000;

/// The sessions that wait for a prompt since the last change, after a long turn.
function rested() {
  const found = [];
  for (const run of runs()) {
    const now = run.kind === 'session' && run.state !== 'ended' ? state.live.get(run.runId) : undefined;
    if (now?.turn) working.set(run.runId, now.turn.beganAt);
    if (now?.state !== 'idle' || !working.has(run.runId)) continue;
    if (now.since - working.get(run.runId) >= LONG_TURN) found.push({runId: run.runId, title: nameOf(run), text: 'waits for a prompt'});
    working.delete(run.runId);
  }
  return found;
}

/// Notes what there is, and is not new from now on.
function note() {
  isKnown = state.loaded;
  live = new Set(runs().filter((run) => run.state !== 'ended').map((run) => run.runId));
  seen = new Set(requests().map(({request}) => request.requestId));
}

/// The notifications of what is new.
function news() {
  const asked = requests().filter(({request}) => !seen.has(request.requestId)).map(({request, run}) => {
    const input = [request.toolName, subject(request.input)].filter(Boolean).join(': ');
    const text = [run.title && run.provider, request.message ?? input].filter(Boolean).join(': ');
    return {runId: run.runId, requestId: request.requestId, title: `${nameOf(run)} needs an answer`, text: marked(text.slice(0, 300))};
  });
  const isUseful = (run) => run.status !== 'aborted' && !(run.kind === 'tick' && run.status === 'completed');
  const ended = runs().filter((run) => run.state === 'ended' && live.has(run.runId) && isUseful(run));
  return [...asked, ...rested(), ...ended.map((run) => ({runId: run.runId, title: nameOf(run), text: condition(run)[0]}))];
}

/// What was chosen is done once more snapshots than these have come: it needs the login, and a server that was away, or a
/// token that is another one, may know nothing of this browser.
let obeyAfter = 0;
const obeyAgain = () => { obeyAfter = Math.min(obeyAfter, state.snapshots); };
unauthorized.addEventListener('unauthorized', obeyAgain);

async function follow() {
  if (!state.loaded) return;
  if (state.lostAt !== 0) obeyAgain();
  if (state.snapshots > obeyAfter) {
    obeyAfter = Infinity;
    await obey();
  }
  if (!registration) return;
  const {active} = registration;
  const found = isKnown ? news() : [];
  note();
  // Only one tab notifies.
  if (!state.leads) return;
  // It does so only while it has no focus; with a subscription the server does.
  const own = subscription || document.hasFocus() ? [] : found;
  // A request that was answered is over. What is new of its run takes its place, and has its tag: it must come after this.
  for (const one of await registration.getNotifications().catch(() => [])) {
    const {runId, requestId} = one.data ?? {};
    if (requestId && !seen.has(requestId) && !own.some((other) => other.runId === runId)) one.close();
  }
  for (const one of own) active.postMessage(one);
}

navigator.serviceWorker?.addEventListener('message', ({data}) => {
  if (data.open) location.hash = data.open;
});

/// Does what was chosen, here or in another tab.
async function obey() {
  if (isPossible() && Notification.permission === 'granted' && recall(SETTING) === 'on') await turnOn().catch((error) => { problem = error.message; });
  else registration = subscription = undefined;
  show();
}

window.addEventListener('storage', ({key}) => key === SETTING && obey());
show();
watch(follow);
follow();
