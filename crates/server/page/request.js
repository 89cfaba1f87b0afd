// A request of an agent as a card with its answer: a permission for a tool, or a question of an MCP server.

import {post} from './api.js';
import {ago, copier, fill, h, hasHidden, icon, live, marked, path, plain, put, rough, time} from './dom.js';
import {details, headline} from './edit.js';
import {anyAnswer, formOf} from './form.js';

const WANTS = {
  execute: 'wants to run a command',
  edit: 'wants to change a file',
  delete: 'wants to delete',
  move: 'wants to move',
  read: 'wants to read',
  search: 'wants to search',
  fetch: 'wants to open',
  task: 'wants to start a sub-agent',
};

const ICONS = {execute: 'execute', edit: 'edit', delete: 'edit', move: 'edit', read: 'read', search: 'search', fetch: 'fetch', task: 'task'};

/// The icon of a kind of tool.
export const iconOf = (kind) => icon(ICONS[kind] ?? 'tool');

/// Returns the card. `short` omits facts that the page already shows. A request that cannot be shown as others are is
/// there as JSON, and can be answered.
export function requestCard(request, run, {short = false} = {}) {
  try {
    return card(request, run, shown(request, run, short));
  } catch (error) {
    const [fields, read] = request.schema === undefined ? [] : anyAnswer();
    return card(request, run, {before: [h('header', h('p', h('b', run.provider), ' asks')), plain(request, error)], fields, read, after: openRun(run)});
  }
}

const isQuestion = (request) => request.schema !== undefined;
const wants = (request) => (isQuestion(request) ? 'asks' : WANTS[request.kind] ?? 'wants to use');
const openRun = (run) => h('a', {href: `#/run/${run.runId}`}, 'Open the run');

/// What a request shows: above its buttons, the fields of its answer, and below.
function shown(request, run, short) {
  const {line, name} = headline(request.input, run.directory);
  const [fields, read] = isQuestion(request) ? formOf(request.schema) : [];
  const rest = isQuestion(request) ? [] : details(request.input, name, request.oldText);
  const before = [
    h('header',
      h('span.kind', isQuestion(request) ? icon('question') : iconOf(request.kind)),
      h('p', h('b', run.provider), ` ${wants(request)} `, !isQuestion(request) && h('code', request.toolName)),
      ago(request.askedAt)),
    !short && run.title && h('p.of', marked(run.title)),
    !short && run.directory && h('p.where', icon('folder'), path(run.directory), run.branch && [icon('branch'), h('span', run.branch)]),
    request.message && h('p.message', request.message),
    !isQuestion(request) && line !== '' && h('div.copied', h('pre.subject', line), copier('this line', () => line)),
    isDisguised(request) && h('p.warning', 'This has characters that cannot be seen. They are marked.'),
    rest.length > 0 && h('div.whole', rest),
  ];
  const after = [
    request.expiresAt && live(() => {
      const left = request.expiresAt - time();
      return left > 0 ? `Denied in ${rough(left)} without an answer` : 'Its time is over';
    }),
    !short && openRun(run),
  ];
  return {before, fields, read, after};
}

function card(request, run, {before, fields, read, after}) {
  const note = h('p.error', {role: 'alert', hidden: true});
  const buttons = [];

  const answer = async (decision, done) => {
    for (const button of buttons) button.disabled = true;
    note.hidden = true;
    try {
      const [id, number] = [request.runId, request.requestId.split('/').pop()];
      await post(`/v1/requests/${encodeURIComponent(id)}/${encodeURIComponent(number)}`, decision());
      element.classList.add('answered');
      fill(actions, h('p.outcome', done));
    } catch (error) {
      note.hidden = false;
      note.textContent = error.code === 'ALREADY_ANSWERED' ? `It was answered already: ${error.message}` : error.message;
      const isOver = ['ALREADY_ANSWERED', 'REQUEST_NOT_FOUND', 'RUN_ENDED'].includes(error.code);
      for (const button of buttons) button.disabled = isOver;
    }
  };
  const button = (name, label, act) => {
    const element = h(`button.${name}`, {type: 'button', onclick: act}, label);
    buttons.push(element);
    return element;
  };

  const reason = request.takesReason && !isQuestion(request)
    ? h('input', {type: 'text', placeholder: 'Reason, for the agent (optional)', 'aria-label': 'Reason of a denial', enterKeyHint: 'send'})
    : undefined;
  const deny = () => answer(() => ({decision: 'deny', ...(reason?.value.trim() ? {reason: reason.value.trim()} : {})}), 'Denied');
  reason?.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && reason.value.trim()) deny();
  });

  const actions = h('div.actions');
  let form;
  if (read) {
    form = h('form.fields', {
      onsubmit: (event) => {
        event.preventDefault();
        answer(() => ({decision: 'allow_with', input: read()}), 'Answered');
      },
    }, fields, actions);
    const send = h('button.primary.allow', {type: 'submit'}, 'Answer');
    buttons.push(send);
    put(actions, send, button('deny', 'Decline', deny));
  } else {
    put(actions,
      button('primary.allow', 'Allow', () => answer(() => ({decision: 'allow'}), 'Allowed')),
      button('deny', 'Deny', deny),
      button('quiet.always', 'Allow always', () => answer(() => ({decision: 'allow_always'}), 'Allowed, and what is like it in this session')),
      reason && h('div.reason', reason));
  }

  const element = h('article.card.request', {tabIndex: 0, 'aria-label': `${run.provider} ${wants(request)}`}, before, form ?? actions, note, h('footer', after));
  element.dataset.request = request.requestId;
  return element;
}

/// Whether the name of the tool or an argument has a character that cannot be seen.
function isDisguised({toolName, input}) {
  let found = hasHidden(toolName);
  JSON.stringify(input, (key, value) => {
    found ||= hasHidden(key) || (typeof value === 'string' && hasHidden(value));
    return value;
  });
  return found;
}
