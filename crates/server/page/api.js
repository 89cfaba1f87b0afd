// Requests to the API. Each has the cookie of the login; the page uses the public API only.

import {setClock} from './dom.js';

/// An error of the API: a problem of RFC 9457.
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `the server replied with status ${status}`);
    this.status = status;
    this.code = body?.code;
  }
}

/// Dispatches an event when a request was refused because there is no login.
export const unauthorized = new EventTarget();

/// The address of a path of the API: below the page's, because a proxy may serve it below a path of its own.
export const address = (path) => path.slice(1);

/// The path of the page.
export const base = location.pathname.replace(/[^/]*$/, '');

async function send(method, path, {body, headers = {}, text = false, signal} = {}) {
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(address(path), {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: 'same-origin',
  });
  setClock(response);
  if (!response.ok) {
    const problem = new Problem(response.status, await response.json().catch(() => undefined));
    if (response.status === 401 && !path.startsWith('/v1/login')) unauthorized.dispatchEvent(new Event('unauthorized'));
    throw problem;
  }
  if (response.status === 204) return undefined;
  return text ? response.text() : response.json();
}

export const get = (path, options) => send('GET', path, options);
export const post = (path, body, headers) => send('POST', path, {body, headers});
export const patch = (path, body) => send('PATCH', path, {body});
export const remove = (path) => send('DELETE', path);

/// The same, or undefined if this server has no such path.
export async function getIfThere(path) {
  try {
    return await get(path);
  } catch (error) {
    if (error.status === 404) return undefined;
    throw error;
  }
}

/// Returns a key for `Idempotency-Key`. `crypto.randomUUID` exists on HTTPS and localhost only.
export function key() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
