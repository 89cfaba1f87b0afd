// The view Now: pending requests, live runs, agents, and ended runs. Usually one line.

import {ago, count, fill, h, icon, keyed, live, many, path, rough, span, ticking, time, usd} from './dom.js';
import {inWords, isBad, nameOf, nextTick, stateWord} from './marks.js';
import {requestCard} from './request.js';
import {notAnswering, requests, runs, state} from './state.js';

/// Time without an entry after which a run may be waiting for something that it cannot report.
export const QUIET = 120_000;
/// Number of ended runs that are shown at first.
const RECENT = 6;

const ENDINGS = {completed: 'completed', failed: 'failed', aborted: 'cancelled', timed_out: 'timed out', incomplete: 'broke off'};

/// Returns the state of a run and its certainty: a word and the kind of its mark.
export function condition(run) {
  if (run.state === 'ended') return [ENDINGS[run.status] ?? run.status ?? 'ended', run.status === 'completed' ? 'done' : run.status === 'aborted' ? 'off' : 'bad'];
  if (state.lostAt !== 0) return ['cannot know', 'unknown'];
  if (run.state === 'queued') return [run.queue ? `queued: ${run.queue.detail}` : 'queued', 'off'];
  if (run.state === 'unknown') return [`cannot know: ${run.machine ?? 'its machine'} does not report`, 'unknown'];
  if (run.state === 'waiting') return ['waits for you', 'waits'];
  const silent = notAnswering(run);
  if (silent) return [silent.pid ? `does not answer (pid ${silent.pid})` : 'does not answer', 'bad'];
  if (run.kind === 'session' && state.live.get(run.runId)?.state === 'idle') return ['waits for a prompt', 'off'];
  if (run.changedAt === undefined) return ['cannot know: it has written nothing yet', 'unknown'];
  const quiet = time() - run.changedAt;
  if (quiet >= QUIET) return [`may wait: quiet for ${rough(quiet)}`, 'maybe'];
  return ['running', 'runs'];
}

/// Shows the mark and the word, updated every second.
export function conditionMark(run) {
  const mark = h('span.mark-state');
  const word = h('span');
  const element = h('span.condition', mark, word);
  element.run = run;
  return ticking(element, () => {
    const [text, kind] = condition(element.run);
    if (word.textContent !== text) word.textContent = text;
    if (mark.dataset.kind !== kind) mark.dataset.kind = kind;
  });
}

const KINDS = {session: 'session', tick: 'tick'};

function row(run) {
  const conditionOf = conditionMark(run);
  const figures = h('span.figures');
  const machine = h('span');
  const place = h('span.place', machine, run.directory ? path(run.directory) : '', run.branch && [icon('branch'), run.branch]);
  const agent = h('span.by', run.provider);
  const name = h('b', nameOf(run));
  const line = h('span.name', name, run.title && agent, run.model && h('span.model', run.model), KINDS[run.kind] && h('span.tag', KINDS[run.kind]));
  const element = h('a.row.run', {href: `#/run/${run.runId}`},
    line,
    place,
    conditionOf, figures, ago(run.state === 'ended' ? run.changedAt ?? run.acceptedAt : run.acceptedAt));
  element.update = (now) => {
    conditionOf.run = now;
    conditionOf.refresh();
    // A person, or its first prompt, gives it another one.
    if (name.textContent !== nameOf(now)) name.textContent = nameOf(now);
    if (now.title && !line.contains(agent)) name.after(agent);
    line.classList.toggle('titled', Boolean(now.title));
    const where = now.machine ? `${now.machine} ` : '';
    if (machine.textContent !== where) machine.textContent = where;
    const isFailed = now.state === 'ended' && now.error && now.status !== 'aborted';
    figures.classList.toggle('why', Boolean(isFailed));
    const text = isFailed ? now.error.message : [now.durationMs !== undefined && span(now.durationMs), now.workspace?.filesChanged > 0 && inWords(now.workspace), now.costUsd !== undefined && usd(now.costUsd, now.costSource),
      now.costUsd === undefined && now.usage && `${count((now.usage.inputTokens ?? 0) + (now.usage.outputTokens ?? 0))} tokens`].filter(Boolean).join(' · ');
    if (figures.textContent !== text) figures.textContent = text;
  };
  element.update(run);
  return element;
}

