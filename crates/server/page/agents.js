// The view Agents: the state of each agent of a supervisor, its next tick, its last error, and its log.

import {get, post} from './api.js';
import {ago, fill, h, keyed, live, span, usd} from './dom.js';
import {isBad, nextTick, stateWord} from './marks.js';
import {state} from './state.js';

const RESULTS = {completed: 'completed', failed: 'failed', refused: 'refused', timed_out: 'timed out', stuck: 'got stuck', died: 'its process died', unusable: 'could not run', stopped: 'was stopped', killed: 'was killed'};

function card(first) {
  const id = first.id;
  const head = h('div.who');
  const facts = h('dl.facts');
  const why = h('div');
  const note = h('p.error', {role: 'alert', hidden: true});
  const log = h('pre.logfile', {tabIndex: 0});
  const refresh = h('button.quiet', {type: 'button'}, 'Read again');
  const box = h('details.logbox', h('summary', 'Log'), log, refresh);
  const read = async () => {
    try {
      const text = await get(`/v1/agents/${encodeURIComponent(id)}/log?lines=200`, {text: true});
      fill(log, text || 'Its loop has written nothing yet.');
      log.scrollTop = log.scrollHeight;
    } catch (error) {
      log.textContent = error.message;
    }
  };
  refresh.onclick = read;
  box.addEventListener('toggle', () => box.open && read());
  const buttons = ['start', 'stop', 'wake', 'restart'].map((command) => h('button', {
    type: 'button',
    'data-command': command,
    onclick: async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      note.hidden = true;
      try {
        await post(`/v1/agents/${encodeURIComponent(id)}/${command}`);
      } catch (error) {
        note.hidden = false;
        note.textContent = error.message;
      }
      button.disabled = false;
    },
  }, command[0].toUpperCase() + command.slice(1)));
  const element = h('article.card.agent', {tabIndex: 0, id: `agent-${id}`}, h('header', head, h('div.actions', buttons)), note, why, facts, box);
  element.box = box;
  const fact = (name, content) => (content ? [h('dt', name), h('dd', content)] : []);
  element.update = (agent) => {
    const key = JSON.stringify([{...agent, heartbeatMs: 0}, state.lostAt, Boolean(state.agents?.supervisor)]);
    if (element.shown === key) return;
    element.shown = key;
    const [word, kind] = stateWord(agent);
    fill(head, h('h2', agent.id, agent.alias && h('span.tag', agent.alias)),
      h('p.where', h('span.condition', h('span.mark-state', {'data-kind': kind}), word), agent.role && h('span', agent.role), agent.runtime && h('span.tag', agent.runtime)));
    const failure = agent.lastError ?? (isBad(agent) && agent.reason ? {message: agent.reason} : undefined);
    fill(why, failure && h('div.failure', h('p', failure.message), h('p.note', failure.kind && `${failure.kind.replace('_', ' ')} · `, failure.atMs ? ago(failure.atMs) : '')));
    const tick = agent.lastTick;
    fill(facts,
      fact('Next', agent.state !== 'stopped' && live(() => nextTick(agent).replace('next ', '') || (agent.activity?.state === 'tick' ? 'in a tick now' : '–'))),
      fact('Why', agent.activity?.plain_reason ?? agent.activity?.reason),
      fact('Last tick', tick && [RESULTS[tick.result] ?? tick.result, ' · ', span(Date.parse(tick.end) - Date.parse(tick.begin)), tick.cost_usd ? ` · ${usd(tick.cost_usd, tick.cost_source)}` : '', ' · ', ago(Date.parse(tick.end)),
        tick.run_id && [' · ', h('a', {href: `#/run/${tick.run_id}`}, 'its log')]]),
      fact('Restarts', agent.restarts > 0 && String(agent.restarts)),
      fact('It reports', agent.status && h('code.wrap', JSON.stringify(agent.status))),
      fact('Directory', h('code.wrap', agent.workingDir)));
    const runs = ['running', 'failing', 'limited', 'starting', 'backing_off', 'suspended'].includes(agent.state);
    const shown = {start: !runs && agent.state !== 'stopping', stop: runs, wake: runs, restart: runs};
    for (const button of buttons) button.hidden = !shown[button.dataset.command] || !state.agents?.supervisor;
  };
  element.update(first);
  return element;
}

/// Shows the view in `main`; with an id, that agent's log is open.
export function agents(main, id) {
  const title = h('h1.calm');
  const notice = h('div');
  const list = h('div.agents');
  fill(main, title, notice, list);
  let opens = id;
  const update = () => {
    main.classList.toggle('loading', !state.loaded);
    if (!state.loaded) return;
    const status = state.agents;
    const some = status?.agents ?? [];
    const bad = some.filter(isBad).length;
    const limited = some.filter((agent) => agent.state === 'limited').length;
    const running = some.filter((agent) => ['running', 'limited', 'starting'].includes(agent.state)).length;
    title.dataset.kind = bad > 0 ? 'bad' : 'calm';
    const head = some.length === 0 ? 'No agents.' : bad > 0 ? `${bad} of ${some.length} ${bad === 1 ? 'needs' : 'need'} a look.` : `${running} of ${some.length} on duty.`;
    const small = [some.length > 0 && bad > 0 && `${running} of ${some.length} on duty.`, limited > 0 && `${limited} waits for a limit.`].filter(Boolean).join(' ');
    if (title.textContent !== head + small) fill(title, h('span', head), small && h('small', small));
    const message = !status
      ? ['This server has no agents: start it with ', h('code', 'teamster serve --agents agents.config.json'), '.']
      : !status.supervisor
        ? ['No supervisor is running, so none of them does anything. Start it with ', h('code', 'teamster supervise'), '.']
        : !status.enabled ? ['All agents are switched off: ', h('code', 'teamster agents start --all'), ' turns them on.'] : undefined;
    const key = message?.map((part) => part.textContent ?? part).join('') ?? '';
    if (notice.textContent !== key) fill(notice, message && h('p.empty', message));
    keyed(list, some, (agent) => agent.id, card, (element, agent) => element.update(agent));
    if (opens) {
      const element = document.getElementById(`agent-${opens}`);
      if (element) {
        element.box.open = true;
        element.scrollIntoView({block: 'start'});
        element.focus({preventScroll: true});
        opens = undefined;
      }
    }
  };
  update();
  return {title: 'Agents', update};
}

