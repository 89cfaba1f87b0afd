// The view Cost: tokens and cost by day and model, the limits of subscriptions, and a table.

import {get} from './api.js';
import {count, fill, h, live, rough, svg, time, usd} from './dom.js';

/// Number of models with a colour of their own; the others share one.
const SERIES = 6;
const HEIGHT = 190;

const costOf = (figures) => figures.spentUsd ?? figures.reportedCostUsd ?? figures.estimatedCostUsd;
/// Returns whether a part of the cost is an estimate by list prices.
const isEstimate = (figures) => figures.estimatedCostUsd !== undefined && (figures.reportedCostUsd ?? 0) < (costOf(figures) ?? 0) - 1e-9;
const tokensOf = ({usage}) => ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'].reduce((sum, key) => sum + (usage?.[key] ?? 0), 0);

/// Returns all days from the first to the last, including days without usage.
function days(groups) {
  const byName = new Map(groups.filter((group) => /^\d{4}-\d\d-\d\d$/.test(group.name ?? '')).map((group) => [group.name, group]));
  const names = [...byName.keys()].sort();
  if (names.length === 0) return [];
  const all = [];
  for (let at = Date.parse(`${names[0]}T12:00:00Z`); ; at += 86_400_000) {
    const name = new Date(at).toISOString().slice(0, 10);
    all.push({name, models: byName.get(name)?.byModel ?? []});
    if (name >= names.at(-1)) return all;
  }
}

/// Returns the models by their totals, the largest first.
function ranked(all, value) {
  const sums = new Map();
  for (const day of all) {
    for (const model of day.models) sums.set(model.model ?? 'unknown', (sums.get(model.model ?? 'unknown') ?? 0) + (value(model) ?? 0));
  }
  return [...sums].filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]);
}

/// Returns the next larger round number.
function ceiling(number) {
  const size = 10 ** Math.floor(Math.log10(number));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * size).find((step) => step >= number) ?? number;
}

function chart(all, value, show, width) {
  const models = ranked(all, value);
  const series = models.slice(0, models.length > SERIES ? SERIES - 1 : SERIES).map(([name]) => name);
  const indexOf = (model) => {
    const index = series.indexOf(model ?? 'unknown');
    return index < 0 ? series.length : index;
  };
  const totals = all.map((day) => day.models.reduce((sum, model) => sum + (value(model) ?? 0), 0));
  const top = ceiling(Math.max(...totals, 0) || 1);
  const [left, right, above, below] = [52, 4, 10, 24];
  const step = (width - left - right) / all.length;
  const bar = Math.max(2, Math.min(46, step * 0.72));
  const y = (amount) => above + (HEIGHT - above - below) * (1 - amount / top);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: 'img', 'aria-label': `By day: ${all.map((day, i) => `${day.name} ${show(totals[i])}`).join(', ')}`, class: 'chart'});
  for (const part of [0, 0.5, 1]) {
    const at = y(top * part);
    picture.append(svg('line', {x1: left, x2: width - right, y1: at, y2: at, class: part === 0 ? 'axis' : 'grid'}), svg('text', {x: left - 8, y: at + 4, class: 'scale', 'text-anchor': 'end'}, part === 0 ? '0' : show(top * part, true)));
  }
  const every = Math.ceil(all.length / Math.max(1, Math.floor((width - left) / 62)));
  all.forEach((day, i) => {
    const x = left + step * i + (step - bar) / 2;
    const column = svg('g', {class: 'day'}, svg('title', {}, `${day.name}: ${show(totals[i])}`), svg('rect', {x: left + step * i, y: above, width: step, height: HEIGHT - above - below, class: 'hit'}));
    let sum = 0;
    const stack = series.map(() => 0).concat(0);
    for (const model of day.models) stack[indexOf(model.model)] += value(model) ?? 0;
    stack.forEach((amount, index) => {
      if (amount <= 0) return;
      const [from, to] = [y(sum), y(sum + amount)];
      sum += amount;
      column.append(svg('rect', {x, y: to, width: bar, height: Math.max(0.5, from - to), class: `s${index}`}));
    });
    picture.append(column);
    // The last day counts: it is today.
    if ((all.length - 1 - i) % every === 0) {
      const label = new Date(`${day.name}T12:00:00`).toLocaleDateString([], {day: 'numeric', month: 'short'});
      const isLast = i === all.length - 1 && all.length > 3;
      picture.append(svg('text', {x: isLast ? width - right : x + bar / 2, y: HEIGHT - 6, class: 'scale', 'text-anchor': isLast ? 'end' : 'middle'}, label));
    }
  });
  const sum = new Map(models);
  const others = models.slice(series.length).reduce((all, [, amount]) => all + amount, 0);
  const legend = h('ul.legend', series.map((name, i) => h('li', h(`span.swatch.s${i}`), name, h('b', show(sum.get(name))))), others > 0 && h('li', h(`span.swatch.s${series.length}`), 'others', h('b', show(others))));
  return [picture, legend];
}

const WINDOWS = {300: '5 hours', 10080: '7 days', 1440: '1 day'};

