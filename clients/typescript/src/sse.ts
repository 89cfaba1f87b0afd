/** A server-sent event. */
export interface SseEvent {
  event: string;
  data: string;
}

/** Parses text in pieces and returns complete events. */
export class SseParser {
  /** Pieces of a line that is not complete yet: they are joined once, so that the work is linear in its size. */
  private pieces: string[] = [];
  private event = "";
  private data: string[] = [];

  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.pieces.push(text.slice(start, end));
      start = end + 1;
      let line = this.pieces.join("");
      this.pieces = [];
      if (line.endsWith("\r")) line = line.slice(0, -1);
      if (line === "") {
        if (this.data.length > 0) events.push({ event: this.event || "message", data: this.data.join("\n") });
        this.event = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") this.data.push(value);
      else if (field === "event") this.event = value;
    }
    if (start < text.length) this.pieces.push(text.slice(start));
    return events;
  }
}

/** No byte arrived for too long, although a stream has a heartbeat every 15 s. */
export class Silence extends Error {}

/** The events of a response. After `silenceMs` without a byte it fails with `Silence`; heartbeats count. */
export async function* events(response: Response, silenceMs: number): AsyncGenerator<SseEvent | "alive"> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Silence("the stream is silent")), silenceMs);
      });
      const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
      if (done) return;
      yield "alive";
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Without waiting: a connection that is broken never answers.
    reader.cancel().catch(() => {});
  }
}