/// Returns a list of runs, which `update` updates.
export function runRows(list, some) {
  // An ended run gets a new row, with another time.
  keyed(list, some, (run) => `${run.runId} ${run.state === 'ended'}`, row, (element, run) => element.update(run));
}

function agentRow(agent) {
  const element = h('a.row.agent', {href: `#/agents/${encodeURIComponent(agent.id)}`});
  element.update = (now) => {
    const key = JSON.stringify([now.state, now.activity?.sleep_until_epoch, now.activity?.state, now.lastError, now.reason]);
    if (element.shown === key) return;
    element.shown = key;
    const [word, kind] = stateWord(now);
    fill(element,
      h('span.name', h('b', now.id), now.role && h('span.model', now.role)),
      h('span.condition', h('span.mark-state', {'data-kind': kind}), word),
      h(isBad(now) ? 'span.figures.why' : 'span.figures', isBad(now) ? now.lastError?.message ?? now.reason ?? '' : live(() => nextTick(now))));
  };
  element.update(agent);
  return element;
}

/// Returns the summary line.
function calm(waiting, running, agents) {
  const bad = agents.filter(isBad);
  const maybe = running.filter((run) => condition(run)[1] === 'maybe');
  if (state.lostAt !== 0) return ['unknown', `Cannot know: no connection for ${rough(Date.now() - state.lostAt)}.`, 'Below is what was known before.'];
  const rest = [];
  const silent = running.filter((run) => notAnswering(run) && run.state !== 'waiting').length;
  const idle = running.filter((run) => condition(run)[1] === 'off').length;
  const busy = running.length - idle - silent;
  if (busy > 0) rest.push(`${many(busy, 'run')} at work`);
  if (idle > 0) rest.push(`${many(idle, 'session')} waiting for a prompt`);
  const asleep = agents.filter((agent) => !isBad(agent) && agent.state !== 'stopped');
  if (asleep.length > 0) rest.push(`${many(asleep.length, 'agent')} on duty`);
  const stopped = agents.filter((agent) => agent.state === 'stopped').length;
  if (stopped > 0) rest.push(`${stopped} stopped`);
  const also = rest.length > 0 ? `${rest.join(', ')}.` : 'Nothing is running.';
  if (waiting.length > 0) return ['waits', waiting.length === 1 ? 'One request waits for you.' : `${waiting.length} requests wait for you.`, also];
  if (silent > 0) return ['bad', silent === 1 ? 'One run does not answer.' : `${silent} runs do not answer.`, also];
  if (bad.length > 0) return ['bad', bad.length === 1 ? `${bad[0].id} needs a look.` : `${bad.length} agents need a look.`, also];
  if (maybe.length > 0) return ['maybe', maybe.length === 1 ? 'One run may wait for something.' : `${maybe.length} runs may wait for something.`, also];
  return ['calm', 'Nothing needs you.', also];
}

