import { status } from "@grpc/grpc-js";
import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { type Bell, failurePauses } from "../polling/wakeable-timer.ts";
import type { Connection } from "./connection.ts";
import type { TappedJobs } from "./tapped-jobs.ts";

export type Seen = NonNullable<Look["seen"]>;

export type JobPolling = {
  readonly connection: Pick<Connection, "signal" | "call">;
  readonly known: TappedJobs;
  readonly emit: (seen: Seen) => void;
  /** For each answer, and for all that is asked when there is no list together. */
  readonly timeoutMs: number;
  /** Somebody has a reason to look now. */
  readonly bell: Bell;
  /** Jobs that were queued through us, which a list that fails can't show; they are taken out. */
  readonly queued: Set<string>;
  /** After each look. `changed`: it may tell something else than the one before; `failure`: why there is no list. */
  readonly onLook: (look: { readonly changed: boolean; readonly failure?: string }) => void;
};

/**
 * While jobs may come and go: a server that lives inside of one `vagrant` command is gone 100 ms after its last job, and
 * some commands take no longer than that.
 */
const quickMs = 50;
/** Since the connection was made; since then as long as there was no job at all; since a job has ended. */
const quickFor = { connected: 10_000, empty: 60_000, finished: 5_000 };
/**
 * Later, at most: while a job is not finished, and while none is under way. Where a list costs the server little it is
 * looked at sooner. A job that prints fast has then not filled the window that the server keeps before its stream is open.
 */
const busyMs = 500;
const idleMs = 2_000;
const soonMs = 200;
/** So many times as long as an answer takes: about 2 % of a processor. */
const littleCost = 50;
/** The list comes again, for a recorder that has not got what was the same since. */
const wholeEveryMs = 10_000;
const mostAsked = 50;

/** Lists the jobs again and again, one call after the other, until the connection is over. */
export async function pollJobs(options: JobPolling): Promise<void> {
  const { connection, known, emit, timeoutMs, bell, queued, onLook } = options;
  const { signal } = connection;
  const failures = failurePauses(bell, signal);
  const started = performance.now();
  let tookBefore = 0;
  let last: { readonly bytes: Buffer; readonly at: number } | undefined;

  function pace(now: number, tookMs: number): number {
    const jobs = known.all();
    const age = now - started;
    const isNew = age < quickFor.connected || (jobs.length === 0 && age < quickFor.empty);
    // A long list is work for the server, which has most of the time for itself.
    if (isNew || now - known.endedAt() < quickFor.finished) return Math.min(busyMs, Math.max(quickMs, 4 * tookMs));
    const longest = jobs.some(({ isFinished }) => !isFinished) ? busyMs : idleMs;
    return Math.min(longest, Math.max(soonMs, littleCost * tookMs));
  }

  while (!signal.aborted) {
    const asked = performance.now();
    const { code, message, response } = await connection.call(listJobs, nothing, timeoutMs);
    if (signal.aborted) return;
    const answered = performance.now();
    if (code !== status.OK) {
      emit({ $case: "failed", value: { code, message } });
      if (code === status.NOT_FOUND) await askForEach(options);
      onLook({ changed: true, failure: message });
      await failures.after(code);
      continue;
    }
    failures.reset();
    queued.clear();
    const isSame = last?.bytes.equals(response) ?? false;
    if (last === undefined || !isSame || answered - last.at >= wholeEveryMs) {
      last = { bytes: response, at: answered };
      emit({ $case: "all", value: response });
    } else {
      emit({ $case: "same", value: true });
    }
    if (!isSame) known.seeAll(response);
    onLook({ changed: !isSame });
    // The first answer is slow anywhere, and any other may be by chance.
    const took = Math.min(performance.now() - asked, tookBefore);
    tookBefore = performance.now() - asked;
    await bell.pause(Math.max(pace(answered, took), 2 * took));
  }
}

const { getJob } = VagrantService;
const listJobs = VagrantService.listJobs.path;
const nothing = Buffer.alloc(0);

/** A single row that is missing spoils the list: what we know of is asked for one by one. */
async function askForEach({ connection, known, queued, emit, timeoutMs }: JobPolling): Promise<void> {
  const end = performance.now() + timeoutMs;
  const jobs = known.all();
  const unfinished = jobs.flatMap(({ id, isFinished }) => (isFinished ? [] : [id]));
  // That it is not there either says that this is another server.
  const newest = jobs.findLast(({ isFinished }) => isFinished);
  const ids = new Set([...(newest ? [newest.id] : []), ...unfinished, ...queued]);
  queued.clear();
  for (const id of [...ids].slice(0, mostAsked)) {
    const left = end - performance.now();
    if (left <= 0) return;
    const request = getJob.requestSerialize({ job_id: id });
    const { code, message, response } = await connection.call(getJob.path, request, left);
    if (connection.signal.aborted) return;
    emit({ $case: "one", value: { id, bytes: response, code, message } });
    if (code === status.OK) known.see(response);
  }
}
