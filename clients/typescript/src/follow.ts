import { Patience, STREAM, json, send, type Connection } from "./http.js";
import { Silence, events } from "./sse.js";
import type { Change, Entry, LogPage } from "./types.js";

/** Time that one page of a log waits for entries, in seconds. */
const PAGE_SECONDS = 20;

/**
 * The entries of the log at `path` behind `after`, each once and in order, up to its end.
 *
 * After a break, the stream continues behind the last entry. If a proxy buffers the stream, it is replaced by pages
 * of the same log.
 */
export async function* follow(connection: Connection, path: string, after: number, signal: AbortSignal | undefined): AsyncGenerator<Entry, void, void> {
  const patience = new Patience(connection, signal);
  let seq = after;
  let streams = true;
  for (;;) {
    try {
      if (streams) {
        const abort = new AbortController();
        const either = signal ? AbortSignal.any([signal, abort.signal]) : abort.signal;
        // A proxy may hold back even the head of a response.
        const timer = setTimeout(() => abort.abort(new Silence("there is no response")), connection.silenceMs);
        const response = await send(connection, `${path}?after=${seq}`, { headers: { Accept: STREAM }, media: STREAM, signal: either }).finally(() => clearTimeout(timer));
        if (response.status === 204) return;
        try {
          for await (const event of events(response, connection.silenceMs)) {
            patience.reached();
            if (event === "alive") continue;
            if (event.event === "end") return;
            const entry = JSON.parse(event.data) as Entry;
            seq = entry.seq;
            yield entry;
          }
        } finally {
          abort.abort();
        }
        // The stream has closed without its end: it was cut.
        await patience.wait(new Error("the stream was cut"));
      } else {
        const timeoutMs = PAGE_SECONDS * 1000 + connection.silenceMs;
        const page = await json<LogPage | undefined>(connection, `${path}?after=${seq}&wait=${PAGE_SECONDS}`, { signal, timeoutMs });
        patience.reached();
        for (const entry of page?.entries ?? []) {
          seq = entry.seq;
          yield entry;
        }
        if (page === undefined || page.ended) return;
      }
    } catch (error) {
      // A silent response is the reason of the error, where it was aborted for that.
      if (error instanceof Silence || (error instanceof Error && error.cause instanceof Silence)) streams = false;
      else await patience.wait(error);
    }
  }
}

/** State of all runs and agents, then each change. A new connection after a break begins with a snapshot. */
export async function* watch(connection: Connection, signal: AbortSignal | undefined): AsyncGenerator<Change, void, void> {
  const patience = new Patience(connection, signal);
  for (;;) {
    try {
      const response = await send(connection, "/events", { headers: { Accept: STREAM }, media: STREAM, signal });
      for await (const event of events(response, connection.silenceMs)) {
        patience.reached();
        if (event !== "alive") yield JSON.parse(event.data) as Change;
      }
      await patience.wait(new Error("the stream was cut"));
    } catch (error) {
      await patience.wait(error);
    }
  }
}