/// Shows the view in `main`; returns the function that updates it.
export function now(main) {
  const line = h('h1.calm', {'aria-live': 'polite'});
  const asks = h('div.requests');
  const running = h('div.rows');
  const agents = h('div.rows');
  const ended = h('div.rows');
  const more = h('button.quiet', {type: 'button'}, 'Older runs');
  const none = h('p.empty', {hidden: true}, 'No run matches.');
  const filter = h('div.filter');
  const find = h('button.quiet', {type: 'button', 'aria-label': 'Search runs', title: 'Search runs (/)', onclick: () => search()}, icon('search'));
  /// Older runs, which stay while there is a search.
  let older;
  /// What the server has found of a search.
  let searched;
  /// What is searched for, once its module is loaded.
  let wanted;
  const section = (title, ...content) => h('section', h('h2', title), ...content);
  const parts = {
    running: section('At work', running),
    agents: section('Agents', agents),
    ended: h('section', h('div.head', h('h2', 'Ended'), find), ended, none, more),
  };
  const first = h('p.empty', h('b', 'No run yet. '), h('a', {href: '#/new'}, 'Start one'), ' here, or in a terminal: ', h('code', 'teamster run --detach claude "…"'));
  fill(main, line, asks, filter, parts.running, parts.agents, first, parts.ended);

  const read = async (from) => {
    more.disabled = true;
    try {
      await from.read();
      more.textContent = 'Older runs';
    } catch (error) {
      more.textContent = `${error.message}. Try again`;
    }
    more.disabled = false;
    update();
  };
  more.onclick = async () => {
    const {OlderRuns} = await import('./history.js');
    await read(searched ?? (older ??= new OlderRuns()));
  };
  /// Asks the server for what is searched for.
  const ask = async (queries) => {
    const {OlderRuns} = await import('./history.js');
    if (!main.contains(ended)) return;
    searched = queries && new OlderRuns(queries);
    more.textContent = 'Older runs';
    if (searched) await read(searched);
    else update();
  };

  ticking(line, () => {
    if (!state.loaded) return;
    const live = runs().filter((run) => run.state !== 'ended');
    const [kind, big, small] = calm(requests(), live, state.agents?.agents ?? []);
    const key = `${kind} ${big} ${small}`;
    if (line.shown === key) return;
    line.shown = key;
    line.dataset.kind = kind;
    fill(line, h('span', big), ' ', h('small', small));
  });

  const update = () => {
    main.classList.toggle('loading', !state.loaded);
    if (!state.loaded) return;
    line.refresh();
    const every = runs();
    keyed(asks, requests(), ({request}) => request.requestId, ({request, run}) => requestCard(request, run));
    const matches = wanted?.isSet() ? wanted.matches : undefined;
    /// What the server has found is found, also by a word that only its prompt has.
    const isFound = (run) => !matches || matches(run) || (searched?.found.has(run.runId) && wanted.isInState(run));
    const live = every.filter((run) => run.state !== 'ended' && isFound(run));
    runRows(running, live);
    parts.running.hidden = live.length === 0;
    const some = state.agents?.agents ?? [];
    keyed(agents, some, (agent) => agent.id, agentRow, (element, agent) => element.update(agent));
    parts.agents.hidden = some.length === 0 || matches !== undefined;
    // Ended ticks are shown with their agents.
    const over = every.filter((run) => run.state === 'ended' && run.kind !== 'tick');
    const known = new Set(every.map((run) => run.runId));
    const from = searched ?? older;
    const before = [...(from?.found.values() ?? [])].filter((run) => !known.has(run.runId) && run.state === 'ended');
    const past = from ? [...over, ...before].sort((a, b) => b.acceptedAt - a.acceptedAt) : matches ? over : over.slice(0, RECENT);
    const found = past.filter(isFound);
    runRows(ended, found);
    more.hidden = from ? !from.hasMore : false;
    none.hidden = !matches || more.disabled || found.length + live.length > 0;
    find.hidden = filter.hasChildNodes();
    first.hidden = every.length > 0;
  };
  /// Shows the fields, which the address may have filled.
  const search = async () => {
    const module = await import('./search.js');
    // Another view may have come meanwhile.
    if (!filter.isConnected) return;
    wanted ??= module.search(filter, () => update(), ask, () => [...runs(), ...[older, searched].flatMap((from) => [...(from?.found.values() ?? [])])]);
    update();
    wanted.focus();
  };
  update();
  if (location.hash.includes('?')) search();
  return {title: 'Now', update, search};
}
