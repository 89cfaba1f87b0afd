// What this browser remembers of the page. Where it keeps nothing, a setting holds for the view only.

/// Returns the value of a setting; undefined if there is none.
export function recall(name) {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/// Keeps the value of a setting.
export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // The browser does not let this page keep anything.
  }
}
