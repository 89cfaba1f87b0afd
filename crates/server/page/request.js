// A request of an agent as a card with its answer: a permission for a tool, or a question of an MCP server.

import {post} from './api.js';
import {ago, fill, h, hasHidden, icon, live, path, put, rough, time} from './dom.js';
import {block} from './text.js';

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

const text = (value) => (typeof value === 'string' ? value : undefined);

/// Returns the summary of a tool call, in one line.
export function subject(input, directory) {
  const found = subjectOf(input);
  return directory && found.startsWith(`${directory}/`) ? found.slice(directory.length + 1) : found;
}

function subjectOf(input) {
  if (!input || typeof input !== 'object') return text(input) ?? '';
  const {command, cmd} = input;
  const line = Array.isArray(command) ? command.join(' ') : text(command) ?? text(cmd);
  const found = line ?? ['file_path', 'filePath', 'pattern', 'query', 'url', 'path', 'description', 'prompt']
    .map((name) => text(input[name])).find(Boolean);
  if (found !== undefined) return found;
  const only = Object.values(input).filter((value) => typeof value === 'string');
  return only.length === 1 ? only[0] : '';
}

/// Shows the whole input of a tool call, in the form of its kind.
export function details(input) {
  if (!input || typeof input !== 'object') return block(String(input ?? ''));
  const before = text(input.old_string) ?? text(input.oldString) ?? text(input.oldText);
  const after = text(input.new_string) ?? text(input.newString) ?? text(input.newText) ?? text(input.content);
  if (after !== undefined) {
    const lines = (of, sign) => (of ? of.replace(/\n$/, '').split('\n').map((line) => `${sign} ${line}`).join('\n') : undefined);
    const removed = lines(before, '−');
    const added = lines(after, '+');
    return h('div.diff', removed && block(removed, 'del'), added && block(added, 'ins'));
  }
  return block(JSON.stringify(input, null, 2));
}

/// Returns the card. `short` omits facts that the page already shows.
export function requestCard(request, run, {short = false} = {}) {
  const isQuestion = request.schema !== undefined;
  const line = subject(request.input, run.directory);
  const note = h('p.error', {role: 'alert', hidden: true});
  const buttons = [];
  const wants = isQuestion ? 'asks' : WANTS[request.kind] ?? 'wants to use';
  const showsTool = !isQuestion && WANTS[request.kind] === undefined;

  const answer = async (decision, done) => {
    for (const button of buttons) button.disabled = true;
    note.hidden = true;
    try {
      const [id, number] = [request.runId, request.requestId.split('/').pop()];
      await post(`/v1/requests/${encodeURIComponent(id)}/${encodeURIComponent(number)}`, decision);
      card.classList.add('answered');
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

  const reason = request.takesReason && !isQuestion
    ? h('input', {type: 'text', placeholder: 'Reason, for the agent (optional)', 'aria-label': 'Reason of a denial', enterKeyHint: 'send'})
    : undefined;
  const deny = () => answer({decision: 'deny', ...(reason?.value.trim() ? {reason: reason.value.trim()} : {})}, 'Denied');
  reason?.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && reason.value.trim()) deny();
  });

  const actions = h('div.actions');
  let form;
  if (isQuestion) {
    const [fields, read] = fieldsOf(request.schema);
    form = h('form.fields', {
      onsubmit: (event) => {
        event.preventDefault();
        answer({decision: 'allow_with', input: read()}, 'Answered');
      },
    }, fields, actions);
    const send = h('button.primary.allow', {type: 'submit'}, 'Answer');
    buttons.push(send);
    put(actions, send, button('deny', 'Decline', deny));
  } else {
    put(actions,
      button('primary.allow', 'Allow', () => answer({decision: 'allow'}, 'Allowed')),
      button('deny', 'Deny', deny),
      button('quiet.always', 'Allow always', () => answer({decision: 'allow_always'}, 'Allowed, and what is like it in this session')),
      reason && h('div.reason', reason));
  }

  const inputs = request.input && typeof request.input === 'object' ? Object.keys(request.input) : [];
  const isWhole = inputs.length === 1 && line !== '' && line.length < 400;
  const card = h('article.card.request', {tabIndex: 0, 'aria-label': `${run.provider} ${wants}`},
    h('header',
      h('span.kind', isQuestion ? icon('question') : iconOf(request.kind)),
      h('p', h('b', run.provider), ` ${wants} `, showsTool && h('code', request.toolName)),
      ago(request.askedAt)),
    !short && run.directory && h('p.where', icon('folder'), path(run.directory), run.branch && [icon('branch'), h('span', run.branch)]),
    request.message && h('p.message', request.message),
    !isQuestion && line !== '' && h('pre.subject', line),
    [request.toolName, line, JSON.stringify(request.input ?? '')].some(hasHidden) && h('p.warning', 'This has characters that cannot be seen. They are marked.'),
    !isQuestion && inputs.length > 0 && !isWhole && h('details', h('summary', 'Everything it would do'), details(request.input)),
    form ?? actions,
    note,
    h('footer',
      request.expiresAt && live(() => {
        const left = request.expiresAt - time();
        return left > 0 ? `Denied in ${rough(left)} without an answer` : 'Its time is over';
      }),
      !short && h('a', {href: `#/run/${run.runId}`}, 'Open the run')));
  card.dataset.request = request.requestId;
  return card;
}

/// Returns form fields for a JSON Schema of an object, and a function that reads them.
function fieldsOf(schema) {
  const readers = [];
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const label = field.title ?? name;
    let input;
    if (field.type === 'boolean') {
      input = h('input', {type: 'checkbox', checked: field.default === true});
      readers.push(() => [name, input.checked]);
    } else if (Array.isArray(field.enum)) {
      input = h('select', field.enum.map((value, i) => h('option', {value, selected: value === field.default}, field.enumNames?.[i] ?? String(value))));
      readers.push(() => [name, input.value]);
    } else if (field.type === 'number' || field.type === 'integer') {
      input = h('input', {type: 'number', step: field.type === 'integer' ? '1' : 'any', required: required.has(name), value: field.default ?? '', min: field.minimum, max: field.maximum});
      readers.push(() => [name, input.value === '' ? undefined : Number(input.value)]);
    } else {
      input = h('input', {type: 'text', required: required.has(name), value: field.default ?? '', maxLength: field.maxLength});
      readers.push(() => [name, input.value === '' && !required.has(name) ? undefined : input.value]);
    }
    return h('label', {className: field.type === 'boolean' ? 'check' : ''}, h('span', label), input, field.description && h('small', field.description));
  });
  const read = () => Object.fromEntries(readers.map((reader) => reader()).filter(([, value]) => value !== undefined));
  return [fields, read];
}
