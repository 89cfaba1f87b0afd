// The view Fleet: workers, queues, limits, and runs whose machine does not report. It is there if a fleet carries out the
// runs of this server.

import {getIfThere} from './api.js';
import {ago, fill, h, keyed, live, many, rough, time} from './dom.js';
import {runRows} from './now.js';
import {runs} from './state.js';

/// Interval at which an open view reads the state.
const READ = 5000;

let known;
/// Time at which it was read.
let readAt;

/// Reads the state of the fleet.
async function read() {
  known = await getIfThere('/v1/fleet');
  readAt = time();
}

function meter(worker) {
  const part = worker.slots > 0 ? Math.min(1, worker.running / worker.slots) : 0;
  const text = `${worker.running} of ${many(worker.slots, 'slot')} used`;
  const bar = h('div.used', {'data-kind': part >= 1 ? 'maybe' : 'done'});
  bar.style.width = `${part * 100}%`;
  return [h('div.meter', {role: 'meter', 'aria-valuenow': worker.running, 'aria-valuemin': 0, 'aria-valuemax': Math.max(worker.slots, worker.running), 'aria-label': 'slots', 'aria-valuetext': text}, bar), h('span.note', text)];
}

function agentTag(agent) {
  return h('li.tag', {'data-ready': String(agent.ready)}, [agent.id, agent.version].filter(Boolean).join(' '), !agent.ready && ' · not ready');
}

function workerCard(first) {
  const head = h('header');
  const slots = h('div.slots');
  const agents = h('ul.tags', {'aria-label': 'Agents'});
  const element = h('article.card.worker', {tabIndex: 0}, head, slots, agents);
  element.update = (worker) => {
    const key = JSON.stringify(worker);
    if (element.shown === key) return;
    element.shown = key;
    element.setAttribute('aria-label', worker.name);
    fill(head, h('h3', worker.name), worker.draining && h('span.condition', h('span.mark-state', {'data-kind': 'maybe'}), 'takes no new runs'),
      h('ul.tags', {'aria-label': 'Pools'}, worker.pools.map((pool) => h('li.tag', pool))), h('span.note', [worker.version, worker.clockMs && `clock ${Math.trunc(Math.abs(worker.clockMs) / 1000)} s ${worker.clockMs > 0 ? 'ahead' : 'behind'}`].filter(Boolean).join(' · ')));
    fill(slots, meter(worker));
    const sorted = [...worker.agents].sort((a, b) => b.ready - a.ready || a.id.localeCompare(b.id));
    fill(agents, sorted.map(agentTag), sorted.length === 0 && h('li.note', 'no agent'));
  };
  element.update(first);
  return element;
}

/// The reasons for which runs of a queue wait, each once.
function reasons({pool, machine}, all) {
  const queued = all.filter((run) => run.state === 'queued' && (pool === undefined ? run.machine === machine : run.queue?.pool === pool));
  return [...new Set(queued.map((run) => run.queue.detail))].slice(0, 3);
}

function queueRow() {
  const element = h('li.card.queue');
  element.update = ({pool, machine, waiting, oldestAt, why}) => {
    const key = JSON.stringify([pool, machine, waiting, oldestAt, why]);
    if (element.shown === key) return;
    element.shown = key;
    fill(element, h('b', pool ?? machine), pool === undefined && h('span.tag', 'this machine only'), h('span', `${waiting} waiting`),
      oldestAt !== undefined && live(() => `the oldest for ${rough(time() - oldestAt)}`), why.map((text) => h('p.note', text)));
  };
  return element;
}

function holdRow(hold) {
  return h('li.card.queue', h('b', hold.agent), hold.limit && h('span.tag', hold.limit.replaceAll('_', ' ')), h('span.tag', `login ${hold.login.slice(0, 8)}`),
    live(() => (hold.until > time() ? `for ${rough(hold.until - time())}` : 'ends now')));
}

/// Returns the kind of the first line and its texts.
function summary(unknown) {
  const taking = known.workers.filter((worker) => !worker.draining);
  const sum = (of) => taking.reduce((all, worker) => all + of(worker), 0);
  const waiting = known.queues.reduce((all, queue) => all + queue.waiting, 0);
  const small = [`${sum((worker) => Math.min(worker.running, worker.slots))} of ${many(sum((worker) => worker.slots), 'slot')} used.`, waiting > 0 ? `${many(waiting, 'run')} waiting.` : 'Nothing waits.'].join(' ');
  if (taking.length === 0) return ['bad', known.workers.length === 0 ? 'No worker is present.' : 'No worker takes new runs.', small];
  if (unknown.length > 0) return ['maybe', `${many(unknown.length, 'run')} on machines that do not report.`, small];
  return ['calm', `${many(taking.length, 'worker')} at work.`, small];
}

/// Shows the view in `main`.
export function fleet(main) {
  const title = h('h1.calm', {'aria-live': 'polite'}, h('span', 'Reading…'));
  const note = h('p.error', {role: 'alert', hidden: true});
  const unknown = h('div.rows');
  const queues = h('ul.queues');
  const workers = h('div.workers');
  const holds = h('ul.queues');
  const section = (name, hint, content) => h('section', {hidden: true}, h('h2', name), hint && h('p.note', hint), content);
  const parts = {
    unknown: section('Unknown', 'Their machines do not report. They may be going on, and end once their machine is back.', unknown),
    queues: section('Waiting', undefined, queues),
    workers: section('Workers', undefined, workers),
    holds: section('Limits', 'An agent takes no runs on workers with that login until then.', holds),
  };
  const none = h('p.empty', {hidden: true}, 'This server’s own machine carries out its runs.');
  fill(main, title, note, none, parts.unknown, parts.queues, parts.workers, parts.holds);
  const update = () => {
    if (known === undefined) return;
    const all = runs();
    const lost = all.filter((run) => run.state === 'unknown');
    const [kind, big, small] = summary(lost);
    title.dataset.kind = kind;
    if (title.textContent !== `${big} ${small}`) fill(title, h('span', big), ' ', h('small', small));
    runRows(unknown, lost);
    keyed(queues, known.queues.map((queue) => ({...queue, why: reasons(queue, all)})), (queue) => `${queue.pool} ${queue.machine}`, queueRow, (element, queue) => element.update(queue));
    keyed(workers, known.workers, (worker) => worker.name, workerCard, (element, worker) => element.update(worker));
    keyed(holds, known.holds, (hold) => JSON.stringify(hold), holdRow);
    for (const [name, list] of Object.entries({unknown, queues, workers, holds})) parts[name].hidden = list.children.length === 0;
  };
  let timer;
  let isOpen = true;
  const refresh = async () => {
    try {
      if (!document.hidden) await read();
      note.hidden = true;
      none.hidden = known !== undefined;
      if (known === undefined) fill(title, h('span', 'No fleet.'));
    } catch (error) {
      note.hidden = false;
      fill(note, error.message, readAt !== undefined && [' · shown is the state of ', ago(readAt)]);
    }
    if (!isOpen) return;
    update();
    timer = setTimeout(refresh, READ);
  };
  update();
  refresh();
  return {
    title: 'Fleet',
    update,
    close() {
      isOpen = false;
      clearTimeout(timer);
    },
  };
}
