import { JobSpan, StateHead } from "@tapedeck/proto/tapedeck/v1/query";
import {
  type DeepPartial,
  GetJobStreamResponse,
  Job,
  Job_State,
  GetJobStreamResponse_Terminal_Event as TerminalEvent,
} from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { JobStreamDeps } from "../job-stream/job-stream.ts";
import { type Fields, shop, vagrantHarness } from "./vagrant-harness.ts";

export type JobHarness = Awaited<ReturnType<typeof jobHarness>>;

/** A job's event in the log. */
type JobEvent = { readonly seq: number; readonly session: string; readonly job: string };
type Version = { readonly seq: number; readonly session: string; readonly job: string; readonly bytes: Uint8Array };

/** The harness with a query that knows all recorded jobs, as it would know them from the log. */
export async function jobHarness() {
  const harness = await vagrantHarness();
  const versions: Version[] = [];
  const places: JobEvent[] = [];
  let end = 0;
  let areSpansKnown = true;

  /** One for each run of events that follow each other. */
  function spansOf(job: string, session: string): readonly Uint8Array[] {
    const spans: { first: number; last: number }[] = [];
    for (const place of places) {
      if (place.job !== job || (session || place.session) !== place.session) continue;
      const before = spans.at(-1);
      if (before?.last === place.seq - 1) before.last = place.seq;
      else spans.push({ first: place.seq, last: place.seq });
    }
    const at = harness.position;
    return spans.map(({ first, last }) => JobSpan.encode({ first: at(first), last: at(last) }).finish());
  }

  const deps: JobStreamDeps = {
    ...harness.deps,
    control: { call: () => Promise.reject(new TapedeckError("upstream_away", "nothing is connected")) },
    query: {
      ...harness.deps.query,
      async readState(request) {
        const { key_prefix: job = "", session: named = "" } = request;
        if (request.collection === "vagrant.job_spans") {
          const spans = areSpansKnown ? spansOf(job, named) : [];
          const head = StateHead.fromPartial({ position: harness.position(end), source: shop });
          return { head, rows: spans.map((bytes) => ({ key: job, bytes })) };
        }
        if (request.collection !== "vagrant.jobs") return harness.deps.query.readState(request);
        const known = versions.filter(
          ({ job, session }) => job.startsWith(request.key_prefix ?? "") && (request.session || session) === session,
        );
        const newest = new Map(known.map((version) => [version.job, version]));
        return {
          head: StateHead.fromPartial({
            position: harness.position(end),
            source: shop,
            session: known.at(-1)?.session ?? "",
          }),
          rows: [...newest].map(([key, { bytes, seq }]) => ({ key, bytes, position: harness.position(seq) })),
        };
      },
    },
  };

  return {
    ...harness,
    deps,
    /** Answers as query does while it rebuilds its tables. */
    forgetSpans() {
      areSpansKnown = false;
    },
    async add(...events: readonly Fields[]): Promise<number> {
      end = await harness.add(...events);
      for (const [index, { session = "", subject = "", channel, original }] of events.entries()) {
        if (channel === "jobs") places.push({ seq: end - events.length + 1 + index, session, job: subject });
        if (original?.type !== "hashicorp.vagrant.Job") continue;
        const bytes = original.bytes ?? Buffer.alloc(0);
        versions.push({ seq: end - events.length + 1 + index, session, job: subject, bytes });
      }
      return end;
    },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  };
}

export type JobFacts = ReturnType<typeof jobFacts>;

/** A job's facts, as record keeps them, in a session. */
export function jobFacts(id: string, session: string) {
  let written = 0;
  return {
    id,
    /** A fact with the job as it was answered. */
    is(kind: string, answered: Job_State | Buffer, more: DeepPartial<Job> = {}): Fields {
      const bytes = typeof answered === "number" ? jobBytes(id, answered, more) : answered;
      const { scope } = more;
      return {
        kind,
        channel: "jobs",
        session,
        subject: id,
        detail: {
          $case: "job",
          value: { job: id, scope: scope?.$case ?? "", scope_id: scope?.value?.resource_id ?? "" },
        },
        original: { type: "hashicorp.vagrant.Job", bytes, size: BigInt(bytes.byteLength) },
      };
    },
    /** A fact without the job: one of several of an observation. */
    also: (kind: string): Fields => ({
      kind,
      channel: "jobs",
      session,
      subject: id,
      detail: { $case: "job", value: { job: id } },
    }),
    /** Its next terminal event. */
    writes(event: string | Uint8Array, at = written): Fields {
      written = at + 1;
      const bytes = Buffer.from(typeof event === "string" ? lineBytes(event) : event);
      const text = typeof event === "string" ? `${event}\n` : "";
      return {
        kind: "terminal.written",
        channel: "jobs",
        session,
        subject: id,
        observed_at: { seconds: BigInt(1_000 + at), nanos: 0 },
        detail: {
          $case: "text",
          value: { text, noise: text === "", output: { job: id, index: BigInt(at) } },
        },
        original: {
          type: "hashicorp.vagrant.GetJobStreamResponse.Terminal.Event",
          bytes,
          size: BigInt(bytes.byteLength),
        },
      };
    },
    /** A message of its stream that is kept as it came. */
    mirrors(bytes: Uint8Array, what = "unknown"): Fields {
      return {
        kind: "mirror.received",
        channel: "jobs",
        session,
        subject: id,
        detail: { $case: "mirror", value: { what } },
        original: {
          type: "hashicorp.vagrant.GetJobStreamResponse",
          bytes: Buffer.from(bytes),
          size: BigInt(bytes.byteLength),
        },
      };
    },
    /** Its output was read to the end. */
    isWhole(): Fields {
      const complete = GetJobStreamResponse.fromPartial({ event: { $case: "complete", value: {} } });
      return this.mirrors(GetJobStreamResponse.encode(complete).finish(), "complete");
    },
    /** Its output may go on after what is recorded. */
    isCut: (): Fields => ({
      kind: "session.gap",
      channel: "tapedeck",
      session,
      detail: { $case: "gap", value: { channel: "jobs", output: { job: id, index: BigInt(written) } } },
    }),
  };
}

/** It has been started, unless `more` says that it was not. */
export function jobBytes(id: string, state: Job_State, more: DeepPartial<Job> = {}): Buffer {
  const hasStarted = state !== Job_State.QUEUED && state !== Job_State.WAITING;
  const started = hasStarted ? { ack_time: { seconds: 900n, nanos: 0 } } : {};
  return Buffer.from(Job.encode(Job.fromPartial({ ...started, ...more, id, state })).finish());
}

export function lineBytes(msg: string): Uint8Array {
  return TerminalEvent.encode(TerminalEvent.fromPartial({ event: { $case: "line", value: { msg } } })).finish();
}

export const ended = (session: string): Fields => ({ kind: "session.ended", channel: "tapedeck", session });
export const started = (session: string): Fields => ({ kind: "session.started", channel: "tapedeck", session });
