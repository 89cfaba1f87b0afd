// The part Changes of a run: what it has left in its workspace. The diff is read when the part is opened; of many
// changes the figures first, and the lines of a file when it is opened.

import {get} from './api.js';
import {commenting} from './comment.js';
import {hunksOf} from './diff.js';
import {attempt, copier, fill, h, icon, many} from './dom.js';
import {canBeFollowed} from './follow.js';
import {counts, figures} from './marks.js';
import {recall, remember} from './settings.js';
import {settle} from './settle.js';

/// Largest diff that is read at once.
const SMALL = {files: 40, lines: 4000};
/// Number of lines up to which files are open at first.
const OPEN = 500;
/// Number of files that are shown at once; a click shows as many more.
const PIECE = 300;
/// Length from which a name does not stay at the top of the window, because it takes too much of it.
const LONG = 160;
/// The setting of this browser.
const SETTING = 'teamster.diff';
const WIDE = '(min-width: 62rem)';

const STATUS = {added: ['+', 'added'], deleted: ['−', 'deleted'], modified: ['~', 'modified'], renamed: ['→', 'renamed'], mode: ['~', 'mode changed'], type: ['~', 'type changed']};
const MODES = {100644: 'file', 100755: 'executable', 120000: 'symbolic link', 160000: 'submodule'};

const isUnchanged = ({commits, filesChanged, unsaved, error}) => commits === 0 && filesChanged === 0 && !unsaved?.length && !error;

