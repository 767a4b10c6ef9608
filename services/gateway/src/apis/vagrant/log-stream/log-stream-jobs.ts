import { Project, Target } from "@tapedeck/proto/vagrant/vagrant";
import type { Recorded } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import { pause } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../../call-context.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { firstOfJob } from "../job-stream/job-stream-start.ts";
import { read } from "../read.ts";

/** What a job is about, or whose output is asked for; `id`: its resource_id. */
export type Place = { readonly kind: "basis" | "project" | "target"; readonly id: string };

export type MeantJobs = {
  /** A fact of a job says what it is about. */
  readonly learn: (recorded: Recorded) => void;
  /** Whether the job that an event is about is meant. */
  readonly has: (recorded: Recorded) => Promise<boolean>;
};

export type MeantJobsOptions = {
  readonly source: SourceName;
  readonly wanted: Place;
  readonly context: CallContext;
};

/** So many jobs, and so many targets and projects, are remembered; of others it is found out again. */
const mostKnown = 10_000;

/**
 * A target or project may be looked at only after its first job has begun to print: so long what was recorded just now
 * waits for it, once; then it is taken for unknown, and asked for again after a while.
 */
const patienceMs = 2_000;
const askAgainMs = 1_000;

/**
 * The jobs about a basis, project or target, or about what belongs to it: to a basis its projects, to a project its
 * targets. What a job is about stands in its facts in the log; which project a target is of, and which basis a project,
 * is asked of the session's state.
 */
export function meantJobs({ query, log, positions }: ScopeDeps, options: MeantJobsOptions): MeantJobs {
  const { source, wanted, context } = options;
  const places = new Map<string, Place | undefined>();
  const parents = new Map<string, Place>();
  const unknown = new Map<string, number>();

  async function placeOf({ event, seq }: Recorded): Promise<Place | undefined> {
    const job = event.subject;
    if (!places.has(job)) {
      const place = { log: log(), source, job, session: undefined, untilSeq: seq };
      remember(places, job, placeIn(await firstOfJob(place, context.signal)));
    }
    return places.get(job);
  }

  async function isIn(place: Place | undefined, recorded: Recorded): Promise<boolean> {
    if (place === undefined) return false;
    if (place.kind === wanted.kind) return place.id === wanted.id;
    const isWider = place.kind === "basis" || wanted.kind === "target";
    return !isWider && isIn(await parentOf(place, recorded), recorded);
  }

  async function parentOf(place: Place, recorded: Recorded): Promise<Place | undefined> {
    const key = `${place.kind} ${place.id}`;
    const known = parents.get(key);
    if (known !== undefined || performance.now() - (unknown.get(key) ?? Number.NEGATIVE_INFINITY) < askAgainMs) {
      return known;
    }
    const isNew = !unknown.has(key) && Date.now() - recorded.recordedAt.getTime() < patienceMs;
    const end = performance.now() + (isNew ? patienceMs : 0);
    let parent = await findParent(place, recorded);
    while (parent === undefined && performance.now() < end && !context.signal.aborted) {
      await pause(100, context.signal);
      parent = await findParent(place, recorded);
    }
    if (parent === undefined) remember(unknown, key, performance.now());
    else remember(parents, key, parent);
    return parent;
  }

  /** As it is now, else (a command takes away the targets that it has ended) as it was then. */
  async function findParent(place: Place, recorded: Recorded): Promise<Place | undefined> {
    const at = positions.written(recorded.seq);
    return (await askParent(place, recorded, { minPosition: at })) ?? askParent(place, recorded, { at });
  }

  async function askParent({ kind, id }: Place, { event }: Recorded, when: Partial<CallContext>) {
    const collection = kind === "target" ? "targets" : "projects";
    const { rows } = await read({ query }, collection, { ...context, session: event.session, ...when }, id);
    const row = rows.find(({ key }) => key === id);
    if (row === undefined) return undefined;
    return kind === "target"
      ? placed("project", Target.decode(row.bytes).project)
      : placed("basis", Project.decode(row.bytes).basis);
  }

  return {
    learn(recorded) {
      const place = placeIn(recorded);
      if (place !== undefined) remember(places, recorded.event.subject, place);
    },
    has: async (recorded) => isIn(await placeOf(recorded), recorded),
  };
}

function placed(kind: Place["kind"], ref: { readonly resource_id: string } | undefined): Place | undefined {
  return ref === undefined || ref.resource_id === "" ? undefined : { kind, id: ref.resource_id };
}

function placeIn(recorded: Recorded | undefined): Place | undefined {
  const detail = recorded?.event.detail;
  if (detail?.$case !== "job") return undefined;
  const { scope, scope_id: id } = detail.value;
  return (scope === "basis" || scope === "project" || scope === "target") && id !== ""
    ? { kind: scope, id }
    : undefined;
}

/** Of the newest things that were asked for. */
export function remember<V>(known: Map<string, V>, key: string, value: V): void {
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > mostKnown && oldest !== undefined) known.delete(oldest);
}
