import { createHash } from "node:crypto";
import { status } from "@grpc/grpc-js";
import type { Thing } from "@tapedeck/proto/tapedeck/v1/look";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { bell, failurePauses } from "../polling/wakeable-timer.ts";
import type { Connection } from "./connection.ts";
import type { Seen } from "./poll-jobs.ts";
import { type ThingCalls, thingCalls } from "./resource-calls.ts";
import type { JobNews, TappedJobs } from "./tapped-jobs.ts";

export type ThingLooking = {
  readonly connection: Pick<Connection, "signal" | "call">;
  readonly known: TappedJobs;
  readonly emit: (seen: Seen) => void;
  /** For each answer. */
  readonly timeoutMs: number;
  /** Resolves after the first look at the jobs: they tell which runners there are. */
  readonly jobsLooked: Promise<void>;
  /** Why the last look at the jobs failed. */
  readonly jobsFailure: () => string | undefined;
};

export type ThingLooks = {
  readonly jobNews: (news: JobNews) => void;
  /** Somebody has changed something. */
  readonly lookNow: () => void;
  /** Resolves when the connection is over. */
  readonly done: Promise<void>;
};

/** What changes a target most is a command; the rest changes hardly ever. */
const targetMs = { command: 1_000, else: 15_000 };
const otherMs = 30_000;
/** A runner says once what it is; one without components is forgotten when it leaves. */
const runnerMs = 300_000;
/** A command saves and clears up when its job is over, and one that has a server of its own is gone within 100 ms. */
const afterJobMs = [50, 1_000];
/** Then they come whole again, for a recorder that has not got what they are the same as. */
const wholeEveryMs = 10_000;
/** Of those that jobs name, the newest: each command brings one of its own. */
const mostRunners = 200;

/** What jobs and control calls change. */
const changing = ["target", "project", "basis", "box"];

type Looked =
  | { readonly things: readonly Thing[]; readonly missing: readonly string[]; readonly failed?: never }
  | {
      readonly failed: { readonly code: number; readonly message: string };
      readonly things?: never;
      readonly missing?: never;
    };

/**
 * Looks at the things of each kind again and again, one call after the other, until the connection is over. Kinds don't
 * wait for each other, but for the first look, which has all of them.
 */
