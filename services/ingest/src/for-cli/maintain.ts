// For commands that work on the log of this machine, beside ingest: `erase`, and the demo of `up`, which forgets what is
// old.
export { openEnds } from "../damage/ends.ts";
export { eraseSession, findSession } from "../record/maintain/erase-session.ts";
