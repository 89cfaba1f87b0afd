// The words and figures of agents and changes that several views have. Each view itself is loaded once it is opened.

import {h, many, marked, rough, time} from './dom.js';
import {state} from './state.js';

const STATES = {
  running: ['on duty', 'runs'],
  failing: ['failing', 'bad'],
  limited: ['waits for a limit', 'maybe'],
  starting: ['starting', 'runs'],
  stopping: ['stopping', 'off'],
  backing_off: ['crashed, is started again', 'bad'],
  stopped: ['stopped', 'off'],
  ended: ['ended', 'bad'],
  failed: ['cannot run', 'bad'],
  suspended: ['stopped by a signal', 'bad'],
};

/// Returns whether the agent needs the user's attention.
export const isBad = (agent) => agent.enabled && ['failing', 'backing_off', 'ended', 'failed', 'suspended'].includes(agent.state);

/// Returns the state of an agent: a word and the kind of its mark.
export function stateWord(agent) {
  if (state.lostAt !== 0) return ['cannot know', 'unknown'];
  if (agent.state === 'running' && agent.activity) return agent.activity.state === 'tick' ? ['in a tick', 'runs'] : ['asleep', 'calm'];
  return STATES[agent.state] ?? [agent.state, 'unknown'];
}

/// Returns the time of the next tick, as text.
export function nextTick(agent) {
  if (agent.retryAtMs) return `next start in ${rough(agent.retryAtMs - time())}`;
  const until = agent.activity?.sleep_until_epoch;
  if (until === undefined) return '';
  const left = until * 1000 - time();
  return left > 0 ? `next tick in ${rough(left)}` : 'next tick now';
}

/// The name of a run: its title, or else its agent's.
export const nameOf = (run) => marked(run.title ?? run.provider);

const number = (value) => value.toLocaleString('en');

/// Shows how many lines were added and deleted.
export const counts = ({insertions, deletions}) => [insertions > 0 && h('span.plus', `+${number(insertions)}`), deletions > 0 && h('span.minus', `−${number(deletions)}`)];

/// Shows the figures of what a run has left: files and lines. Nothing without files.
export function figures(workspace) {
  return workspace?.filesChanged ? h('span.counts', many(workspace.filesChanged, 'file'), counts(workspace)) : undefined;
}

/// The same as text: `3 files +10 −2`.
export const inWords = ({filesChanged, insertions, deletions}) => [many(filesChanged, 'file'), insertions > 0 && `+${number(insertions)}`, deletions > 0 && `−${number(deletions)}`].filter(Boolean).join(' ');