/// Returns the part of the run `id`; it is hidden until the run has ended with changes. `comment` takes the text of a
/// comment on a line.
export function changes(id, comment) {
  const name = `teamster runs diff ${id.slice(0, 13)}`;
  const abort = new AbortController();
  const wide = window.matchMedia(WIDE);
  const summary = h('summary');
  const body = h('div.diff-of');
  const part = h('details.changes', {hidden: true}, summary, body);
  let workspace;
  /// Whether there is a session that takes another prompt.
  let canFollow = false;
  let key;
  /// Files that are shown, as functions that show them again.
  let views = [];
  let isSplit = recall(SETTING) === 'split';

  const read = (query) => get(`/v1/runs/${encodeURIComponent(id)}/diff${query.length > 0 ? `?${new URLSearchParams(query)}` : ''}`, {signal: abort.signal});

  const isSideBySide = () => isSplit && wide.matches;
  const again = () => views.forEach((view) => view());
  const onWidth = () => isSplit && again();
  wide.addEventListener('change', onWidth);

  const box = h('input', {type: 'checkbox', role: 'switch', checked: isSplit, onchange: () => {
    isSplit = box.checked;
    remember(SETTING, isSplit ? 'split' : 'unified');
    again();
  }});

  /// Shows an error in `place`, with a button that repeats the action.
  const failed = (place, error, retry) => {
    if (abort.signal.aborted) return;
    const message = error.status === undefined ? 'The server cannot be reached.' : error.message;
    fill(place, h('p.error', {role: 'alert'}, message), h('p', h('button', {type: 'button', onclick: retry}, 'Try again')));
  };

  async function begin() {
    fill(body, h('p.note', {role: 'status'}, 'Reading the changes…'));
    const {filesChanged, insertions = 0, deletions = 0} = workspace;
    const isSmall = filesChanged <= SMALL.files && insertions + deletions <= SMALL.lines;
    try {
      const [diff, client] = await Promise.all([read(isSmall ? [] : [['stat', 'true']]), get('/v1/client')]);
      views = [];
      // The files that they change are not seen from elsewhere.
      const buttons = client.isOnMachine ? settle(id, workspace, discarded) : h('p.note', 'They are applied or discarded on the server’s machine: by the command above, or on this page in a browser there.');
      fill(body, h('div.head', terminal(), h('label.check.split', box, h('span', 'Side by side'))), buttons, notes(diff), list(diff, isSmall));
    } catch (error) {
      // A run that was attached to a terminal is in the history alone.
      if (error.code === 'RUN_NOT_FOUND') fill(body, h('p.note', 'They are shown in a terminal: ', h('code.wrap', name)), terminal());
      else failed(body, error, begin);
    }
  }

  const discarded = (report) => {
    views = [];
    fill(body, h('p', {role: 'status'}, report));
  };

  const terminal = () => h('details', h('summary', 'Apply or fetch in a terminal'),
    command('Into your working tree', `teamster runs apply ${id.slice(0, 13)}`),
    command('As a branch of your repository', `teamster runs fetch ${id.slice(0, 13)}`));

  const notes = (diff) => {
    const {commits, wip, unsaved, error} = workspace;
    const left = diff.filesChanged - diff.files.length;
    return [
      diff.files.length === 0 && h('p.note', 'No file differs from the commit at which the run began.'),
      wip && h('p.note', commits === 0 ? 'The agent has committed nothing. Its changes are kept as commit ' : 'Not all of it was committed by the agent. The rest is kept as commit ', h('code', wip.slice(0, 12)), '.'),
      unsaved?.length > 0 && h('div.note', 'Only in its folder:', h('ul', unsaved.map((what) => h('li', what)))),
      error && h('p.note', error),
      left > 0 && h('p.note', `${many(left, 'more file')} ${left === 1 ? 'is' : 'are'} not shown: `, h('code.wrap', name), ' has all.'),
    ];
  };

  function list(diff, isWhole) {
    const files = h('div.changed');
    const more = h('button', {type: 'button', onclick: () => add()});
    let next = 0;
    let room = isWhole ? OPEN : 0;
    const add = () => {
      for (const file of diff.files.slice(next, next + PIECE)) {
        const size = (file.insertions ?? 0) + (file.deletions ?? 0);
        const isOpen = file.hunks !== undefined && !file.truncated && size <= room;
        if (isOpen) room -= size;
        files.append(attempt(file, () => view(file, isWhole, isOpen)));
      }
      next += PIECE;
      if (next < diff.files.length) more.textContent = `Show more: ${many(diff.files.length - next, 'file')} ${diff.files.length - next === 1 ? 'is' : 'are'} left`;
      else more.remove();
    };
    const all = h('div', files, more);
    add();
    return all;
  }

  /// Reads the lines of a file.
  async function linesOf(file) {
    // A path that is not UTF-8 cannot be asked for.
    const isNamed = file.rawPath === undefined && file.rawOldPath === undefined;
    const paths = [file.oldPath, file.path].filter((path) => path !== undefined);
    const {files} = await read(isNamed ? paths.map((path) => ['path', path]) : []);
    return files.find((one) => one.path === file.path && one.rawPath === file.rawPath && one.status === file.status) ?? {...file, truncated: true};
  }

  /// A file: its name and figures, and its lines when it is open.
  function view(file, isWhole, isOpen) {
    const [sign, word] = STATUS[file.status] ?? ['~', 'changed'];
    const lines = h('div.lines-of');
    const isLong = file.path.length + (file.oldPath?.length ?? 0) > LONG;
    const element = h(isLong ? 'details.file.long' : 'details.file', {open: isOpen},
      h('summary', h('span.sign', {'data-status': file.status, title: word}, sign),
        h('h3', h('span.name', file.oldPath !== undefined && [h('bdi', file.oldPath), ' → '], h('bdi', file.path)),
          modes(file), file.binary && h('span.tag', 'binary'), file.truncated && h('span.tag', 'in part')),
        !file.binary && h('span.counts', counts(file))),
      lines);
    // Once for all times that it is opened.
    let button;
    const commentOn = () => (button ??= commenting(lines, file, comment));
    // What a limit of the whole diff left out may be in that of the file.
    let whole = (isWhole && !file.truncated) || file.binary ? file : undefined;
    let isReading = false;
    const show = async (isNew) => {
      if (!element.open) {
        // It is made once it is opened.
        if (isNew) lines.replaceChildren();
        return;
      }
      if (isReading || (lines.hasChildNodes() && !isNew)) return;
      isReading = true;
      try {
        if (!whole) {
          fill(lines, h('p.note', {role: 'status'}, 'Reading…'));
          whole = await linesOf(file);
        }
        fill(lines, attempt(whole, () => content(whole)), whole.hunks?.length > 0 && canFollow && commentOn());
      } catch (error) {
        failed(lines, error, () => show(true));
      } finally {
        isReading = false;
      }
    };
    element.addEventListener('toggle', () => {
      show(false);
      // Its name may have been closed far below its place.
      if (!element.open && element.getBoundingClientRect().top < 0) element.scrollIntoView();
    });
    views.push(() => show(true));
    return element;
  }

  function content(file) {
    const isEmpty = !file.hunks?.length;
    return [
      !isEmpty && hunksOf(file, isSideBySide()),
      file.binary && h('p.note', 'It is binary. ', h('code.wrap', `teamster runs fetch ${id.slice(0, 13)}`), ' brings it.'),
      file.truncated && h('p.note', 'Lines are left out here, because there are too many. ', h('code.wrap', name), ' has all.'),
      isEmpty && !file.binary && !file.truncated && h('p.note', EMPTY[file.status] ?? 'Its content is the same.'),
    ];
  }

  const beginOnce = () => {
    if (part.open && !part.hidden && !body.hasChildNodes()) begin();
  };
  part.addEventListener('toggle', beginOnce);
  return {
    part,
    update(run) {
      workspace = run.state === 'ended' ? run.workspace : undefined;
      canFollow = canBeFollowed(run);
      part.hidden = !workspace || isUnchanged(workspace);
      const now = JSON.stringify(workspace);
      if (part.hidden || now === key) return;
      key = now;
      const {branch, commits, filesChanged, dirty} = workspace;
      fill(summary, h('h2', 'Changes'),
        branch && h('span.branch', icon('branch'), h('bdi', branch)),
        commits > 0 && h('span', many(commits, 'commit')),
        filesChanged === undefined ? h('span', 'cannot be read') : figures(workspace),
        dirty && h('span.tag', commits === 0 ? 'not committed' : 'not all committed'));
      beginOnce();
    },
    /// Opens it, and moves the focus there.
    show() {
      part.open = true;
      part.scrollIntoView();
      summary.focus({preventScroll: true});
    },
    close() {
      abort.abort();
      wide.removeEventListener('change', onWidth);
    },
  };
}

const EMPTY = {added: 'It is empty.', deleted: 'It was empty.', renamed: 'Its content is the same.', mode: 'Its content is the same.'};

/// Shows the kind of a file that is not an ordinary one, and how it was changed.
function modes({oldMode, newMode}) {
  const word = (mode) => MODES[mode] ?? mode;
  if (oldMode && newMode && oldMode !== newMode) return h('span.tag', {title: `${oldMode} → ${newMode}`}, `${word(oldMode)} → ${word(newMode)}`);
  const mode = newMode ?? oldMode;
  return mode && mode !== '100644' ? h('span.tag', {title: mode}, word(mode)) : undefined;
}

/// Shows a command, with a button that copies it.
function command(what, line) {
  return h('p.command', h('span', what), h('code.wrap', line), copier(line, () => line, true));
}
