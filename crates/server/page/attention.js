// Draws attention to requests: the title, the favicon, the count beside Now, and the bell of the notifications.

import {requests, watch} from './state.js';

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
}

/// The module of the notifications, which is loaded once they may be on, or their dialog is opened.
let bell;
const load = () => (bell ??= import('./bell.js'));

/// Whether this browser has notifications of pages at this address.
export const isPossible = () => window.isSecureContext && 'Notification' in window && 'serviceWorker' in navigator;

/// Turns notifications off, in this browser.
export async function quiet() {
  if (bell) await (await bell).turnOff();
}

/// Starts to draw attention.
export function start() {
  watch(show);
  const button = document.querySelector('#notify');
  button.addEventListener('click', async () => (await load()).open());
  if (!isPossible()) button.querySelector('use').setAttribute('href', 'page/icons.svg#bell-off');
  else if (Notification.permission !== 'default') load();
}
