// What goes on from an ended run: a prompt in the same session of its agent, and a new run like it.

import {key, post} from './api.js';
import {fill, h} from './dom.js';
import {PERMISSIONS} from './session.js';

/// Whether an ended run has a session that takes another prompt. A run of the history alone has no kind, and an agent's
/// tick is followed by the next one.
export const canBeFollowed = (run) => run.state === 'ended' && Boolean(run.sessionId) && ['run', 'session'].includes(run.kind);

/// Offers both in `place` once the run has ended. A run is followed by a run, a session by a session. While it is live,
/// `stop` ends it before another one is begun in its place.
export function followUp(place, stop) {
  let shown;
  let form;
  let current;
  const like = (run) => h('a.button.quiet', {href: `#/new/${encodeURIComponent(run.runId)}`}, 'New run like this');
  const make = (run) => {
    const input = h('textarea', {rows: 2, required: true, 'aria-label': 'Follow-up', placeholder: 'Something more, in the same session'});
    const before = run.grants?.permission;
    // A permission for everything is given again or not at all.
    const first = before === undefined || before === 'bypass' ? 'default' : before;
    const permission = h('select', {'aria-label': 'What it may do by itself'}, PERMISSIONS.slice(1).map(([value, name]) => h('option', {value, selected: value === first}, name)));
    const send = h('button.primary', {type: 'submit'}, 'Follow up');
    const note = h('p.error', {role: 'alert', hidden: true});
    const isSession = run.kind === 'session';
    // A repeated prompt, such as after a broken connection, starts no second run.
    let idempotency = key();
    let sent;
    return h('form.composer', {
      onsubmit: async (event) => {
        event.preventDefault();
        const prompt = input.value;
        if (prompt.trim() === '') return;
        const body = {provider: run.provider, sessionId: run.sessionId, workingDirectory: run.directory, model: run.model, permission: permission.value};
        if (isSession) body.continues = run.runId;
        else body.prompt = prompt;
        const text = JSON.stringify([body, prompt]);
        if (sent !== undefined && sent !== text) idempotency = key();
        sent = text;
        send.disabled = true;
        note.hidden = true;
        try {
          const {runId} = await post(isSession ? '/v1/sessions' : '/v1/runs', body, {'Idempotency-Key': idempotency});
          if (isSession) await post(`/v1/sessions/${encodeURIComponent(runId)}/turns`, {prompt, from: 'page'}, {'Idempotency-Key': idempotency});
          location.hash = `#/run/${runId}`;
        } catch (error) {
          note.hidden = false;
          note.textContent = error.status === undefined ? 'The server cannot be reached. Send it again: it is taken once only.' : error.message;
          send.disabled = false;
        }
      },
      onkeydown: (event) => {
        if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) form.requestSubmit();
      },
    }, input, note, h('div.actions', send, permission, like(run)));
  };
  // The box is made once it is wanted: with a field below them, a browser needs seconds for many changed lines.
  const open = () => {
    form ??= make(current);
    if (!place.contains(form)) fill(place, form);
    return form.querySelector('textarea');
  };
  let isStopping = false;
  const change = h('button.quiet', {
    type: 'button',
    title: 'Stops it, and opens the form with its prompt',
    onclick: async () => {
      change.disabled = true;
      isStopping = await stop();
      change.disabled = isStopping;
      if (!isStopping) return;
      change.textContent = 'Stopping…';
      // Its end may have been shown meanwhile.
      if (shown === 'ended' && place.isConnected) location.hash = `#/new/${encodeURIComponent(current.runId)}`;
    },
  }, 'Stop and change');
  return {
    update(run) {
      current = run;
      const now = run.state === 'ended' ? 'ended' : 'live';
      if (shown === now || !['run', 'session'].includes(run.kind)) return;
      shown = now;
      if (now === 'live') {
        if (run.kind === 'run') fill(place, h('div.actions', change));
        return;
      }
      if (isStopping && place.isConnected) {
        location.hash = `#/new/${encodeURIComponent(run.runId)}`;
        return;
      }
      fill(place, h('div.actions', run.sessionId && h('button', {type: 'button', onclick: () => open().focus()}, 'Follow up'), like(run)));
    },
    /// Adds a text to the follow-up; returns the function that shows it.
    add(text) {
      const input = open();
      input.value = `${input.value.trimEnd()}${input.value.trim() === '' ? '' : '\n\n'}${text}`;
      input.rows = Math.min(12, input.value.split('\n').length + 1);
      return () => {
        input.scrollIntoView({block: 'center'});
        input.focus();
      };
    },
  };
}
