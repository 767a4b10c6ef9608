import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { GetJobStreamRequest, GetLogStreamRequest, LogBatch } from "@tapedeck/proto/vagrant/vagrant";
import { skaffoldClient } from "../skaffold/client.ts";
import { infoOf } from "../stack/error-info.ts";

type Head = Readonly<Record<string, string>>;

export type VagrantAnswer = {
  readonly code: number;
  readonly message: string;
  readonly bytes: Buffer;
  /** The answer's position; "" with an error, and for a write. */
  readonly position: string;
  /** The reason of Tapedeck's own refusals: "refused_dangerous". */
  readonly reason: string;
};

/** A running or finished stream. */
export type Following = {
  /** The encoded messages so far. */
  readonly messages: readonly Buffer[];
  /** Resolves when the server has ended it, or the client has cancelled it (code 1). */
  readonly end: Promise<{ readonly code: number; readonly details: string }>;
  readonly isOver: () => boolean;
  readonly cancel: () => void;
};

/** Calls Vagrant's API on the gateway with bytes, as any client of Vagrant would. */
export type VagrantClient = Disposable & {
  /** By the name on the wire: "_ListJobs". */
  readonly ask: (rpc: string, request?: Uint8Array, head?: Head) => Promise<VagrantAnswer>;
  /** The answer's message. Throws "CODE details". */
  readonly call: <Q, A>(method: Method<Q, A>, request: Q, head?: Head) => Promise<A>;
  readonly job: (job: string, head?: Head) => Following;
  /** By the resource_id; `limit_backlog` as in Vagrant's request. */
  readonly projectLog: (project: string, limit_backlog?: number) => Following;
};

type Method<Q, A> = {
  readonly path: string;
  readonly requestSerialize: (request: Q) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => A;
};

const service = "/hashicorp.vagrant.Vagrant";
/** The metadata that Vagrant's own clients send with every call. */
const protocol = { "client-api-protocol": "1,1" };
const asIs = (bytes: Buffer) => bytes;

export function vagrantClient(address: string): VagrantClient {
  const { unary, [Symbol.dispose]: close } = skaffoldClient(address);
  const client = new Client(address, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });

  async function ask(rpc: string, request: Uint8Array = new Uint8Array(), head: Head = {}): Promise<VagrantAnswer> {
    const answer = await unary(`${service}/${rpc}`, request, { ...protocol, ...head });
    const { code, message, bytes, metadata } = answer;
    const position = String(metadata.get("tapedeck-position")[0] ?? "");
    return { code, message, bytes, position, reason: infoOf(answer)?.reason ?? "" };
  }

  function follow(rpc: string, request: Uint8Array, head: Head = {}): Following {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries({ ...protocol, ...head })) metadata.set(name, value);
    const call = client.makeServerStreamRequest(`${service}/${rpc}`, asIs, asIs, Buffer.from(request), metadata);
    const messages: Buffer[] = [];
    let isOver = false;
    const ended = new Promise<{ readonly code: number; readonly details: string }>((resolve) =>
      call.on("status", ({ code, details }) => resolve({ code, details })),
    );
    // The status can overtake messages that are not read yet.
    const taken = new Promise((resolve) => call.on("end", resolve));
    const end = Promise.all([ended, taken]).then(([{ code, details }]) => {
      isOver = true;
      return { code, details };
    });
    call.on("error", () => {}).on("data", (message: Buffer) => messages.push(message));
    return { messages, end, isOver: () => isOver, cancel: () => call.cancel() };
  }

  return {
    ask,
    async call(method, request, head) {
      const name = method.path.slice(method.path.lastIndexOf("/") + 1);
      const { code, message, bytes } = await ask(name, method.requestSerialize(request), head);
      if (code !== 0) throw new Error(`${code} ${message}`);
      return method.responseDeserialize(bytes);
    },
    job: (job_id, head) => follow("GetJobStream", GetJobStreamRequest.encode({ job_id }).finish(), head),
    projectLog(resource_id, limit_backlog = 0) {
      const scope = { $case: "project", value: { resource_id } } as const;
      const request = GetLogStreamRequest.fromPartial({ scope, limit_backlog });
      return follow("GetLogStream", GetLogStreamRequest.encode(request).finish());
    },
    [Symbol.dispose]() {
      client.close();
      close.call(undefined);
    },
  };
}

/** Text of a GetLogStream's entries. */
export function linesOf(messages: readonly Buffer[]): string[] {
  return messages.flatMap((bytes) => LogBatch.decode(bytes).lines.map(({ line }) => line));
}
