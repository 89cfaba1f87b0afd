/** A server-sent event. */
export interface SseEvent {
  event: string;
  data: string;
}

/** Parses text in pieces and returns complete events. A line ends with LF, CRLF or CR. */
export class SseParser {
  /** Pieces of a line that is not complete yet: they are joined once, so that the work is linear in its size. */
  private pieces: string[] = [];
  /** True after a CR at the end of a piece: an LF that follows belongs to it. */
  private afterCr = false;
  private event = "";
  private data: string[] = [];

  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let start = this.afterCr && text.startsWith("\n") ? 1 : 0;
    if (text !== "") this.afterCr = text.endsWith("\r");
    const ends = /\r\n?|\n/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      this.pieces.push(text.slice(start, end.index));
      start = ends.lastIndex;
      const line = this.pieces.join("");
      this.pieces = [];
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
