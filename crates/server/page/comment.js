// Comments on lines of a diff. Each goes into the box of the follow-up, with its place and its line, and from there to the
// agent as its next prompt.

import {fill, h} from './dom.js';

/// Maximum length of a line that is quoted.
const LONGEST = 300;

/// Whether a line has a number of the old side alone.
const isOld = (line) => (line.dataset.new ?? '').trim() === '';

/// Lets a person comment on the lines of a file in `place`: on the number that is clicked, or that is entered. `take` gets
/// each comment as text; what it returns moves to the box that has it. Returns the button that begins a comment.
export function commenting(place, file, take) {
  const side = file.status === 'deleted' ? 'old' : 'new';
  const lineAt = (number, side) => [...place.querySelectorAll(`[data-${side}]`)].find((line) => line.dataset[side].trim() === number);

  const form = (number, line) => {
    const input = h('textarea', {rows: 2, required: true, 'aria-label': 'Comment', placeholder: 'For the agent'});
    const at = h('input', {type: 'number', min: 1, required: true, value: number, 'aria-label': 'Line', inputMode: 'numeric'});
    const element = h('form.comment', {
      onsubmit: (event) => {
        event.preventDefault();
        const on = line && line.dataset[isOld(line) ? 'old' : 'new'].trim() === at.value ? line : lineAt(at.value, side);
        const show = take(quoted(file.path, on ? isOld(on) : side === 'old', at.value, on, input.value));
        fill(element, h('p', {role: 'status'}, `The comment on line ${at.value} is in the next prompt. `, h('button.quiet', {type: 'button', onclick: show}, 'Show it')));
      },
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key === 'Escape') element.remove();
        if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) element.requestSubmit();
      },
    }, h('label.at', h('span', 'Line'), at), input, h('div.actions', h('button.primary', {type: 'submit'}, 'Add to the next prompt'), h('button', {type: 'button', onclick: () => element.remove()}, 'Cancel')));
    return [element, input];
  };

  // A number is made by the style sheet: it is what is left of the text.
  place.addEventListener('click', (event) => {
    const line = event.target.closest?.('[data-new]');
    if (!line || event.clientX - line.getBoundingClientRect().left > parseFloat(getComputedStyle(line).paddingLeft)) return;
    const number = line.dataset[isOld(line) ? 'old' : 'new'].trim();
    if (number === '') return;
    const [element, input] = form(number, line);
    (line.closest('.pair') ?? line).after(element);
    input.focus();
  });
  const button = h('p.commenting', h('button.quiet', {type: 'button', onclick: () => {
    const changed = place.querySelector('.added, .deleted');
    const [element, input] = form(changed ? changed.dataset[isOld(changed) ? 'old' : 'new'].trim() : '1', changed);
    button.after(element);
    input.focus();
  }}, 'Comment on a line'));
  return button;
}

/// The text of a comment: where it is, the line, and what is said.
function quoted(path, isOfOld, number, line, comment) {
  const sign = line?.classList.contains('deleted') ? '-' : line?.classList.contains('added') ? '+' : ' ';
  const text = line?.textContent ?? '';
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return [`${path}, ${isOfOld ? 'old ' : ''}line ${number}:`, ...(line ? [`> ${sign}${shown}`] : []), comment.trim()].join('\n');
}
