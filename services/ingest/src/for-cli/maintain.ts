// For commands that work on the log of this machine, beside ingest: `erase`, and the demo of `up`, which forgets what is
// old.
export { openEnds } from "../record/journal/ends.ts";
export { beginDeveloperErasure, followDeveloperErasure } from "../record/maintain/erase-developer.ts";
export { findSource } from "../record/maintain/erase-session.ts";
export { beginErasure, followErasure } from "../record/maintain/erasures.ts";
