import { TeamsterError } from "./errors.js";

/** The longest time of a timer, in milliseconds; a longer one would fire at once. */
export const LONGEST_MS = 2 ** 31 - 1;

/** No byte arrived for too long. */
export class Silence extends TeamsterError {}

/** Calls `act` after so many milliseconds; never if they are infinite. */
function after(ms: number, act: () => void): ReturnType<typeof setTimeout> | undefined {
  return ms > LONGEST_MS ? undefined : setTimeout(act, ms);
}

/** The limits of each signal of a caller. With a listener for each, Node would warn of a leak from the eleventh on. */
const limits = new WeakMap<AbortSignal, Set<Limit>>();

function limitsOf(signal: AbortSignal): Set<Limit> {
  let found = limits.get(signal);
  if (!found) {
    const all = (found = new Set<Limit>());
    limits.set(signal, all);
    signal.addEventListener("abort", () => all.forEach((limit) => limit.abort(signal.reason)), { once: true });
  }
  return found;
}

/** A signal that is aborted with that of the caller, or after a limit of time. */
export class Limit {
  private readonly controller = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly caller: AbortSignal | undefined) {
    if (caller?.aborted) this.abort(caller.reason);
    else if (caller) limitsOf(caller).add(this);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Aborts after so many milliseconds, with a `Silence`. Replaces an earlier limit. */
  within(ms: number, what: string): void {
    this.pause();
    this.timer = after(ms, () => this.controller.abort(new Silence(what)));
  }

  /** Ends the limit of time. */
  pause(): void {
    clearTimeout(this.timer);
  }

  /** The result of `work`, or the reason of the abort, which some implementations of `fetch` ignore. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(this.signal.reason);
      if (this.signal.aborted) abort();
      this.signal.addEventListener("abort", abort);
      work.then(resolve, reject).finally(() => this.signal.removeEventListener("abort", abort));
    });
  }

  /** Aborts with this reason. Only the first reason counts. */
  abort(reason?: unknown): void {
    this.controller.abort(reason);
  }

  /** Aborts what is not complete, and lets go of the caller's signal. */
  close(reason?: unknown): void {
    this.pause();
    if (this.caller) limits.get(this.caller)?.delete(this);
    this.abort(reason);
  }
}
