// Draws attention to requests: the title, the favicon, the count beside Now, and notifications.

import {marked} from './dom.js';
import {subject} from './edit.js';
import {nameOf} from './marks.js';
import {requests, state, watch} from './state.js';

const seen = new Set();
let isFirst = true;
let name = 'teamster';

/// Names the view in the title.
export function title(view) {
  name = view === 'Now' ? 'teamster' : `${view} · teamster`;
  show();
}

function show() {
  const waiting = requests();
  const prefix = waiting.length > 0 ? `(${waiting.length}) ` : '';
  document.title = prefix + name;
  const badge = document.querySelector('#waiting');
  badge.hidden = waiting.length === 0;
  badge.textContent = String(waiting.length);
  badge.setAttribute('aria-label', `${waiting.length} waiting`);
  const icon = document.querySelector('link[rel=icon]');
  const href = waiting.length > 0 ? 'page/icon-waiting.svg' : 'page/icon.svg';
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href);
  for (const {request, run} of waiting) {
    if (seen.has(request.requestId)) continue;
    seen.add(request.requestId);
    // Requests from before the page was opened are shown on it.
    if (!isFirst) notify(request, run);
  }
  if (state.loaded) isFirst = false;
}

function notify(request, run) {
  // Only one tab notifies, and only while it has no focus.
  if (!state.leads || document.hasFocus() || !canNotify() || Notification.permission !== 'granted') return;
  const body = marked([run.title && run.provider, request.message ?? [request.toolName, subject(request.input)].filter(Boolean).join(': ')].filter(Boolean).join(': ').slice(0, 300));
  try {
    const notification = new Notification(`${nameOf(run)} needs an answer`, {
      body,
      tag: request.requestId,
      icon: 'page/icon-waiting.svg',
    });
    notification.onclick = () => {
      window.focus();
      location.hash = '#/now';
      notification.close();
    };
  } catch {
    isRefused = true;
    offer();
  }
}

/// True if the browser has refused to make a notification: Chrome on Android makes those of service workers only.
let isRefused = false;

function canNotify() {
  return window.isSecureContext && 'Notification' in window && !isRefused;
}

/// Tries whether a page can make notifications. Without a permission, one that can be made is not shown.
function probe() {
  if (!canNotify() || Notification.permission === 'granted') return;
  try {
    new Notification('teamster').onerror = () => {};
  } catch {
    isRefused = true;
  }
}

const INSTEAD = ' An app such as ntfy shows them on a phone: teamster serve --callback URL calls it (docs/phone.md).';

/// Says how requests are notified of here, or why they are not.
function condition() {
  if (!window.isSecureContext) return `A browser shows notifications of pages on HTTPS or localhost only, and this one is on neither.${INSTEAD}`;
  if (!canNotify()) return `This browser shows no notifications of an open page.${INSTEAD}`;
  if (Notification.permission === 'granted') return 'Requests are notified of while this page is open and has no focus.';
  if (Notification.permission === 'denied') return `They are blocked for this page: its settings in the browser allow them.${INSTEAD}`;
  return 'The bell turns them on.';
}

/// Shows the bell where it does something, and the condition beside the keys.
function offer() {
  document.querySelector('#notify').hidden = !canNotify() || Notification.permission !== 'default';
  document.querySelector('#notifications').textContent = condition();
}

/// Starts to draw attention.
export function start() {
  watch(show);
  document.querySelector('#notify').addEventListener('click', () => Notification.requestPermission().then(offer));
  probe();
  offer();
}
