import { line } from "@tapedeck/fakes/vagrant/client";
import { type FakeVagrant, type FakeVagrantOptions, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import {
  GetJobRequest,
  Job,
  type Job_State,
  job_StateToJSON,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
} from "@tapedeck/proto/vagrant/vagrant";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { type Stack, startStack } from "../stack/stack.ts";
import { type VagrantClient, vagrantClient } from "./client.ts";

/** A fake Vagrant server with all of Tapedeck on it. */
export type VagrantStack = AsyncDisposable & {
  readonly fake: FakeVagrant;
  /** The current stack and client. */
  readonly stack: Stack;
  readonly client: VagrantClient;
  /** Ends all services, and restarts them on their data; `meanwhile` runs in between. */
  readonly restart: (meanwhile?: () => Promise<void>) => Promise<void>;
  /** Events of a channel, in order. */
  readonly eventsOf: (channel: "jobs" | "resources" | "tapedeck") => Promise<readonly Event[]>;
  /** Waits for an event of this kind and subject. */
  readonly waitForEvent: (kind: string, subject?: string) => Promise<Event>;
  /** Waits until the API returns the job in this state; resolves with it. */
  readonly waitForState: (job: string, state: Job_State, deadlineMs?: number) => Promise<Job>;
  /** Waits until the server has sent so many terminal events of this job, and they are recorded. */
  readonly waitForOutput: (job: string, events: number) => Promise<void>;
};

export async function startVagrantStack(
  options: FakeVagrantOptions & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<VagrantStack> {
  const { env = {}, ...fakeOptions } = options;
  await using cleanup = new AsyncDisposableStack();
  const fake = cleanup.use(await startFakeVagrant(fakeOptions));
  const servers = {
    nats: cleanup.use(await startTestNats()),
    database: cleanup.use(await freshDatabase(migrated)).url,
  };
  let services = await start();
  cleanup.defer(() => services.over[Symbol.asyncDispose]());

  async function start() {
    await using over = new AsyncDisposableStack();
    const stack = over.use(await startStack({ vagrant: [{ address: fake.address, redact: "off" }], servers, env }));
    const client = over.use(vagrantClient(stack.grpc));
    return { stack, client, over: over.move() };
  }

  const events = async () => (await services.stack.events()).map(({ event }) => event);
  // What comes from now on is news.
  await until(
    async () => (await events()).some(({ kind, channel }) => kind === "inventory.described" && channel === "resources"),
    {
      message: "what is there to be described",
    },
  );
  await until(() => fake.calls("_ListJobs").made > 0, { message: "a first look at the jobs" });
  await services.stack.drained();
  const owned = cleanup.move();
  return {
    fake,
    get stack() {
      return services.stack;
    },
    get client() {
      return services.client;
    },
    async restart(meanwhile) {
      await services.over[Symbol.asyncDispose]();
      await meanwhile?.();
      services = await start();
    },
    eventsOf: async (channel) => (await events()).filter((event) => event.channel === channel),
    waitForEvent: (kind, subject) =>
      until(
        async () =>
          (await events()).find((event) => event.kind === kind && (subject === undefined || event.subject === subject)),
        { message: `${kind} of ${subject ?? "anything"}` },
      ),
    waitForState: (id, state, deadlineMs = 90_000) =>
      until(
        async () => {
          const { code, message, bytes } = await services.client.ask("GetJob", jobRequest(id));
          if (code !== 0) throw new Error(`${code} ${message}`);
          const job = Job.decode(bytes);
          if (job.state !== state) throw new Error(`it is ${job_StateToJSON(job.state)}`);
          return job;
        },
        { message: `job ${id} to be ${job_StateToJSON(state)}`, deadlineMs },
      ),
    async waitForOutput(job, count) {
      const written = async () =>
        (await events()).filter((event) => event.kind === "terminal.written" && event.subject === job).length;
      await until(
        async () => {
          const have = await written();
          if (have < count) throw new Error(`${have} of ${count}`);
          return true;
        },
        { message: `${count} pieces of output of ${job}` },
      );
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The request of GetJob; CancelJob has the same. */
export function jobRequest(job_id: string): Uint8Array {
  return GetJobRequest.encode({ job_id }).finish();
}

/** Lines "<prefix>0", "<prefix>1" … */
export function lines(prefix: string, count: number, from = 0): TerminalEvent[] {
  return Array.from({ length: count }, (_, index) => line(`${prefix}${from + index}`));
}

/** The kinds of a job's events in order, except its output (and its end). */
export function kindsOf(events: readonly Event[], job: string): string[] {
  return events.flatMap(({ kind, subject }) =>
    subject === job && kind !== "terminal.written" && kind !== "mirror.received" ? [kind] : [],
  );
}
