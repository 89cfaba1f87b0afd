// The form that starts a run.

import {get, key, post} from './api.js';
import {fill, h} from './dom.js';
import {recall, remember} from './settings.js';
import {runs} from './state.js';

const PERMISSIONS = [
  ['default', 'By its settings', 'It asks here for what they do not allow.'],
  ['read-only', 'Read only', 'No tool that changes anything.'],
  ['accept-edits', 'Accept edits', 'Files may be changed; commands are still asked for.'],
  ['plan', 'Plan', 'It reads, and answers with a plan before it changes anything. Not every agent has this.'],
  ['bypass', 'Everything', 'Without any question. The server has to allow it.'],
];

/// The last choices, which this browser remembers for the next run.
const LAST = 'teamster.start';

function last() {
  try {
    return JSON.parse(recall(LAST) ?? '{}') ?? {};
  } catch {
    // Another version of the page wrote it.
    return {};
  }
}

/// Shows the view in `main`; with the id of a run, filled from it.
export function start(main, like) {
  const before = last();
  const provider = h('select', {name: 'provider', required: true}, h('option', {value: before.provider ?? ''}, before.provider ?? 'Looking for agents…'));
  const hint = h('small');
  const prompt = h('textarea', {name: 'prompt', rows: 6, required: true, placeholder: 'What is to be done?', autofocus: true});
  const directories = [...new Set(runs().map((run) => run.directory).filter(Boolean))].slice(0, 20);
  const directory = h('input', {name: 'directory', type: 'text', value: before.directory ?? directories[0] ?? '', placeholder: 'Where the server was started', spellcheck: false, autocapitalize: 'off'});
  directory.setAttribute('list', 'directories');
  const known = h('datalist', {id: 'directories'}, directories.map((value) => h('option', {value})));
  const model = h('input', {name: 'model', type: 'text', placeholder: 'Its default', spellcheck: false, autocapitalize: 'off'});
  model.setAttribute('list', 'models');
  const models = h('datalist', {id: 'models'});
  const worktree = h('input', {name: 'worktree', type: 'checkbox'});
  const session = h('input', {name: 'session', type: 'checkbox'});
  const sessionPart = h('label.check', session, h('span', 'A session: more prompts can follow'));
  const more = h('details.more', h('summary', 'More'), h('label', h('span', 'Model'), model, models), h('label.check', worktree, h('span', 'In a git worktree of its own')));
  const permission = before.permission === 'bypass' ? 'default' : before.permission ?? 'default';
  const note = h('p.error', {role: 'alert', hidden: true});
  const submit = h('button.primary', {type: 'submit'}, 'Start');
  // A repeated form, such as after a broken connection, starts no second run.
  let idempotency = key();
  let sent;
  /// The fields of the run that this one is like which the form does not have.
  let alike = {};
  let isSessionAlike = false;
  const form = h('form.start', {
    onsubmit: async (event) => {
      event.preventDefault();
      const chosen = form.elements.permission.value;
      const body = {...(session.checked === isSessionAlike ? alike : {}), provider: provider.value, permission: chosen};
      if (!session.checked) body.prompt = prompt.value;
      if (directory.value.trim()) body.workingDirectory = directory.value.trim();
      if (model.value.trim()) body.model = model.value.trim();
      if (worktree.checked) body.worktree = true;
      const text = JSON.stringify([body, prompt.value]);
      if (sent !== undefined && sent !== text) idempotency = key();
      sent = text;
      submit.disabled = true;
      note.hidden = true;
      try {
        const run = await post(session.checked ? '/v1/sessions' : '/v1/runs', body, {'Idempotency-Key': idempotency});
        if (session.checked) await post(`/v1/sessions/${encodeURIComponent(run.runId)}/turns`, {prompt: prompt.value, from: 'page'}, {'Idempotency-Key': idempotency});
        remember(LAST, JSON.stringify({provider: provider.value, directory: directory.value.trim(), permission: chosen}));
        location.hash = `#/run/${run.runId}`;
      } catch (error) {
        note.hidden = false;
        note.textContent = error.status === undefined ? 'The server cannot be reached. Try again: it starts the run once only.' : error.message;
        submit.disabled = false;
      }
    },
  },
  h('label', h('span', 'Prompt'), prompt),
  h('label', h('span', 'Agent'), provider, hint),
  h('label', h('span', 'Directory'), directory, known),
  h('fieldset', h('legend', 'What it may do by itself'), h('div.choices', PERMISSIONS.map(([value, name, about]) => h('label.choice', h('input', {type: 'radio', name: 'permission', value, checked: value === permission}), h('span', h('b', name), h('small', about)))))),
  sessionPart,
  more,
  note, h('div.actions', submit, h('a.button', {href: '#/now'}, 'Discard')));
  prompt.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) form.requestSubmit();
  });
  const filled = h('p.note');
  fill(main, h('h1.calm', h('span', 'New run'), like && filled), form);
  prompt.focus();

  const filling = like === undefined ? Promise.resolve() : get(`/v1/runs/${encodeURIComponent(like)}/spec`).then(({what, withheld = []}) => {
    // What there is no field for goes along; a server refuses what it does not let through.
    const {prompt: text, provider: agent, workingDirectory, model: itsModel, worktree: itsWorktree, permission: its, images, continues, depth, title, sessionId, sessionKey, newSession, fork, workspace: {branch, ...workspace} = {}, ...others} = what.run ?? what.session;
    // It has a session, a title and a branch of its own.
    if (workspace.kind) others.workspace = workspace;
    const left = Object.entries({title, sessionId, sessionKey, newSession, fork, 'worktree.branch': typeof itsWorktree === 'string', 'workspace.branch': branch}).filter(([, value]) => value).map(([name]) => name);
    before.provider = agent;
    prompt.value = text ?? '';
    directory.value = workingDirectory ?? '';
    worktree.checked = Boolean(itsWorktree);
    model.value = itsModel ?? '';
    session.checked = what.session !== undefined;
    // A permission for everything is given again or not at all.
    form.elements.permission.value = its === 'bypass' ? 'default' : its ?? 'default';
    more.open = Boolean(itsModel || itsWorktree);
    alike = others;
    isSessionAlike = session.checked;
    const also = Object.keys(others);
    const codes = (names) => names.map((name, index) => [index > 0 && ', ', h('code', name)]);
    fill(filled, 'Like ', h('a', {href: `#/run/${like}`}, 'this run'), also.length > 0 && [', also in ', codes(also)], '. ',
      left.length > 0 && ['Not taken over: ', codes(left), '. '],
      withheld.length > 0 && ['Not kept: ', codes(withheld), '.']);
  }, (error) => fill(filled, error.message));
  Promise.all([get('/v1/providers'), filling]).then(([{providers}]) => {
    const usable = providers.filter((one) => one.usable);
    const others = providers.filter((one) => !one.usable);
    const chosen = usable.some((one) => one.id === before.provider) ? before.provider : usable[0]?.id;
    const option = (one) => h('option', {value: one.id, selected: one.id === chosen}, one.version ? `${one.name} ${one.version}` : one.name);
    fill(provider, usable.map(option), others.length > 0 && h('optgroup', {label: 'Not ready'}, others.map(option)));
    const about = () => {
      const one = providers.find((it) => it.id === provider.value);
      hint.textContent = one?.usable ? (one.login?.state === 'no' ? 'Not logged in.' : '') : [one?.problem, one?.install && `Install it: ${one.install}`].filter(Boolean).join(' ');
    };
    provider.addEventListener('change', about);
    provider.addEventListener('change', offer);
    about();
    offer();
  }).catch((error) => {
    hint.textContent = error.message;
  });
  /// Models of the chosen agent, and directories, of earlier runs: the last ones first.
  const history = get('/v1/history?limit=500').then(({runs}) => runs, () => []);
  async function offer() {
    const runs = await history;
    const options = (list) => [...new Set(list)].filter(Boolean).slice(0, 50).map((value) => h('option', {value}));
    fill(models, options(runs.filter((run) => run.provider === provider.value).map((run) => run.model)));
    fill(known, options([...directories, ...runs.map((run) => run.workingDirectory)]));
  }
  return {title: 'New run', update: () => {}};
}
