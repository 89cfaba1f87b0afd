// The shared state: one stream of `/v1/events` for all tabs of this browser, because a browser opens only six
// connections to an origin. The tab that holds the lock has the stream and passes its messages on.

import {address, base, get, getIfThere, unauthorized} from './api.js';

/// Time without a first message after which a proxy is taken to buffer the stream, and the page polls.
const PATIENCE = 6000;
const POLL = 3000;
/// Time within which a broken stream can return without a notice.
const LOST_AFTER = 3000;
/// Interval at which the processes of live runs are asked: one that hangs writes nothing that would show it.
const ASK = 10_000;

export const state = {
  /// True once the first message has arrived.
  loaded: false,
  /// Runs by their ids.
  runs: new Map(),
  /// Activity of live runs by their ids, which is not in the stream. `seq` is the newest entry at that time.
  live: new Map(),
  /// The agents of the supervisor; undefined without a configuration.
  agents: undefined,
  /// Start of the time without a connection; 0 while there is one.
  lostAt: 0,
  /// True if this tab has the stream.
  leads: false,
  /// Number of snapshots that have arrived.
  snapshots: 0,
};

const listeners = new Set();

/// Calls the listener after each change; the returned function ends the subscription.
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/// Requests the activity of live sessions that have new entries.
async function askSessions() {
  for (const run of state.runs.values()) {
    if (run.kind !== 'session' || run.state === 'ended' || state.live.get(run.runId)?.seq === run.seq) continue;
    state.live.set(run.runId, {...state.live.get(run.runId), seq: run.seq});
    const session = await getIfThere(`/v1/sessions/${encodeURIComponent(run.runId)}`).catch(() => undefined);
    if (!session?.live) continue;
    state.live.set(run.runId, {seq: run.seq, ...session.live});
    changed();
  }
}

/// Requests the activity of all live runs, again and again.
async function askAll() {
  if (!isOut && !document.hidden && [...state.runs.values()].some((run) => run.state !== 'ended')) {
    const {runs} = await get('/v1/runs?live=true&limit=1000').catch(() => ({runs: []}));
    for (const run of runs) if (run.live) state.live.set(run.runId, {seq: run.seq, ...run.live});
    changed();
  }
  setTimeout(askAll, ASK);
}

function changed() {
  for (const listener of listeners) {
    try {
      listener();
    } catch (error) {
      // The others are called, and the page goes on.
      reportError(error);
    }
  }
}

/// Returns the activity of a run whose process does not answer; undefined if it does, or has written since.
export function notAnswering(run) {
  const known = run.live ?? state.live.get(run.runId);
  return known?.state === 'not_answering' && !(run.seq > known.seq) ? known : undefined;
}

/// All runs, the newest first.
export function runs() {
  return [...state.runs.values()].sort((a, b) => b.acceptedAt - a.acceptedAt);
}

/// All pending requests, the oldest first.
export function requests() {
  return runs().flatMap((run) => run.requests.map((request) => ({request, run}))).sort((a, b) => a.request.askedAt - b.request.askedAt);
}

function take(message) {
  switch (message.type) {
    case 'snapshot':
      state.runs = new Map(message.runs.map((run) => [run.runId, run]));
      state.agents = message.agents;
      state.loaded = true;
      state.snapshots += 1;
      break;
    case 'run':
      state.runs.set(message.run.runId, message.run);
      break;
    case 'gone':
      state.runs.delete(message.runId);
      break;
    case 'agents':
      state.agents = message.agents;
      break;
    case 'connection':
      state.lostAt = message.lostAt;
      break;
  }
  changed();
  askSessions();
}

const tabs = 'BroadcastChannel' in window ? new BroadcastChannel(`teamster ${base}`) : undefined;
let source;
let retry = 0;
let timers = {};
/// True from an error 401 until the next login.
let isOut = false;

function publish(message) {
  take(message);
  tabs?.postMessage(message);
}

function snapshot() {
  return {type: 'snapshot', runs: [...state.runs.values()], agents: state.agents};
}

function reached() {
  clearTimeout(timers.lost);
  timers.lost = undefined;
  retry = 0;
  if (state.lostAt !== 0) publish({type: 'connection', lostAt: 0});
}

function lost() {
  const since = Date.now();
  timers.lost ??= setTimeout(() => publish({type: 'connection', lostAt: since}), LOST_AFTER);
}

function open() {
  source?.close();
  clearTimeout(timers.patience);
  clearTimeout(timers.open);
  source = new EventSource(address('/v1/events'));
  const opened = source;
  timers.patience = setTimeout(poll, PATIENCE);
  source.onmessage = (event) => {
    clearTimeout(timers.patience);
    clearTimeout(timers.poll);
    reached();
    publish(JSON.parse(event.data));
  };
  source.onerror = () => {
    lost();
    // A browser reconnects by itself, but not after an HTTP error, and some not after a refused connection.
    if (opened.readyState !== EventSource.CLOSED || opened !== source) return;
    retry = Math.min(retry + 1, 5);
    timers.open = setTimeout(open, 500 * 2 ** retry);
    // Reports a 401, if that is the reason.
    get('/v1/runs?limit=1').catch(() => {});
  };
}

/// Requests state that is not in the stream.
async function poll() {
  try {
    const [{runs}, agents] = await Promise.all([get('/v1/runs?limit=50'), get('/v1/agents')]);
    reached();
    publish({type: 'snapshot', runs, agents: agents.config ? agents : undefined});
  } catch {
    lost();
  }
  timers.poll = setTimeout(poll, POLL);
}

function close() {
  source?.close();
  for (const timer of Object.values(timers)) clearTimeout(timer);
  timers = {};
}

unauthorized.addEventListener('unauthorized', () => {
  isOut = true;
  close();
  tabs?.postMessage({type: 'close'});
});

// A phone that slept may not notice that its connection broke.
let hiddenAt = 0;
document.addEventListener('visibilitychange', () => {
  if (document.hidden) hiddenAt = Date.now();
  else if (state.loaded && Date.now() - hiddenAt > 30_000) connect();
});
window.addEventListener('online', () => state.loaded && connect());

/// Opens the stream, here or in the tab that has it.
export function connect() {
  isOut = false;
  if (state.leads) {
    open();
    return;
  }
  tabs?.postMessage({type: 'open'});
}

/// Joins the tabs that are there.
export function join() {
  setTimeout(askAll, ASK);
  const lead = () => {
    state.leads = true;
    open();
  };
  // Locks exist on HTTPS and localhost only.
  if (!tabs || !navigator.locks) {
    lead();
    return;
  }
  tabs.onmessage = ({data}) => {
    if (!state.leads) {
      if (!['hello', 'open', 'close'].includes(data.type)) take(data);
    } else if (data.type === 'open') {
      open();
    } else if (data.type === 'close') {
      close();
    } else if (data.type === 'hello' && state.loaded) {
      tabs.postMessage(snapshot());
      tabs.postMessage({type: 'connection', lostAt: state.lostAt});
    }
  };
  tabs.postMessage({type: 'hello'});
  // This tab holds the lock until it is closed; then another tab gets it.
  navigator.locks.request(`teamster ${base}`, () => {
    lead();
    return new Promise(() => {});
  });
}
