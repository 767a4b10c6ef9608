import { type Metadata, Metadata as NewMetadata, type ServiceError } from "@grpc/grpc-js";
import {
  type Job,
  type GetJobStreamResponse as Message,
  type GetJobStreamResponse_State as StateMessage,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { connectionTo } from "../client-connection.ts";

const same = (bytes: Buffer) => bytes;

/** Asks a fake as a test wants to: with bytes or messages. Each client has a connection of its own. */
export function connectTo({ address }: { readonly address: string }) {
  const client = connectionTo(address);

  function raw(rpc: string, request: Buffer, metadata: Metadata = protocol("1,1")) {
    return new Promise<{ code: number; details: string; bytes: Buffer }>((resolve) => {
      const answered = (error: ServiceError | null, bytes: Buffer = Buffer.alloc(0)) =>
        resolve({ code: error?.code ?? 0, details: error?.details ?? "", bytes });
      client.makeUnaryRequest(`/hashicorp.vagrant.Vagrant/${rpc}`, same, same, request, metadata, answered);
    });
  }

  /** Throws "CODE details". */
  async function call<Q, A>(method: Method<Q, A>, request: Q): Promise<A> {
    const name = method.path.slice(method.path.lastIndexOf("/") + 1);
    const { code, details, bytes } = await raw(name, method.requestSerialize(request));
    if (code !== 0) throw new Error(`${code} ${details}`);
    return method.responseDeserialize(bytes);
  }

  function follow(job_id: string, metadata: Metadata = protocol("1,1")) {
    const { path, requestSerialize, responseDeserialize } = VagrantService.getJobStream;
    const made = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { job_id }, metadata);
    const messages: Message[] = [];
    const end = new Promise<{ code: number; details: string }>((resolve) => made.on("status", resolve));
    made.on("error", () => {});
    made.on("data", (message: Message) => messages.push(message));
    const eventsOf = <C extends EventCase>($case: C) =>
      messages.flatMap(({ event }) => (event?.$case === $case ? [event] : []));
    return {
      messages,
      end,
      cancel: () => made.cancel(),
      pause: () => made.pause(),
      resume: () => made.resume(),
      cases: () => messages.map(({ event }) => event?.$case),
      states: () => eventsOf("state").map(({ value }) => value as StateMessage),
      /** "QUEUED>RUNNING" is [1, 3]. */
      steps: () =>
        eventsOf("state").map(({ value }) => [(value as StateMessage).previous, (value as StateMessage).current]),
      terminals: () => eventsOf("terminal").map(({ value }) => value as Terminal),
      texts: () => eventsOf("terminal").flatMap(({ value }) => (value as Terminal).events.map(textOf)),
    };
  }

  return {
    raw,
    call,
    follow,
    client,
    job: (job_id: string): Promise<Job> => call(VagrantService.getJob, { job_id }),
    jobs: async (): Promise<Job[]> => (await call(VagrantService.listJobs, {})).jobs,
    [Symbol.dispose]: () => client.close(),
  };
}

type EventCase = NonNullable<Message["event"]>["$case"];
type Terminal = { readonly events: readonly TerminalEvent[]; readonly buffered: boolean };

type Method<Q, A> = {
  readonly path: string;
  readonly requestSerialize: (request: Q) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => A;
};

/** The metadata that every call needs; none without values, repeated with several. */
export function protocol(...values: readonly string[]): Metadata {
  const metadata = new NewMetadata();
  for (const value of values) metadata.add("client-api-protocol", value);
  return metadata;
}

/** A line of output. */
export function line(msg: string): TerminalEvent {
  return { event: { $case: "line", value: { msg, style: "", disable_new_line: false, color: "" } } };
}

/** What `line` was given; the kind of any other event. */
export function textOf({ event }: TerminalEvent): string {
  return event?.$case === "line" ? event.value.msg : `(${event?.$case})`;
}