export function lookAtThings({
  connection,
  known,
  emit,
  timeoutMs,
  jobsLooked,
  jobsFailure,
}: ThingLooking): ThingLooks {
  const { signal } = connection;
  /** Until every kind was looked at. */
  let first: Map<string, Looked> | undefined = new Map();
  let areJobsKnown = false;
  void jobsLooked.then(() => {
    areJobsKnown = true;
  });
  /** What was told last, whole. */
  const lastWhole = new Map<string, { readonly digest: string; readonly at: number }>();
  const loops = new Map(thingCalls.map((calls) => [calls.kind, { calls, bell: bell() }]));
  type Loop = NonNullable<ReturnType<(typeof loops)["get"]>>;
  const leave = () => ring([...loops.keys()]);
  signal.addEventListener("abort", leave);

  function ring(kinds: readonly string[]): void {
    for (const kind of kinds) loops.get(kind)?.bell.ring();
  }

  async function run(loop: Loop): Promise<void> {
    const failures = failurePauses(loop.bell, signal);
    while (!signal.aborted) {
      const asked = performance.now();
      const looked = await lookAt(loop.calls);
      if (signal.aborted) return;
      tell(loop.calls.kind, looked);
      const took = performance.now() - asked;
      if (looked.failed) {
        await failures.after(looked.failed.code);
        continue;
      }
      failures.reset();
      await loop.bell.pause(Math.max(took, pace(loop.calls.kind)));
    }
  }

  function pace(kind: string): number {
    const usual = kind === "runner" ? runnerMs : kind === "target" ? targetPace() : otherMs;
    const since = performance.now() - known.endedAt();
    const next = afterJobMs.find((ms) => ms > since);
    return next === undefined ? usual : Math.min(usual, next - since);
  }

  function targetPace(): number {
    const isCommanded = known.all().some(({ state, command }) => state === Job_State.RUNNING && command !== undefined);
    return isCommanded ? targetMs.command : targetMs.else;
  }

  async function lookAt({ kind, list, get, thingOf }: ThingCalls): Promise<Looked> {
    const things: Thing[] = [];
    const missing: string[] = [];
    try {
      for (const id of list === undefined ? await namedRunners() : await listed(list)) {
        const { code, message, response } = await connection.call(get.path, get.request(id), timeoutMs);
        if (code === status.NOT_FOUND) {
          // What was listed has gone since the list, which the next one tells.
          if (list === undefined) missing.push(id);
          continue;
        }
        if (code !== status.OK) throw new Unanswered(code, message);
        const bytes = thingOf(response);
        if (bytes !== undefined) things.push({ id, bytes });
      }
      return { things, missing };
    } catch (cause) {
      const code = cause instanceof Unanswered ? cause.code : status.INTERNAL;
      return { failed: { code, message: `${kind}: ${cause instanceof Error ? cause.message : cause}` } };
    }
  }

  async function listed({ path, ids }: NonNullable<ThingCalls["list"]>): Promise<readonly string[]> {
    const { code, message, response } = await connection.call(path, Buffer.alloc(0), timeoutMs);
    if (code !== status.OK) throw new Unanswered(code, message);
    return ids(response);
  }

  async function namedRunners(): Promise<readonly string[]> {
    await jobsLooked;
    const jobs = known.all();
    const failure = jobsFailure();
    if (failure !== undefined && jobs.length === 0) throw new Unanswered(status.UNAVAILABLE, failure);
    return [...new Set(jobs.flatMap(({ runner }) => runner ?? []))].slice(-mostRunners);
  }

  function tell(kind: string, looked: Looked): void {
    if (first === undefined) {
      emitLooks([[kind, looked]]);
      return;
    }
    first.set(kind, looked);
    if (first.size < thingCalls.length) return;
    const looks = thingCalls.flatMap((calls): [string, Looked][] => {
      const of = first?.get(calls.kind);
      return of ? [[calls.kind, of]] : [];
    });
    first = undefined;
    emitLooks(looks);
  }

  function emitLooks(looks: readonly (readonly [string, Looked])[]): void {
    for (const [, { failed }] of looks) if (failed) emit({ $case: "failed", value: failed });
    const kinds = looks.flatMap(([kind, { things, missing = [] }]) => {
      if (things === undefined) return [];
      const digest = digestOf(things, missing);
      const last = lastWhole.get(kind);
      const now = performance.now();
      const same = last?.digest === digest && now - last.at < wholeEveryMs;
      if (!same) lastWhole.set(kind, { digest, at: now });
      return [{ kind, same, entries: same ? [] : [...things], missing: same ? [] : [...missing] }];
    });
    if (kinds.length > 0) emit({ $case: "things", value: { kinds } });
  }

  return {
    jobNews({ job, before }) {
      // What the first list tells is no change.
      if (!areJobsKnown) return;
      const isNew = before === undefined;
      // Its project was made, or saved, right before it.
      ring(isNew || job.isFinished ? changing : ["target"]);
      // One that comes with a command leaves with it.
      if ((isNew || job.isFinished) && job.runner !== undefined) ring(["runner"]);
    },
    lookNow: () => ring(changing),
    done: Promise.all([...loops.values()].map(run)).then(() => signal.removeEventListener("abort", leave)),
  };
}

class Unanswered extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Equal for the same things with the same bytes in the same order, where the same ones are missing. */
function digestOf(things: readonly Thing[], missing: readonly string[]): string {
  const hash = createHash("sha256");
  for (const { id, bytes } of things) hash.update(`${id} ${bytes.byteLength} `).update(bytes);
  hash.update(JSON.stringify(missing));
  return hash.digest("base64");
}
