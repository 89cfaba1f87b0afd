// The form of a question: fields for a JSON Schema, whose answers have the types of the schema. What is optional is
// answered only if something was chosen.

import {h} from './dom.js';

const INPUTS = {email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local'};

/// Returns form fields for a JSON Schema of an object, and a function that reads them. A field that cannot be made from
/// its schema shows that, and takes JSON.
export function formOf(schema) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const one = typeof field === 'object' && field !== null ? field : {};
    const isRequired = required.has(name);
    try {
      return {name, ...fieldOf(one, wordOf(one.title ?? name), isRequired)};
    } catch {
      return {name, ...json({description: JSON.stringify(one)}, name, isRequired)};
    }
  });
  const read = () => Object.fromEntries(fields.map(({name, read}) => [name, read()]).filter(([, value]) => value !== undefined));
  return [fields.map(({element}) => element), read];
}

/// Returns a field for any answer, and a function that reads it.
export function anyAnswer() {
  const {element, read} = json({}, 'Answer', true);
  return [[element], read];
}

function fieldOf(field, label, isRequired) {
  const type = Array.isArray(field.type) ? field.type.find((one) => one !== 'null') : field.type;
  const choices = choicesOf(field) ?? (type === 'boolean' ? [[true, 'Yes'], [false, 'No']] : undefined);
  if (choices) return oneOf(choices, field, label, isRequired);
  const several = type === 'array' && choicesOf(field.items ?? {});
  if (several) return someOf(several, field, label, isRequired);
  if (type === 'number' || type === 'integer') return number(field, type, label, isRequired);
  return type === 'string' ? line(field, label, isRequired) : json(field, label, isRequired);
}

/// The values of a choice and their titles.
function choicesOf({enum: values, enumNames, oneOf, anyOf}) {
  if (Array.isArray(values)) return values.map((value, i) => [value, wordOf(enumNames?.[i] ?? value)]);
  const list = oneOf ?? anyOf;
  if (!Array.isArray(list) || list.length === 0 || !list.every((one) => one?.const !== undefined)) return undefined;
  return list.map((one) => [one.const, wordOf(one.title ?? one.const)]);
}

/// A value of a schema as text: what is no text could set properties of an element.
const wordOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/// A field with its label; `hints` are further lines below it.
function labelled(label, field, input, ...hints) {
  return h('label', h('span', label), input, [field.description, ...hints].filter(Boolean).map((hint) => h('small', wordOf(hint))));
}

/// One of several values, which are kept by their numbers: text would lose their types.
function oneOf(choices, field, label, isRequired) {
  const input = h('select', {required: isRequired}, h('option', {value: ''}, '–'),
    choices.map(([value, title], i) => h('option', {value: String(i), selected: field.default !== undefined && isSame(value, field.default)}, title)));
  return {element: labelled(label, field, input), read: () => (input.value === '' ? undefined : choices[Number(input.value)][0])};
}

/// Any number of several values.
function someOf(choices, field, label, isRequired) {
  const defaults = Array.isArray(field.default) ? field.default : [];
  const boxes = choices.map(([value]) => h('input', {type: 'checkbox', checked: defaults.some((one) => isSame(one, value))}));
  const {minItems = 0, maxItems = Infinity} = field;
  const check = () => {
    const count = boxes.filter((box) => box.checked).length;
    const isLeftOut = count === 0 && !isRequired;
    const problem = count > maxItems ? `Choose ${maxItems} at most.` : count < minItems && !isLeftOut ? `Choose ${minItems} at least.` : '';
    boxes[0]?.setCustomValidity(problem);
  };
  const element = h('fieldset', {onchange: check}, h('legend', label), choices.map(([, title], i) => h('label.check', boxes[i], h('span', title))), field.description && h('small', wordOf(field.description)));
  check();
  return {
    element,
    read: () => {
      const chosen = choices.filter((_, i) => boxes[i].checked).map(([value]) => value);
      return chosen.length === 0 && !isRequired ? undefined : chosen;
    },
  };
}

function number(field, type, label, isRequired) {
  const input = h('input', {type: 'number', step: type === 'integer' ? '1' : 'any', required: isRequired, min: field.minimum, max: field.maximum});
  if (typeof field.default === 'number') input.value = String(field.default);
  return {element: labelled(label, field, input), read: () => (input.value === '' ? undefined : Number(input.value))};
}

/// A length that a field can have: others are errors in browsers. Of two that exclude each other, the longest one holds
/// here, and the check of the server decides.
const lengthOf = (value) => (Number.isInteger(value) && value >= 0 && value < 2 ** 31 ? value : undefined);

/// A line of text. A pattern is shown and not checked here: one can be made that never comes to an end.
function line(field, label, isRequired) {
  const type = INPUTS[field.format] ?? 'text';
  const [shortest, longest] = [lengthOf(field.minLength), lengthOf(field.maxLength)];
  const input = h('input', {type, required: isRequired, maxLength: longest, minLength: shortest > longest ? undefined : shortest});
  const isTime = type === 'datetime-local';
  if (isTime) input.step = '1';
  if (typeof field.default === 'string') input.value = isTime ? localTime(field.default) : field.default;
  const read = () => {
    if (input.value === '') return undefined;
    return isTime ? new Date(input.value).toISOString() : input.value;
  };
  return {element: labelled(label, field, input, field.pattern && `Pattern: ${wordOf(field.pattern)}`), read};
}

/// A point in time as the browser's field wants it: of its own zone, without the zone.
function localTime(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/// Any other value, as JSON.
function json(field, label, isRequired) {
  const input = h('textarea', {rows: 2, required: isRequired, spellcheck: false});
  if (field.default !== undefined) input.value = JSON.stringify(field.default);
  const check = () => {
    try {
      if (input.value.trim() !== '') JSON.parse(input.value);
      input.setCustomValidity('');
    } catch {
      input.setCustomValidity('This is not JSON.');
    }
  };
  input.addEventListener('input', check);
  return {element: labelled(label, field, input, 'As JSON'), read: () => (input.value.trim() === '' ? undefined : JSON.parse(input.value))};
}
