// The view Run: the log as cards, requests, changed files, usage, and the buttons that stop the run.

import {get, getIfThere, patch, post} from './api.js';
import {title} from './attention.js';
import {changes} from './changes.js';
import {ago, copier, count, fill, h, icon, keyed, live, many, path, put, span, time, usd} from './dom.js';
import {Entries, fileRows, planRows, tokens} from './entries.js';
import {followUp} from './follow.js';
import {runOf} from './history.js';
import {conditionMark} from './now.js';
import {nameOf} from './marks.js';
import {formatted} from './prose.js';
import {requestCard} from './request.js';
import {composer} from './session.js';
import {state} from './state.js';

/// Number of entries at the end of a log that are shown at first.
const MOST = 4000;
/// Time, in milliseconds, after which the browser may do something else.
const SLICE = 12;
/// Size above which a prompt is folded.
const LONG = {lines: 20, text: 2000};
/// Distance from the end, in pixels, within which the view follows new entries.
const NEAR = 160;

const isAtEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - NEAR;
/// Scrolls to the end, and again once what is there has been laid out and has its height.
const toEnd = (again = 3) => {
  window.scrollTo({top: document.documentElement.scrollHeight});
  if (again > 0) requestAnimationFrame(() => document.querySelector('main.run') && toEnd(again - 1));
};

/// Lets the browser draw, and react to its user.
const pause = () => globalThis.scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve));

/// The prompt of a run as its first card, folded if it is long. A session has its prompts in its log.
function promptCard(prompt) {
  if (prompt === undefined) return undefined;
  const lines = prompt.trim().split('\n');
  const copy = copier('the prompt', () => prompt);
  if (lines.length <= LONG.lines && prompt.length <= LONG.text) return h('div.card.user', h('header', h('span', 'Prompt'), copy), formatted(prompt));
  return h('details.card.user', h('summary', h('b', 'Prompt'), ` ${lines[0].slice(0, 120)}… `, h('span.tag', lines.length > 1 ? many(lines.length, 'line') : `${count(prompt.length)} characters`)), copy, formatted(prompt));
}

