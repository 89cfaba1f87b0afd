/** A client of `teamster serve`: starts, follows, answers and stops runs of coding agents. */

export { Teamster, type Options, type StartOptions } from "./client.js";
export { Run } from "./run.js";
export { Session, Turn } from "./session.js";
export { Problem, ConnectionLost } from "./errors.js";
export type * from "./types.js";
