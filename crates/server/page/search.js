// The search in the view Now: fields for text, agent, directory and state, which the address has, too. Runs that are shown
// are filtered here at once; the server finds the others.

import {fill, h} from './dom.js';

/// The states that can be chosen, and what they mean of a run.
const STATES = {
  live: ['at work', (run) => run.state !== 'ended'],
  waiting: ['waits for you', (run) => run.state === 'waiting'],
  completed: ['completed', (run) => run.state === 'ended' && run.status === 'completed'],
  failed: ['failed', (run) => run.state === 'ended' && !['completed', 'aborted'].includes(run.status)],
  aborted: ['cancelled', (run) => run.state === 'ended' && run.status === 'aborted'],
};
const NAMES = ['text', 'prompts', 'agent', 'directory', 'state'];
/// The parameters of a state: of runs, and of the history, which has none that is live.
const OF_SERVER = {
  live: [{live: 'true'}],
  waiting: [{state: 'waiting'}],
  completed: [{state: 'ended'}, {status: 'success'}],
  failed: [{state: 'ended'}, {}],
  aborted: [{state: 'ended'}, {status: 'aborted'}],
};
/// Time without another letter after which the server is asked.
const PAUSE = 300;

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

/// The parameters of the same search for the server: words are those of titles there, and of prompts on demand.
export function queriesOf({text, prompts, agent, directory, state}) {
  const set = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value));
  const [ofRuns, ofHistory] = OF_SERVER[state] ?? [{}, {}];
  const both = {agent, directory: directory?.startsWith('/') ? directory : undefined, text};
  return {runs: set({...both, prompts: text && prompts && 'true', ...ofRuns}), history: ofHistory && set({...both, ...ofHistory})};
}

/// Shows the fields in `place`. `changed` is called when they change, and `ask` a little later, with the parameters for the
/// server or nothing; `all` returns the runs that are known.
export function search(place, changed, ask, all) {
  const before = new URLSearchParams(location.hash.split('?')[1] ?? '');
  const value = (name) => before.get(name) ?? '';
  const field = (name, more) => h('input', {type: 'search', name, value: value(name), spellcheck: false, autocapitalize: 'off', ...more});
  const text = field('text', {'aria-label': 'Text', placeholder: 'Words, such as of the title'});
  const directory = field('directory', {'aria-label': 'Directory', placeholder: 'Any directory'});
  directory.setAttribute('list', 'searched-directories');
  const directories = h('datalist', {id: 'searched-directories'});
  const select = (name, label, any, options) => h('select', {name, 'aria-label': label}, h('option', {value: ''}, any), options.map(([id, word]) => h('option', {value: id, selected: id === value(name)}, word)));
  const known = (of) => [...new Set(all().map(of).filter(Boolean))];
  const agents = [...new Set([...known((run) => run.provider), value('agent')])].filter(Boolean).sort();
  const agent = select('agent', 'Agent', 'Any agent', agents.map((id) => [id, id]));
  const state = select('state', 'State', 'Any state', Object.entries(STATES).map(([id, [word]]) => [id, word]));
  const prompts = h('input', {type: 'checkbox', name: 'prompts', checked: value('prompts') !== ''});
  const fields = {text, agent, directory, state};
  let wanted;
  let matches;
  let inState;
  let timer;

  const read = () => {
    const valueOf = (name) => (name === 'prompts' ? prompts.checked && text.value.trim() && 'true' : fields[name].value.trim());
    wanted = Object.fromEntries(NAMES.map((name) => [name, valueOf(name)]).filter(([, value]) => value));
    matches = matching(wanted);
    inState = matching({state: wanted.state});
    const isSet = Object.keys(wanted).length > 0;
    clearTimeout(timer);
    timer = setTimeout(() => ask(isSet ? queriesOf(wanted) : undefined), isSet ? PAUSE : 0);
    const query = new URLSearchParams(wanted).toString();
    // Not a step back in the history for each letter.
    history.replaceState(null, '', `#/now${query && `?${query}`}`);
  };
  const clear = () => {
    for (const one of Object.values(fields)) one.value = '';
    prompts.checked = false;
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
  }, text, directory, directories, agent, state, h('label.check', prompts, h('span', 'Prompts too')), h('button.quiet', {type: 'button', onclick: clear}, 'Show all'));
  directory.addEventListener('focus', () => fill(directories, known((run) => run.directory).slice(0, 50).map((value) => h('option', {value}))));
  read();
  return {
    isSet: () => Object.keys(wanted).length > 0,
    matches: (run) => matches(run),
    /// Whether a run that the server has found is in the state that is wanted.
    isInState: (run) => inState(run),
    focus() {
      if (!place.contains(form)) fill(place, form);
      changed();
      text.focus();
    },
  };
}
