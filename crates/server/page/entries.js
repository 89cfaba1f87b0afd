// The log of a run as cards.

import {attempt, clock, copier, count, fill, h, keyed, live, many, plain, put, span, time, usd} from './dom.js';
import {details, headline} from './edit.js';
import {figures} from './marks.js';
import {iconOf} from './request.js';
import {Growing, formatted, inline} from './prose.js';
import {block} from './text.js';

const STATUS = {completed: ['Completed', 'done'], failed: ['Failed', 'bad'], aborted: ['Cancelled', 'off'], timed_out: ['Timed out', 'bad'], incomplete: ['Broke off', 'bad']};
const DECISIONS = {allowed: 'Allowed', denied: 'Denied', requested: 'Asked for'};
const CHANGES = {add: '+', update: '~', delete: '−', move: '→'};

/// Number of cards in a part of the list.
const PART = 50;
/// Time after which an unfinished text is formatted as if it had ended.
const SILENCE = 500;
/// Length of the output of a running command that is shown.
const LIVE = 8192;

/// The tokens of a usage, in words.
export function tokens(usage) {
  if (!usage) return undefined;
  const parts = [[usage.inputTokens, 'in'], [usage.outputTokens, 'out'], [usage.cacheReadTokens, 'from cache'], [usage.cacheWriteTokens, 'to cache']];
  return parts.filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`).join(', ') || undefined;
}

/// Shows entries in their order: cards in `list`, files and plan in lists of their own.
export class Entries {
  constructor(list, directory, showChanges) {
    this.list = list;
    this.directory = directory;
    this.showChanges = showChanges;
    this.seq = 0;
    this.tools = new Map();
    /// Texts of files that calls write whole, by the id of the call, as their requests have them.
    this.before = new Map();
    this.texts = new Map();
    this.files = new Map();
    this.plan = [];
    this.facts = {};
    /// Cards whose texts have changed.
    this.dirty = new Set();
    this.last = undefined;
    this.ended = false;
    /// True while a turn of the session is in progress.
    this.isInTurn = false;
  }

  take(entry) {
    this.seq = entry.seq;
    try {
      // Some events are in the log twice: as events of the agent, and as events of the run.
      const read = this[`on_${entry.type.replace(':', '_')}`];
      if (read) read.call(this, entry);
      else if (!entry.type.includes(':')) this.line(entry, 'off', entry.type);
    } catch (error) {
      this.part().append(plain(entry, error));
      this.last = undefined;
    }
  }

  add(card, entry, kind) {
    card.title = new Date(entry.atMs).toLocaleString();
    if (entry.parentToolId) card.classList.add('nested');
    // Actions of a sub-agent are in the card of its call.
    const parent = entry.parentToolId && this.tools.get(entry.parentToolId);
    (parent?.inside ?? this.part()).append(card);
    if (parent) parent.inside.hidden = false;
    if (this.last?.card.show) this.dirty.add(this.last.card);
    this.last = {kind, card, entry};
    return card;
  }

  /// The part of the list that takes the next card. A part that is not in view is not laid out.
  part() {
    const last = this.list.lastElementChild;
    if (last?.className === 'cards' && last.childElementCount < PART) return last;
    const part = h('div.cards');
    this.list.append(part);
    return part;
  }

  line(entry, kind, ...content) {
    return this.add(h('p.line', {'data-kind': kind}, content), entry, 'line');
  }

  /// Appends to the previous text card, if it is the same message.
  piece(entry, kind, make) {
    const last = this.last;
    const goesOn = last?.kind === kind && last.entry.messageId === entry.messageId && last.entry.parentToolId === entry.parentToolId;
    if (!goesOn) {
      const card = make();
      card.text = '';
      this.add(card, entry, kind);
      if (entry.messageId) this.texts.set(entry.messageId, [...(this.texts.get(entry.messageId) ?? []), card]);
    }
    const card = this.last.card;
    card.text += entry.text;
    this.dirty.add(card);
  }

  /// Shows changed texts. They are formatted once per page of entries, not once per piece.
  finish() {
    const show = (card, isEnd) => {
      try {
        card.show(isEnd);
      } catch (error) {
        fill(card, plain(card.text, error));
      }
    };
    for (const card of this.dirty) show(card, card !== this.last?.card);
    this.dirty.clear();
    // The agent may be silent in the middle of a text.
    clearTimeout(this.timer);
    const {card} = this.last ?? {};
    if (card?.show) this.timer = setTimeout(() => show(card, true), SILENCE);
  }

  on_text(entry) {
    this.piece(entry, 'text', () => {
      const card = h('div.card.text');
      put(card, copier('this message', () => card.text));
      const growing = new Growing(card);
      card.show = (isEnd) => growing.show(card.text, isEnd);
      return card;
    });
  }

  on_thinking(entry) {
    this.piece(entry, 'thinking', () => {
      const body = h('div.body');
      const card = h('details.card.thinking', h('summary', 'Thinking'), body);
      let shown = 0;
      card.show = () => {
        put(body, card.text.slice(shown));
        shown = card.text.length;
      };
      return card;
    });
  }

  on_retract(entry) {
    for (const card of this.texts.get(entry.messageId) ?? []) card.remove();
    this.texts.delete(entry.messageId);
    this.last = undefined;
  }

  on_user_message(entry) {
    if (!entry.steer) this.isInTurn = true;
    this.add(h('div.card.user', h('header', h('span', entry.from ?? 'You'), entry.steer && h('span.tag', 'sent meanwhile'), copier('this message', () => entry.text)), formatted(entry.text)), entry, 'user');
  }

  on_session(entry) {
    this.facts.session = entry.sessionId;
    this.facts.model = entry.model ?? this.facts.model;
  }

  on_tool_use(entry) {
    const state = h('span.state');
    state.append(live(() => span(time() - entry.atMs)));
    const body = h('div.body');
    const inside = h('div.inside', {hidden: true});
    const title = entry.mcp ? `${entry.mcp.server} · ${entry.mcp.tool}` : entry.toolName;
    const {line, name} = headline(entry.input, this.directory);
    const card = h('details.card.tool', {'data-state': 'runs'},
      h('summary', h('span.kind', iconOf(entry.kind)), h('b', title), h('code.subject', line.split('\n')[0]), state), body, inside);
    const tool = {card, state, body, inside, entry, output: undefined};
    const show = () => {
      if (!card.open || body.childElementCount > 0) return;
      fill(body, line !== '' && h('div.copied', h('pre', line), copier('this line', () => line)), attempt(entry.input, () => details(entry.input, name, this.before.get(entry.toolId))), tool.output !== undefined && [h('p.label', 'Output'), h('div.copied', block(tool.output || '(nothing)'), copier('the output', () => tool.output))]);
    };
    tool.show = () => {
      body.replaceChildren();
      show();
    };
    card.addEventListener('toggle', show);
    this.tools.set(entry.toolId, tool);
    this.add(card, entry, 'tool');
  }

  /// Takes the texts of files that open requests have: their calls show the difference, too.
  requested(requests) {
    for (const {toolId, oldText} of requests) {
      if (oldText === undefined || this.before.has(toolId)) continue;
      this.before.set(toolId, oldText);
      this.tools.get(toolId)?.show();
    }
  }

  /// Output of a call that runs: the end of it is in the call's card until the result replaces it.
  on_tool_output(entry) {
    const tool = this.tools.get(entry.toolId);
    if (!tool || tool.isOver) return;
    tool.output = ((tool.output ?? '') + entry.text).slice(-LIVE);
    if (tool.card.open) tool.show();
  }

  on_tool_result(entry) {
    const tool = this.tools.get(entry.toolId);
    if (!tool) return;
    tool.isOver = true;
    tool.output = entry.output;
    tool.card.dataset.state = entry.isError ? 'bad' : 'done';
    fill(tool.state, span(entry.atMs - tool.entry.atMs), h('span.sign', {'aria-label': entry.isError ? 'failed' : 'done'}, entry.isError ? '✗' : '✓'));
    if (entry.isError && entry.output) tool.card.append(h('p.why', entry.output.trim().split('\n')[0].slice(0, 300)));
    tool.show();
  }

  on_file_change(entry) {
    const path = this.directory && entry.path.startsWith(`${this.directory}/`) ? entry.path.slice(this.directory.length + 1) : entry.path;
    this.files.set(path, entry.change === 'update' && this.files.get(path) === 'add' ? 'add' : entry.change);
  }

  on_plan(entry) {
    this.plan = entry.entries;
    // A call that changed the plan shows only the plan.
    const {kind, card, entry: call} = this.last ?? {};
    if (kind !== 'tool' || call.kind !== 'think') return;
    card.remove();
    const done = this.plan.filter((item) => item.status === 'completed').length;
    const next = this.plan.find((item) => item.status === 'in_progress');
    this.line(entry, done === this.plan.length ? 'done' : 'off', `Plan: ${done} of ${this.plan.length} done`, next && [', now: ', inline(next.content)]);
  }

  on_permission(entry) {
    if (entry.decision === 'requested') return;
    const kind = entry.decision === 'denied' ? 'bad' : entry.decision === 'allowed' ? 'done' : 'off';
    this.line(entry, kind, `${DECISIONS[entry.decision] ?? entry.decision}: `, h('b', entry.toolName), entry.reason && ` – ${entry.reason}`);
  }

  on_usage(entry) {
    this.facts.usage = entry.usage;
    this.cost(entry.costUsd, entry.costSource);
  }

  cost(amount, source) {
    if (amount === undefined) return;
    this.facts.costUsd = amount;
    this.facts.costSource = source;
  }

  // Editors show the size of the context; they and the chat in a terminal offer the commands and models.
  on_context() {}

  on_offers() {}

  on_retry(entry) {
    const wait = entry.delayMs ? `, in ${span(entry.delayMs)}` : '';
    this.line(entry, 'maybe', `The CLI tries again (${entry.number}${entry.maxAttempts ? ` of ${entry.maxAttempts}` : ''})${wait}: ${entry.error.message}`);
  }

  on_rate_limit(entry) {
    const resets = entry.resetsAt ? `, resets at ${clock(entry.resetsAt)}` : '';
    const used = entry.utilization === undefined ? '' : `, ${Math.round(entry.utilization * 100)}% used`;
    this.line(entry, entry.status === 'allowed' ? 'off' : 'maybe', `Limit${entry.kind ? ` (${entry.kind})` : ''}: ${entry.status}${used}${resets}`);
  }

  on_notice(entry) {
    this.line(entry, entry.level === 'warning' ? 'maybe' : 'off', entry.message);
  }

  on_unknown(entry) {
    this.add(h('details.card.unknown', h('summary', 'A line of an unknown type'), block(JSON.stringify(entry.native, null, 2))), entry, 'unknown');
  }

  on_error(entry) {
    this.add(h('div.card.failure', h('p', h('b', 'Error'), ` ${entry.message}`), h('p.note', [entry.code, entry.kind].filter(Boolean).join(' · '))), entry, 'error');
  }

  on_turn_end() {}

  on_run_attempt(entry) {
    this.facts.provider = entry.provider;
    if (entry.attempt > 1) this.line(entry, 'off', `Attempt ${entry.attempt}: `, h('b', entry.provider), entry.model && ` ${entry.model}`, entry.resumes && ', in the same session');
  }

  on_run_hold(entry) {
    this.line(entry, 'maybe', `Waits ${entry.untilMs ? `until ${clock(entry.untilMs)}` : 'for room'}: ${entry.reason?.message ?? entry.group}`);
  }

  on_run_retry(entry) {
    this.line(entry, 'maybe', `Tried again in ${span(entry.delayMs)}: ${entry.reason.message}`);
  }

  on_run_fallback(entry) {
    this.line(entry, 'maybe', `Goes on with ${entry.next?.provider ?? 'the next agent'}: ${entry.reason.message}`);
  }

  on_reset(entry) {
    this.line(entry, 'maybe', 'The beginning of this log was removed to make room.');
  }

  on_damaged(entry) {
    this.line(entry, 'maybe', 'A part of this log is damaged and left out.');
  }

  on_done(entry) {
    const {result} = entry;
    this.isInTurn = false;
    // Open calls will have no result.
    for (const {card, state} of this.tools.values()) {
      if (card.dataset.state !== 'runs') continue;
      card.dataset.state = 'off';
      fill(state, 'not ended');
    }
    this.facts.usage = result.usage ?? this.facts.usage;
    this.cost(result.totalCostUsd, result.costSource);
    this.facts.model = result.model ?? this.facts.model;
    const [word, kind] = STATUS[result.status] ?? [result.status, 'off'];
    const parts = [span(result.durationMs), result.numTurns && many(result.numTurns, 'turn'), tokens(result.usage), result.totalCostUsd !== undefined && usd(result.totalCostUsd, result.costSource)];
    const card = h('div.card.done', {'data-kind': kind}, h('p', h('b', word), ` ${parts.filter(Boolean).join(' · ')}`));
    const changed = figures(result.workspace);
    if (changed) put(card, h('p', h('button', {type: 'button', onclick: this.showChanges}, 'Show the changes', changed)));
    if (result.structuredOutput !== undefined) put(card, block(JSON.stringify(result.structuredOutput, null, 2)));
    if (result.status !== 'completed' && result.stderr) put(card, h('details', h('summary', 'What it printed on stderr'), block(result.stderr)));
    this.add(card, entry, 'done');
  }
}

/// Shows which files were changed.
export function fileRows(list, files) {
  keyed(list, files, ([name, change]) => `${change} ${name}`, ([name, change]) => h('li', {title: `${name} (${change})`}, h('span.sign', {'data-change': change, 'aria-label': change}, CHANGES[change] ?? '~'), h('bdi', name)));
}

const MARKS = {completed: '✓', in_progress: '▸', cancelled: '✗', pending: '○'};

/// Shows the agent's plan.
export function planRows(list, plan) {
  keyed(list, plan.map((item, i) => ({...item, i})), (item) => `${item.i} ${item.status} ${item.content}`, (item) => h('li', {'data-status': item.status}, h('span.sign', {'aria-label': item.status}, MARKS[item.status] ?? '○'), h('span', inline(item.content))));
}

