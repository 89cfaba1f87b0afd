// Draws attention to requests: the title, the favicon, the count beside Now, and notifications.

import {marked} from './dom.js';
import {requests, state, watch} from './state.js';
import {subject} from './request.js';

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
  if (!state.leads || document.hasFocus() || !('Notification' in window) || Notification.permission !== 'granted') return;
  try {
    const notification = new Notification(`${run.provider} needs an answer`, {
      body: marked(request.message ?? [request.toolName, subject(request.input)].filter(Boolean).join(': ').slice(0, 200)),
      tag: request.requestId,
      icon: 'page/icon-waiting.svg',
    });
    notification.onclick = () => {
      window.focus();
      location.hash = '#/now';
      notification.close();
    };
  } catch {
    // Chrome on Android supports notifications of service workers only.
  }
}

/// Starts to draw attention.
export function start() {
  watch(show);
  const button = document.querySelector('#notify');
  const update = () => {
    button.hidden = !('Notification' in window) || !window.isSecureContext || Notification.permission !== 'default';
  };
  button.addEventListener('click', () => Notification.requestPermission().then(update));
  update();
}
