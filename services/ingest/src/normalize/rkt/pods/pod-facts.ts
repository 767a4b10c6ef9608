import type { App, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { type AppDetail, Outcome, type PodDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { assertNever } from "@tapedeck/shared/assert-never";
import { compareTimestamps, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { failed, name, summary } from "../../facts.ts";
import type { Times } from "../../inventory/inventory-rules.ts";
import { exitedApps, startedApps } from "./app-runs.ts";
import type { PodChange } from "./pod-change.ts";
import { type PodPhase, type PodStep, podTable, stateOf } from "./pod-table.ts";

/** The facts of a change by the table; undefined for "never". */
export function podFacts(change: PodChange): readonly Fact[] | undefined {
  return podTable[change.last][change.to]?.flatMap((step) => factsOfStep(step, change));
}

function factsOfStep(step: PodStep, change: PodChange): readonly Fact[] {
  const stepName = step.replace(/[()]/g, "") as Exclude<PodStep, `(${string})`>;
  const inferred = stepName !== step;
  const { now } = change;
  const started = hasStarted(change);
  switch (stepName) {
    case "P":
      return [podFact("pod.prepared", "prepared", change, { inferred, ...upstreamTime(now.created_at, change) })];
    case "A":
      return [podFact("pod.prepare_aborted", "failed to be prepared", change, { inferred, ...unseen(change) })];
    case "S":
      if (started !== true) return [];
      return [
        podFact("pod.started", "started", change, { inferred, ...startTime(change), ...operation("pod", now.id) }),
      ];
    case "s":
      return started === true ? startedApps(change).map((app) => appStarted(app, inferred, change)) : [];
    case "x":
      return started === false ? [] : exitedApps(change).map((exit) => appExited(exit, inferred, change));
    case "X":
      return [podExited(inferred, started, change)];
    case "marked":
    case "deleting":
    case "removed":
    case "never-ran":
      return [podCollected(stepName, inferred, change)];
    default:
      return assertNever(stepName);
  }
}

/** The fact of a change that has no kind of its own; `what` continues the summary after the pod's name. */
export function podChanged(pod: Pod, what: string, { removed = false } = {}): Fact {
  return {
    kind: "pod.changed",
    subject: name(pod.id),
    summary: summary(`pod ${displayedName(pod)} ${what}`),
    detail: { $case: "pod", value: podDetail(pod, { removed }) },
  };
}

/** The host insists on a state that can't follow from what is recorded. */
export function podContradicted(before: Pod, now: Pod, times: Times): Fact {
  const [was, is] = [stateOf(before) ?? "", stateOf(now) ?? ""];
  return {
    kind: "pod.contradicted",
    subject: name(now.id),
    summary: summary(`pod ${displayedName(now)} is ${is} by the host's word, though it was ${was}`),
    ...unseen(times),
    detail: { $case: "pod", value: podDetail(now) },
  };
}

/** Undefined: unknown. A pod that has ended without a start time failed before its start. */
function hasStarted({ last, to, now }: PodChange): boolean | undefined {
  if (last === "RUNNING" || to === "RUNNING" || now.started_at > 0n) return true;
  const hasTimes = (to === "EXITED" || to === "GARBAGE") && now.created_at > 0n;
  return hasTimes ? false : undefined;
}

function podExited(inferred: boolean, started: boolean | undefined, change: PodChange): Fact {
  const { before, to, now } = change;
  // A pod that is being deleted has no codes any more.
  const { apps } = to === "UNDEFINED" ? (before ?? now) : now;
  const failure = apps.find(({ exit_code }) => exit_code !== 0);
  return podFact(
    "pod.exited",
    started === false ? "ended before it had started" : "exited",
    change,
    { inferred, ...outcome(failure?.exit_code, failure && `${failure.name} `), ...endTime(change) },
    { ...(started !== undefined && { started }) },
    operation("pod", now.id),
  );
}

const collected: Readonly<Record<PodPhase, string>> = {
  marked: "is to be collected",
  deleting: "is being deleted",
  removed: "was removed",
  "never-ran": "was removed and never ran",
};

function podCollected(phase: PodPhase, inferred: boolean, change: PodChange): Fact {
  const { now } = change;
  const time = phase === "marked" ? upstreamTime(now.gc_marked_at, change) : unseen(change);
  const last_state = change.to === "absent" ? (stateOf(now) ?? "") : "";
  return podFact("pod.collected", collected[phase], change, { inferred, ...time }, { phase, last_state });
}

function appStarted(app: App, inferred: boolean, change: PodChange): Fact {
  const wasRunning = change.last === "RUNNING";
  return appFact("app.started", app, "started", change, {
    inferred: inferred || wasRunning,
    ...(wasRunning ? unseen(change) : startTime(change)),
  });
}

function appExited(
  { app, code, removed }: ReturnType<typeof exitedApps>[number],
  inferred: boolean,
  change: PodChange,
): Fact {
  const what = removed ? "was taken out" : code ? `exited with ${code}` : "exited";
  const detail = { ...(code !== undefined && { exit_code: code }), exit_code_known: Boolean(code), removed };
  return appFact("app.exited", app, what, change, { inferred, ...outcome(code), ...endTime(change) }, detail);
}

function outcome(code: number | undefined, who = ""): Pick<Fact, "outcome" | "error"> {
  // rkt gives 0 for an unknown code, so success is never certain.
  if (!code) return { outcome: Outcome.OUTCOME_UNKNOWN };
  return failed({ code: String(code), message: name(`${who}exited with ${code}`), suggestions: [] });
}

type FactDetails = Partial<Pick<Fact, "inferred" | "occurredAt" | "notBefore" | "outcome" | "error" | "operation">>;

function podFact(
  kind: Fact["kind"],
  what: string,
  { now }: PodChange,
  details: FactDetails,
  detail: Partial<PodDetail> = {},
  more: FactDetails = {},
): Fact {
  const line = summary(`pod ${displayedName(now)} ${what}`);
  return {
    kind,
    subject: name(now.id),
    summary: line,
    ...details,
    ...more,
    detail: { $case: "pod", value: podDetail(now, detail) },
  };
}

function appFact(
  kind: Fact["kind"],
  app: App,
  what: string,
  { now }: PodChange,
  details: FactDetails,
  detail: Partial<AppDetail> = {},
): Fact {
  const subject = name(`${now.id}/${app.name}`);
  return {
    kind,
    subject,
    summary: summary(`app ${app.name} of ${displayedName(now)} ${what}`),
    ...details,
    ...operation("app", subject),
    detail: {
      $case: "app",
      value: {
        pod: name(now.id),
        app: name(app.name),
        image_id: name(app.image?.id ?? ""),
        image_name: name(app.image?.name ?? ""),
        image_version: name(app.image?.version ?? ""),
        exit_code_known: false,
        removed: false,
        ...detail,
      },
    },
  };
}

function operation(kind: "pod" | "app", subject: string): Pick<Fact, "operation"> {
  return { operation: { kind, subject: name(subject), runner: 0, loop: 0 } };
}

/** No field of an event may grow with its frame. */
const longestList = 100;

function podDetail(pod: Pod, more: Partial<PodDetail> = {}): PodDetail {
  return {
    pod: name(pod.id),
    name: name(podName(pod) ?? pod.id),
    state: stateOf(pod) ?? "",
    phase: "",
    last_state: "",
    pid: pod.pid,
    cgroup: name(pod.cgroup),
    networks: pod.networks
      .slice(0, longestList)
      .map((network) => name(`${network.name}=${network.ipv4 || network.ipv6}`)),
    apps: pod.apps.slice(0, longestList).map((app) => name(app.name)),
    removed: false,
    ...more,
  };
}

function podName({ annotations }: Pod): string | undefined {
  return annotations.find(({ Key }) => Key === "rkt.kubernetes.io/name")?.value || undefined;
}

function displayedName(pod: Pod): string {
  return podName(pod) ?? pod.id.slice(0, 8);
}

function startTime(change: PodChange): FactDetails {
  return upstreamTime(change.now.started_at, change);
}

/** The upstream's own time, in ns; without one it was not observed. */
function upstreamTime(ns: bigint, times: Times): FactDetails {
  return ns > 0n ? { occurredAt: timestampOfNanos(ns) } : unseen(times);
}

function unseen({ after }: Times): FactDetails {
  return after === undefined ? {} : { notBefore: after };
}

/** No end has a time of its own, but it was before the pod was marked. */
function endTime({ to, now, at, after }: PodChange): FactDetails {
  const marked = to === "GARBAGE" && now.gc_marked_at > 0n ? timestampOfNanos(now.gc_marked_at) : undefined;
  if (marked === undefined || compareTimestamps(marked, at) >= 0) return unseen({ at, after });
  // Clocks differ: an interval must have an inside.
  const notBefore = after !== undefined && compareTimestamps(after, marked) < 0 ? after : undefined;
  return { occurredAt: marked, ...(notBefore && { notBefore }) };
}