function limitRow(limit) {
  const used = Math.max(0, Math.min(100, limit.usedPercent));
  const meter = h('div.meter', {role: 'meter', 'aria-valuenow': Math.round(used), 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-label': 'used'}, h('div.used', {'data-kind': used >= 90 ? 'bad' : used >= 70 ? 'maybe' : 'done'}));
  meter.firstChild.style.width = `${used}%`;
  const resets = limit.resetsAt && Date.parse(limit.resetsAt);
  return h('li', h('span.name', h('b', limit.provider), WINDOWS[limit.windowMinutes] ?? (limit.windowMinutes ? `${limit.windowMinutes} min` : '')), meter, h('b', `${Math.round(limit.usedPercent)}%`),
    h('span.note', resets ? live(() => (resets > time() ? `resets in ${rough(resets - time())}` : 'has reset since')) : '', limit.at && [' · as of ', live(() => `${rough(time() - Date.parse(limit.at))} ago`)]));
}

function table(groups, total, name) {
  const figures = (of) => [count(of.requests), count(of.usage?.inputTokens), count(of.usage?.outputTokens), count(of.usage?.cacheReadTokens), count(of.usage?.cacheWriteTokens), `${isEstimate(of) ? '~' : ''}${usd(costOf(of))}`];
  const row = (title, of, cell = 'td') => h('tr', h('th', {scope: 'row', title}, h('bdi', title)), figures(of).map((text) => h(cell, text)));
  const heads = [name, 'Requests', 'Input', 'Output', 'From cache', 'To cache', 'Cost'];
  return h('div.scroll', {tabIndex: 0, role: 'region', 'aria-label': 'Usage'}, h('table', h('thead', h('tr', heads.map((head) => h('th', {scope: 'col'}, head)))),
    h('tbody', groups.map((group) => row(group.name ?? 'unknown', group))), h('tfoot', row('Total', total))));
}

/// Shows the view in `main`.
export function cost(main) {
  const title = h('h1.calm', {'aria-live': 'polite'}, h('span', 'Reading…'));
  const picture = h('div.picture');
  const tableBox = h('div');
  const notes = h('div');
  const limits = h('ul.limits');
  const limitsPart = h('section', h('h2', 'Limits'), limits);
  const select = (label, options, act) => h('label.inline', h('span', label), h('select', {onchange: (event) => act(event.target.value)}, options.map(([value, text]) => h('option', {value}, text))));
  let since = '30d';
  let unit = 'cost';
  let by = 'model';
  let byDay;
  let width = 0;
  let isOpen = true;

  const draw = () => {
    if (!byDay || width === 0) return;
    const all = days(byDay.groups);
    const hasCost = byDay.groups.some((group) => costOf(group) !== undefined);
    const isCost = unit === 'cost' && hasCost;
    const show = isCost
      ? (amount, short) => (short ? `$${String(Number(amount.toPrecision(2))).replace(/\.\d$/, '$&0')}` : usd(amount))
      : (amount) => count(Math.round(amount));
    fill(picture, all.length === 0
      ? h('p.empty', 'No usage in this time, by the files of the CLIs on this machine.')
      : [unit === 'cost' && !hasCost && h('p.note', 'No known price for these models: tokens are shown.'), chart(all, isCost ? costOf : tokensOf, show, width)]);
  };
  const read = async () => {
    try {
      const [daily, grouped] = await Promise.all([get(`/v1/usage?by=day&models=true&since=${since}`), get(`/v1/usage?by=${by}&since=${since}`)]);
      if (!isOpen) return;
      byDay = daily;
      const total = daily.total;
      const sum = costOf(total);
      fill(title, h('span', sum === undefined ? `${count(tokensOf(total))} tokens` : `${isEstimate(total) ? '~' : ''}${usd(sum)}`), ' ', h('small', `${count(total.requests)} ${total.requests === 1 ? 'request' : 'requests'} in ${since.replace('d', ' days')}${isEstimate(total) ? ', in part estimated by list prices' : ''}.`));
      draw();
      fill(tableBox, grouped.groups.length > 0 && table(grouped.groups, grouped.total, by[0].toUpperCase() + by.slice(1)));
      fill(notes, (daily.unpriced ?? []).length > 0 && h('p.note', `No known price for ${daily.unpriced.map((it) => it.model).join(', ')}.`));
    } catch (error) {
      fill(title, h('span', 'Cannot know.'), ' ', h('small', error.message));
    }
  };
  const readLimits = async () => {
    const found = await get('/v1/limits').catch(() => undefined);
    const some = found?.limits ?? [];
    fill(limits, some.length > 0 ? some.map(limitRow) : h('li.note', 'Not known. Codex leaves them on the disk when it is logged in with a subscription; Claude Code gives them to its status line only.'));
  };
  fill(main, title, h('div.controls',
    select('Time', [['30d', '30 days'], ['7d', '7 days'], ['90d', '90 days']], (value) => { since = value; read(); }),
    select('Chart', [['cost', 'Cost'], ['tokens', 'Tokens']], (value) => { unit = value; draw(); })),
    h('section', h('h2', 'By day and model'), picture), limitsPart,
    h('section', h('div.head', h('h2', 'Table'), select('By', [['model', 'model'], ['day', 'day'], ['provider', 'agent'], ['agent', 'directory'], ['key', 'session key']], (value) => { by = value; read(); })), tableBox, notes));
  const observer = new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width) return;
    width = now;
    draw();
  });
  observer.observe(picture);
  read();
  readLimits();
  return {
    title: 'Cost',
    update: () => {},
    close: () => {
      isOpen = false;
      observer.disconnect();
    },
  };
}
