// The prompt box of a session, for the next turn or the turn in progress. A run has one prompt and no box.

import {key, patch, post} from './api.js';
import {fill, h} from './dom.js';

/// Values of a permission and their words, first that of no change.
export const PERMISSIONS = [['', 'unchanged'], ['default', 'by its settings'], ['read-only', 'read only'], ['accept-edits', 'accept edits'], ['plan', 'plan only'], ['bypass', 'everything']];

/// Shows the box of the session `id` in `place`. `isBusy` is true while a turn is in progress.
export function composer(id, place, isBusy) {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const input = h('textarea', {rows: 2, 'aria-label': 'Prompt', required: true});
  const send = h('button.primary', {type: 'submit'}, 'Send');
  const interrupt = h('button', {type: 'button'}, 'Interrupt');
  const note = h('p.error', {role: 'alert', hidden: true});
  const model = h('input', {type: 'text', placeholder: 'unchanged', spellcheck: false, autocapitalize: 'off'});
  const permission = h('select', PERMISSIONS.map(([value, name]) => h('option', {value}, name)));
  const change = h('button', {type: 'button'}, 'Change');
  const clear = h('button', {type: 'button', title: 'The agent forgets what was said'}, 'Empty the context');
  // A repeated prompt, such as after a broken connection, begins no second turn.
  let idempotency = key();
  let sent;

  const act = async (button, action) => {
    button.disabled = true;
    note.hidden = true;
    try {
      await action();
      return true;
    } catch (error) {
      note.hidden = false;
      note.textContent = error.status === undefined ? 'The server cannot be reached. Send it again: it is taken once only.' : error.message;
      return false;
    } finally {
      button.disabled = false;
    }
  };
  const form = h('form.composer', {
    onsubmit: async (event) => {
      event.preventDefault();
      const text = input.value;
      if (text.trim() === '') return;
      const isMore = isBusy();
      if (sent !== undefined && sent !== text) idempotency = key();
      sent = text;
      const done = await act(send, () => (isMore ? post(`${path}/steer`, {text, from: 'page'}) : post(`${path}/turns`, {prompt: text, from: 'page'}, {'Idempotency-Key': idempotency})));
      if (!done) return;
      input.value = '';
      sent = undefined;
      idempotency = key();
    },
  }, input, note, h('div.actions', send, interrupt, h('details.more', h('summary', 'Settings'),
    h('label', h('span', 'Model, from the next turn on'), model), h('label', h('span', 'What it may do by itself'), permission),
    h('div.actions', change, clear))));
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) form.requestSubmit();
  });
  interrupt.onclick = () => act(interrupt, () => post(`${path}/interrupt`));
  change.onclick = () => {
    const body = {};
    if (model.value.trim()) body.model = model.value.trim();
    if (permission.value) body.permission = permission.value;
    return act(change, () => patch(path, body));
  };
  clear.onclick = () => act(clear, () => post(`${path}/clear`));

  return {
    update(run) {
      const isShown = run.kind === 'session' && run.state !== 'ended';
      if (!isShown) {
        fill(place);
        return;
      }
      if (!place.contains(form)) fill(place, form);
      const busy = isBusy();
      send.textContent = busy ? 'Say meanwhile' : 'Send';
      input.placeholder = busy ? 'Something more for the turn in progress' : 'The next prompt';
      interrupt.hidden = !busy;
    },
  };
}
