/** Every kind of event, "noun.verb", grouped by family. The noun is the last token of the log's subject. */
export const kinds = [
  // source and session: Tapedeck's own events about what it records
  "source.added",
  "source.checkpoint",
  "source.erased", // nothing is left of the source, and this goes too
  "session.started",
  "session.identified", // a channel's fingerprint, by which a reconnect or an import finds the session again
  "session.labelled", // labels that changed after its start: a dev loop began on another branch or commit
  "session.described", // the upstream's own state at a moment
  "session.ended",
  "session.lost", // recording has ended: how and when the session ended was not observed
  "session.gap", // something may be missing between two known points
  "session.gap_filled", // what an open gap missed has been recorded since
  "session.erased",
  // the upstream's process read its configuration (a new runner), or announced its end
  "session.configured",
  "session.terminated",
  "init.failed", // the upstream could not begin its work; no event reports its start
  // dev loop
  "loop.started",
  "loop.succeeded",
  "loop.failed",
  "build.started",
  "build.succeeded",
  "build.failed",
  "build.canceled",
  "build.cached",
  "test.started",
  "test.succeeded",
  "test.failed",
  "test.canceled",
  "render.started",
  "render.succeeded",
  "render.failed",
  "render.canceled",
  "deploy.started",
  "deploy.succeeded",
  "deploy.failed",
  "deploy.canceled",
  "verify.started",
  "verify.succeeded",
  "verify.failed",
  "verify.canceled",
  "exec.started",
  "exec.succeeded",
  "exec.failed",
  "exec.canceled",
  "check.started",
  "check.succeeded",
  "check.failed",
  "resource.pending",
  "resource.ready",
  "resource.failed",
  "sync.started",
  "sync.succeeded",
  "sync.failed",
  "port.forwarded",
  "debugger.attached",
  "debugger.detached",
  "log.written",
  // pods, apps and images of a host
  "inventory.described", // the full description of a host: a reader of the log can begin here
  "pod.prepared",
  "pod.prepare_aborted",
  "pod.started",
  "pod.exited",
  "pod.collected",
  "pod.changed", // an observed change without a fact of its own
  "pod.contradicted", // the host repeatedly contradicts the record, which then follows the host
  "app.started",
  "app.exited",
  "image.imported",
  "image.removed",
  "image.changed",
  // jobs of a server, what they print, and what they are about
  "job.queued",
  "job.assigned",
  "job.requeued",
  "job.started",
  "job.cancel_requested",
  "job.succeeded", // its command may have failed: see the outcome
  "job.failed",
  "job.canceled",
  "job.lost",
  "command.started",
  "command.finished",
  "terminal.written",
  "target.added",
  "target.changed",
  "target.removed",
  "project.added",
  "project.changed",
  "project.removed",
  "basis.added",
  "basis.changed",
  "basis.removed",
  "box.added",
  "box.changed",
  "box.removed",
  "runner.added",
  "runner.changed",
  "runner.removed",
  "control.requested",
  "control.accepted",
  "control.rejected",
  "upstream.connected",
  "upstream.lost",
  "upstream.restored",
  "upstream.unreadable", // the bytes are kept
  // a frame whose fact another channel has, or without a fact: kept to serve its channel again
  "mirror.received",
] as const;

/** The type of an event: `noun.verb`. */
export type Kind = (typeof kinds)[number];

/** The channel of Tapedeck's own events. It is numbered through all sessions of a source. */
export const ownChannel = "tapedeck";

/** What is printed: logs and the output of terminals. It never affects state, and may expire. */
export const textKinds = ["log.written", "terminal.written"] as const satisfies readonly Kind[];

export function isTextKind(kind: string): kind is (typeof textKinds)[number] {
  return (textKinds as readonly string[]).includes(kind);
}

const known: ReadonlySet<string> = new Set(kinds);

/** Whether this version knows the kind. A newer one may have recorded others. */
export function isKind(text: string): text is Kind {
  return known.has(text);
}

/** The noun of a kind: "build" of `build.succeeded`. */
export function kindNoun(kind: string): string {
  return kind.slice(0, kind.indexOf("."));
}

/** The nouns that have a start and an end, which make an operation; "pod" and "app" are runs of pods and apps. */
export const operationKinds = [
  ...(["loop", "init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync"] as const),
  ...(["pod", "app"] as const),
  ...(["job", "command"] as const),
] as const;