/// Shows the view of the run in `main`; with `whole`, from the beginning of a long log.
export function run(main, id, whole) {
  const list = h('div.log', {role: 'log', 'aria-live': 'off'});
  const left = changes(id, (text) => next.add(text));
  const entries = new Entries(list, state.runs.get(id)?.directory, left.show);
  const asks = h('div.requests');
  const facts = h('dl.facts');
  const files = h('ul.files');
  const plan = h('ul.plan');
  const summary = h('summary');
  const head = h('header.run-head');
  const problem = h('p.error', {role: 'alert', hidden: true});
  const actions = h('div.actions');
  const say = h('div.say');
  const asked = h('div.asked');
  const more = h('div.follow');
  const filesTitle = h('h2');
  const filesPart = h('section', {hidden: true}, filesTitle, files);
  const planPart = h('section', {hidden: true}, h('h2', 'Plan'), plan);
  const about = h('details.about', summary, planPart, filesPart, h('section', h('h2', 'About'), facts));
  const jump = h('button.jump', {type: 'button', hidden: true, onclick: () => toEnd()}, 'Newest ↓');
  fill(main, head, problem, left.part, h('div.columns', h('div.story', asked, list, asks, jump, say, more), about));
  const wide = window.matchMedia('(min-width: 62rem)');
  const widen = () => { about.open = wide.matches; };
  wide.addEventListener('change', widen);
  widen();

  let isOpen = true;
  let current = state.runs.get(id);
  let loading;
  let wanted = 0;
  let isFirst = true;

  const fail = (error) => {
    problem.hidden = false;
    problem.textContent = error.message;
  };

  /// Reads pages of the log up to the newest known entry.
  async function load() {
    wanted = Math.max(wanted, current?.seq ?? 0, 1);
    if (loading) return;
    loading = true;
    try {
      while (isOpen && !entries.ended && entries.seq < wanted) {
        const before = entries.seq;
        const page = await get(`/v1/runs/${encodeURIComponent(id)}/events?after=${before}&wait=0`);
        if (!isOpen) return;
        const follows = isFirst ? current?.state !== 'ended' : isAtEnd();
        let begin = performance.now();
        for (const entry of page?.entries ?? []) {
          entries.take(entry);
          if (performance.now() - begin < SLICE) continue;
          entries.finish();
          await pause();
          if (!isOpen) return;
          begin = performance.now();
        }
        entries.finish();
        // A 204 is also the end: nothing follows.
        entries.ended = page === undefined || page.ended;
        if (follows) toEnd();
        isFirst = false;
        problem.hidden = true;
        about_();
        if (current) box.update(current);
        if (entries.seq === before) break;
      }
    } catch (error) {
      // An unreachable server is shown above; the next message of the stream continues loading.
      if (error.status !== undefined) fail(error);
    } finally {
      loading = false;
      scrolled();
    }
  }

  const fact = (name, ...content) => (content.some((part) => part) ? [h('dt', name), h('dd', content)] : []);

  function about_() {
    const {usage, costUsd, costSource, model, session} = entries.facts;
    const known = current?.costUsd === undefined ? {costUsd, costSource} : current;
    const cost = known.costUsd !== undefined && usd(known.costUsd, known.costSource);
    const used = tokens(current?.usage ?? usage);
    // A selection stays while nothing changes.
    const key = JSON.stringify([current?.runId, current?.durationMs, current?.state, current?.sessionId, current?.machine, cost, used, model, session]);
    if (facts.dataset.key !== key) {
      facts.dataset.key = key;
      fill(facts,
        fact('Started', current && ago(current.acceptedAt)),
        fact('Took', current && (current.durationMs !== undefined ? span(current.durationMs) : current.state !== 'ended' && live(() => span(time() - current.acceptedAt)))),
        fact('Model', model ?? current?.model),
        fact('Machine', current?.machine && h('code.wrap', current.machine)),
        fact('Directory', current?.directory && h('code.wrap', current.directory)),
        fact('Branch', current?.branch && h('code.wrap', current.branch)),
        fact('Tokens', used),
        fact('Cost', cost),
        fact('Session', (current?.sessionId ?? session) && h('code.wrap', current?.sessionId ?? session)),
        fact('In a terminal', h('code.wrap', `teamster attach ${id.slice(0, 13)}`)));
    }
    // Where all changes of the workspace are shown, only reports of others add something.
    const isShown = current?.state === 'ended' && current.workspace?.filesChanged !== undefined;
    const reported = [...entries.files].filter(([name]) => !isShown || name.startsWith('/'));
    fileRows(files, reported);
    filesTitle.textContent = isShown ? 'Files changed elsewhere' : 'Files changed';
    filesPart.hidden = reported.length === 0;
    planRows(plan, entries.plan);
    planPart.hidden = entries.plan.length === 0;
    const parts = [entries.plan.length > 0 && `${entries.plan.filter((item) => item.status === 'completed').length} of ${entries.plan.length} done`,
      reported.length > 0 && !isShown && `${many(reported.length, 'file')} changed`, cost, used];
    fill(summary, parts.filter(Boolean).slice(0, 3).join(' · ') || 'About this run');
  }

  const condition = h('span');
  const name = h('b');
  const provider = h('span.by');
  const rename = h('button.quiet.rename', {type: 'button', 'aria-label': 'Change the title', title: 'Change the title', onclick: () => renaming()}, icon('edit'));
  const where = h('p.where');
  put(head, h('a.back', {href: '#/now', 'aria-label': 'Back to Now'}, icon('back')),
    h('div.who', h('h1', h('span.named', name, rename), provider, condition), where), actions);
  const cancel = h('button', {type: 'button'}, 'Cancel');
  const kill = h('button.danger', {type: 'button', hidden: true, title: 'Without letting the CLI clean up'}, 'Stop by force');
  const stop = async (body, button) => {
    button.disabled = true;
    try {
      await post(`/v1/runs/${encodeURIComponent(id)}/cancel`, body);
      cancel.textContent = 'Stopping…';
      kill.hidden = body.kill === true;
      return true;
    } catch (error) {
      button.disabled = false;
      if (error.code !== 'RUN_ENDED') fail(error);
      return error.code === 'RUN_ENDED';
    }
  };
  cancel.onclick = () => stop({}, cancel);
  kill.onclick = () => stop({kill: true}, kill);
  put(actions, kill, cancel);

  let mark;
  const box = composer(id, say, () => entries.isInTurn);
  const next = followUp(more, () => stop({}, cancel));

  function scrolled() {
    jump.hidden = isAtEnd();
  }
  window.addEventListener('scroll', scrolled, {passive: true});
  // What sticks to the window sticks below the head. Cards have their height once they are laid out.
  const sized = new ResizeObserver(() => {
    main.style.setProperty('--head', `${head.offsetHeight}px`);
    scrolled();
  });
  sized.observe(head);
  sized.observe(main);

  function update() {
    const now = state.runs.get(id);
    if (now) current = now;
    if (!current) return;
    if (!mark) {
      mark = conditionMark(current);
      condition.replaceWith(mark);
      fill(where, current.directory && [icon('folder'), path(current.directory)], current.branch && [icon('branch'), current.branch]);
    }
    mark.run = current;
    mark.refresh();
    const its = nameOf(current);
    if (name.textContent !== its) {
      name.textContent = its;
      title(its);
    }
    provider.textContent = current.title ? current.provider : '';
    const isLive = current.state !== 'ended';
    cancel.hidden = !isLive;
    if (current.kind === 'session' && cancel.textContent === 'Cancel') cancel.textContent = 'End session';
    if (!isLive) kill.hidden = true;
    box.update(current);
    next.update(current);
    const follows = isAtEnd();
    left.update(current);
    entries.requested(current.requests);
    keyed(asks, current.requests, (request) => request.requestId, (request) => requestCard(request, current, {short: true}));
    about_();
    if (follows && !isFirst) toEnd();
    if (current.seq > entries.seq) load();
  }

  /// Shows a field for another title in place of the one that is there.
  function renaming() {
    if (!current || name.contains(document.activeElement)) return;
    const input = h('input', {type: 'text', value: current.title ?? '', maxLength: 200, 'aria-label': 'Title', placeholder: 'The first line of its prompt'});
    const done = () => {
      form.replaceWith(name);
      rename.hidden = false;
    };
    const form = h('form.title', {
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          await patch(`/v1/runs/${encodeURIComponent(id)}`, {title: input.value.trim() || null});
          // The stream brings it, but for a run that is not among the newest.
          const view = await getIfThere(`/v1/runs/${encodeURIComponent(id)}`);
          current = {...current, title: view ? view.title : input.value.trim() || undefined};
          done();
          update();
        } catch (error) {
          fail(error);
        }
      },
      onkeydown: (event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        done();
      },
    }, input, h('button', {type: 'submit'}, 'Save'));
    name.replaceWith(form);
    rename.hidden = true;
    input.focus();
  }

  /// Shows the row of the history, for a run without a log.
  async function recorded(error) {
    if (error.code !== 'RUN_NOT_FOUND') throw error;
    const record = await getIfThere(`/v1/history/${encodeURIComponent(id)}`);
    if (!record) throw error;
    fill(asked, promptCard(record.prompt));
    list.append(h('p.empty', 'There is no log of this run: it was attached to a terminal, or its log was deleted.'));
    if (record.error) list.append(h('div.card.failure', h('p', record.error.message), h('p.note', [record.error.code, record.error.kind].filter(Boolean).join(' · '))));
    entries.ended = true;
    return runOf(record);
  }

  async function begin() {
    try {
      const view = get(`/v1/runs/${encodeURIComponent(id)}`);
      view.then(({prompt}) => isOpen && fill(asked, promptCard(prompt)), () => {});
      // The id may be a prefix, or belong to a run that is not in the stream.
      current ??= await view.catch(recorded);
      entries.directory = current.directory;
      if (current.seq > MOST && !whole) {
        entries.seq = current.seq - MOST;
        list.append(h('p.line', `The first ${entries.seq} entries of this log are not shown. `, h('a', {href: `#/run/${encodeURIComponent(id)}/all`}, 'Show all of it')));
      }
      update();
      await load();
    } catch (error) {
      fail(error);
    }
  }
  begin();
  return {
    title: name.textContent || 'Run',
    update,
    close: () => {
      isOpen = false;
      left.close();
      sized.disconnect();
      window.removeEventListener('scroll', scrolled);
      wide.removeEventListener('change', widen);
    },
  };
}
