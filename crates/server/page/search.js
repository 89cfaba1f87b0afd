// The search in the view Now: fields for text, agent, directory and state, which the address has, too.

import {fill, h} from './dom.js';

/// The states that can be chosen, and what they mean of a run.
const STATES = {
  live: ['at work', (run) => run.state !== 'ended'],
  waiting: ['waits for you', (run) => run.state === 'waiting'],
  completed: ['completed', (run) => run.state === 'ended' && run.status === 'completed'],
  failed: ['failed', (run) => run.state === 'ended' && !['completed', 'aborted'].includes(run.status)],
  aborted: ['cancelled', (run) => run.state === 'ended' && run.status === 'aborted'],
};
const NAMES = ['text', 'agent', 'directory', 'state'];

/// The texts of a run in which words are searched for.
const textsOf = (run) => [run.title, run.prompt, run.provider, run.model, run.directory, run.branch, run.machine, run.sessionId, run.error?.message, run.runId].filter(Boolean).join('\n').toLowerCase();

/// Whether a run matches what is searched for: each word of the text, and the other fields that are set.
export function matching({text = '', agent, directory, state}) {
  const below = directory?.replace(/\/+$/, '');
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const inState = STATES[state]?.[1];
  return (run) => {
    if (agent && run.provider !== agent) return false;
    if (directory && run.directory !== below && !run.directory?.startsWith(`${below}/`)) return false;
    if (inState && !inState(run)) return false;
    if (words.length === 0) return true;
    const texts = textsOf(run);
    return words.every((word) => texts.includes(word));
  };
}

/// Shows the fields in `place`. `changed` is called when they change; `all` returns the runs that are known.
export function search(place, changed, all) {
  const before = new URLSearchParams(location.hash.split('?')[1] ?? '');
  const value = (name) => before.get(name) ?? '';
  const field = (name, more) => h('input', {type: 'search', name, value: value(name), spellcheck: false, autocapitalize: 'off', ...more});
  const text = field('text', {'aria-label': 'Text', placeholder: 'Words of title, directory, model or error'});
  const directory = field('directory', {'aria-label': 'Directory', placeholder: 'Any directory'});
  directory.setAttribute('list', 'searched-directories');
  const directories = h('datalist', {id: 'searched-directories'});
  const select = (name, label, any, options) => h('select', {name, 'aria-label': label}, h('option', {value: ''}, any), options.map(([id, word]) => h('option', {value: id, selected: id === value(name)}, word)));
  const known = (of) => [...new Set(all().map(of).filter(Boolean))];
  const agents = [...new Set([...known((run) => run.provider), value('agent')])].filter(Boolean).sort();
  const agent = select('agent', 'Agent', 'Any agent', agents.map((id) => [id, id]));
  const state = select('state', 'State', 'Any state', Object.entries(STATES).map(([id, [word]]) => [id, word]));
  const fields = {text, agent, directory, state};
  let wanted;
  let matches;

  const read = () => {
    wanted = Object.fromEntries(NAMES.map((name) => [name, fields[name].value.trim()]).filter(([, value]) => value !== ''));
    matches = matching(wanted);
    const query = new URLSearchParams(wanted).toString();
    // Not a step back in the history for each letter.
    history.replaceState(null, '', `#/now${query && `?${query}`}`);
  };
  const clear = () => {
    for (const one of Object.values(fields)) one.value = '';
    read();
    place.replaceChildren();
    changed();
  };
  const form = h('form.search', {
    role: 'search',
    oninput: () => {
      read();
      changed();
    },
    onsubmit: (event) => event.preventDefault(),
    onkeydown: (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      clear();
    },
  }, text, directory, directories, agent, state, h('button.quiet', {type: 'button', onclick: clear}, 'Show all'));
  directory.addEventListener('focus', () => fill(directories, known((run) => run.directory).slice(0, 50).map((value) => h('option', {value}))));
  read();
  return {
    isSet: () => Object.keys(wanted).length > 0,
    matches: (run) => matches(run),
    focus() {
      if (!place.contains(form)) fill(place, form);
      changed();
      text.focus();
    },
  };
}
