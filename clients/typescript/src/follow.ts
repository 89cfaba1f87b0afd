import { Patience, json, send, type Connection } from "./http.js";
import { Silence, events } from "./sse.js";
import type { Change, Entry, LogPage } from "./types.js";

/** How long one page of a log may take to have something, in seconds. */
const PAGE_SECONDS = 20;

/**
 * The entries of the log at `path` behind `after`, each once and in order, up to its end.
 *
 * A connection that breaks is made again behind the last entry. Where something on the way holds a stream back, pages
 * of the same log take its place.
 */
export async function* follow(connection: Connection, path: string, after: number, signal: AbortSignal | undefined): AsyncGenerator<Entry, void, void> {
  const patience = new Patience(connection.reconnectMs, signal);
  let seq = after;
  let streams = true;
  for (;;) {
    try {
      if (streams) {
        const abort = new AbortController();
        const either = signal ? AbortSignal.any([signal, abort.signal]) : abort.signal;
        // A proxy may hold back even the head of a response.
        const timer = setTimeout(() => abort.abort(new Silence("there is no response")), connection.silenceMs);
        const response = await send(connection, `${path}?after=${seq}`, { headers: { Accept: "text/event-stream" }, signal: either }).finally(() => clearTimeout(timer));
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
        const limit = AbortSignal.timeout(PAGE_SECONDS * 1000 + connection.silenceMs);
        const either = signal ? AbortSignal.any([signal, limit]) : limit;
        const page = await json<LogPage | undefined>(connection, `${path}?after=${seq}&wait=${PAGE_SECONDS}`, { signal: either });
        patience.reached();
        for (const entry of page?.entries ?? []) {
          seq = entry.seq;
          yield entry;
        }
        if (page === undefined || page.ended) return;
      }
    } catch (error) {
      if (error instanceof Silence) streams = false;
      else await patience.wait(error);
    }
  }
}

/** How things stand, then what changes of it. A connection that breaks is made again, and begins with a snapshot. */
export async function* watch(connection: Connection, signal: AbortSignal | undefined): AsyncGenerator<Change, void, void> {
  const patience = new Patience(connection.reconnectMs, signal);
  for (;;) {
    try {
      const response = await send(connection, "/events", { headers: { Accept: "text/event-stream" }, signal });
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
