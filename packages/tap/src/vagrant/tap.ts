import { status } from "@grpc/grpc-js";
import { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { QueueJobResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { wallClock } from "@tapedeck/shared/time/wall-clock";
import { ulid } from "ulid";
import { rising } from "../polling/monotonic-times.ts";
import { type Bell, bell } from "../polling/wakeable-timer.ts";
import type { RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { type Connection, dial } from "./connection.ts";
import { followJobs } from "./job-streams.ts";
import { pollJobs, type Seen } from "./poll-jobs.ts";
import { lookAtThings, type ThingLooks } from "./poll-resources.ts";
import { tappedJobs } from "./tapped-jobs.ts";

const channels = ["jobs", "things"] as const;

/** Before anything has answered: the server of one command listens shortly before its first job. */
const hurry = { forMs: 10_000, pauseMs: 20 };
/** Between attempts to reach a server that is away; after one that is not Vagrant's the longer ones. */
const awayMs = { first: 200, longest: 5_000 };
const strangerMs = { first: 1_000, longest: 30_000 };
/** A connection that lives this long was a good one: after it we are quick again. */
const steadyMs = 1_000;
/** For what streams still have to give when the server has said goodbye, or is gone: it takes no longer itself. */
const drainMs = 2_000;
/** What ingest has the patience for. */
const controlMs = 30_000;

/**
 * Looks at one Vagrant server again and again, and follows the streams of its jobs: no stream tells that there is a job,
 * or what happens to things. It concludes nothing. Settings: `server`, which names the lifetime of the server where the
 * caller knows it (else the address does), and `timeout` of one call in ms, by default 10000.
 */
export const tap: UpstreamTap = { livesInCommand: true, run };

function run(options: TapOptions): RunningTap {
  const { address, emit, signal, settings = {} } = options;
  const identity = settings.server || address;
  const timeoutMs = milliseconds(settings.timeout, 10_000);
  const now = rising(wallClock());
  let things: ThingLooks | undefined;
  let current: { readonly connection: Connection; readonly jobs: Bell; readonly queued: Set<string> } | undefined;
  /** Ids are unique in the world, so that what is known of a job is true on the next connection. */
  const known = tappedJobs((news) => things?.jobNews(news));

  async function listen(): Promise<void> {
    const away = backoff(awayMs.first, awayMs.longest);
    const strange = backoff(strangerMs.first, strangerMs.longest);
    const hurryUntil = performance.now() + hurry.forMs;
    let isStranger = false;
    let isFirst = true;
    while (!signal.aborted) {
      const dialled = await dial({ address, timeoutMs, signal });
      if (dialled.there === "stranger") {
        // Once is enough, as it is likely to stay what it is.
        if (!isStranger) refuse(dialled.reason);
        isStranger = true;
        await pause(strange.next(), signal);
        continue;
      }
      isStranger = false;
      strange.reset();
      if (dialled.there === "vagrant") {
        const since = performance.now();
        await listenOnce(dialled.connection);
        isFirst = false;
        if (performance.now() - since >= steadyMs) away.reset();
      }
      const isHurried = isFirst && performance.now() < hurryUntil;
      await pause(isHurried ? hurry.pauseMs : away.next(), signal);
    }
  }

  function connectionTeller(): (what: NonNullable<Item["what"]>) => void {
    const connection = ulid();
    return (what) => emit({ connection, at: now(), what });
  }

  function refuse(reason: string): void {
    const tell = connectionTeller();
    tell({ $case: "dialled", value: { address, channels: [] } });
    tell({ $case: "closed", value: { reason: `no server of Vagrant: ${reason}`, process_ended: false } });
  }

  async function listenOnce(connection: Connection): Promise<void> {
    const tell = connectionTeller();
    const { version, info } = connection;
    tell({ $case: "dialled", value: { address, channels: [...channels] } });
    tell({ $case: "identified", value: { identity, version } });
    tell({ $case: "described", value: { channel: "version", state: info } });

    const look = (channel: (typeof channels)[number]) => (seen: Seen) => {
      const bytes = Buffer.from(Look.encode({ seen }).finish());
      tell({ $case: "frame", value: { channel, bytes, more: false } });
    };
    const jobs = bell();
    const queued = new Set<string>();
    current = { connection, jobs, queued };
    connection.signal.addEventListener("abort", jobs.ring);
    const follower = followJobs({ connection, known, emit: look("jobs"), onComplete: jobs.ring });
    const jobsLooked = Promise.withResolvers<void>();
    let jobsFailure: string | undefined;
    const polling = pollJobs({
      ...{ connection, known, emit: look("jobs"), timeoutMs, bell: jobs, queued },
      onLook({ changed, failure }) {
        if (changed) follower.follow();
        jobsFailure = failure;
        jobsLooked.resolve();
      },
    });
    things = lookAtThings({
      ...{ connection, known, emit: look("things"), timeoutMs },
      ...{ jobsLooked: jobsLooked.promise, jobsFailure: () => jobsFailure },
    });

    const reason = await connection.over;
    current = undefined;
    jobsLooked.resolve();
    await Promise.all([polling, things.done]);
    things = undefined;
    const drained = new AbortController();
    void pause(drainMs, drained.signal).then(connection.close);
    await follower.ended();
    drained.abort();
    tell({ $case: "closed", value: { reason, process_ended: false } });
  }

  async function control({ call, method, request }: ControlRequest): Promise<ControlAnswer> {
    if (current === undefined) {
      return { call, code: status.UNAVAILABLE, message: "no connection to Vagrant", response: Buffer.alloc(0) };
    }
    const { connection, jobs, queued } = current;
    const answer = await connection.control(method, request, controlMs);
    if (method === VagrantService.queueJob.path && answer.code === status.OK) note(queued, answer.response);
    jobs.ring();
    if (/Target|Project|Basis|Box/.test(method)) things?.lookNow();
    return { call, ...answer };
  }

  return { done: listen(), control };
}

function note(queued: Set<string>, answer: Buffer): void {
  try {
    queued.add(QueueJobResponse.decode(answer).job_id);
  } catch {
    // An answer that can't be read is the caller's; the list shows the job.
  }
}

function milliseconds(text: string | undefined, byDefault: number): number {
  const ms = Number(text);
  return Number.isFinite(ms) && ms > 0 ? ms : byDefault;
}
