// The buttons Apply and Discard of what a run has left in its worktree. Each says what it does and asks, before it does it.

import {post} from './api.js';
import {fill, h, many} from './dom.js';

/// Returns what a discard loses, in words.
function lost({commits, dirty, wip, unsaved, directory, branch}) {
  const parts = [commits > 0 && many(commits, 'commit'), (dirty || wip) && 'what is not committed', ...(unsaved ?? [])].filter(Boolean);
  const places = [directory && ['the worktree ', h('code.wrap', directory)], branch && ['the branch ', h('code.wrap', branch)]].filter(Boolean);
  const all = [parts.slice(0, -1).join(', '), ...parts.slice(-1)].filter(Boolean).join(' and ');
  return [all || 'its changes', places.length > 0 && ', with ', places.flatMap((place, i) => (i > 0 ? [' and ', ...place] : place))];
}

/// Returns the part for the ended run `id` that has left this; `discarded` is called with a report when it is gone.
export function settle(id, workspace, discarded) {
  const part = h('div.settle');
  const problem = h('p.error', {role: 'alert', hidden: true});
  const path = `/v1/runs/${encodeURIComponent(id)}`;

  /// Shows the buttons, with a report of what was done.
  function begin(report, isApplied = false) {
    const apply = workspace.kind === 'worktree' && !isApplied && h('button.apply', {type: 'button', onclick: () => ask(applying)}, 'Apply…');
    const discard = h('button.danger.discard', {type: 'button', onclick: () => ask(discarding)}, 'Discard…');
    fill(part, report && h('p', {role: 'status'}, report), h('div.actions', apply, discard), problem);
  }

  const applying = {
    question: ['Apply the changes to the files of the repository that the worktree was made from, on the server’s machine? Nothing is committed, and nothing is changed if they do not fit.'],
    word: 'Apply',
    async work() {
      const {directory, filesChanged, warnings = []} = await post(`${path}/apply`, {});
      const lines = filesChanged > 0 ? [`${many(filesChanged, 'file')} ${filesChanged === 1 ? 'has' : 'have'} the changes now, in `, h('code.wrap', directory), '.'] : ['There was nothing to apply.'];
      begin([...lines, ...warnings.map((warning) => h('span.warning', ` ${warning}`))], true);
    },
  };
  const discarding = {
    question: ['Discard ', ...lost(workspace), '? They cannot be brought back.'],
    word: 'Discard for good',
    isDangerous: true,
    async work() {
      const {branch} = await post(`${path}/discard`, {});
      discarded(branch || !workspace.branch ? 'The changes were discarded.' : ['The changes were discarded. The branch ', h('code.wrap', workspace.branch), ' stays: it has other commits, or is in use.']);
    },
  };

  function ask({question, word, isDangerous, work}) {
    problem.hidden = true;
    const back = h('button', {type: 'button', onclick: () => begin()}, 'Keep as it is');
    const go = h(isDangerous ? 'button.danger' : 'button', {
      type: 'button',
      onclick: async () => {
        go.disabled = back.disabled = true;
        try {
          await work();
        } catch (error) {
          begin();
          problem.hidden = false;
          problem.textContent = error.status === undefined ? 'The server cannot be reached: look at the run again before you repeat it.' : error.message;
        }
      },
    }, word);
    fill(part, h('p', question), h('div.actions', go, back), problem);
    // A key that was meant for something else discards nothing.
    (isDangerous ? back : go).focus();
  }

  begin();
  return part;
}
