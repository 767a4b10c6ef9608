import { connect } from "node:net";
import { credentials, Metadata, status } from "@grpc/grpc-js";
import { VagrantClient } from "@tapedeck/proto/vagrant/vagrant";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { startTimer } from "@tapedeck/shared/sync/timers";
import type { AddressSource } from "../sockets.ts";

export type FoundServer = {
  /** The address of the first Vagrant server that answered; undefined: none did before the command had ended. */
  readonly address: string | undefined;
  /** Addresses of processes that exited before they could be asked. */
  readonly unreachable: readonly string[];
};

export async function firstServer(findAddresses: AddressSource, ended: AbortSignal): Promise<FoundServer> {
  const over = new AbortController();
  const signal = AbortSignal.any([ended, over.signal]);
  const found = Promise.withResolvers<string | undefined>();
  const unknown = new Set<string>();
  if (ended.aborted) found.resolve(undefined);
  ended.addEventListener("abort", () => found.resolve(undefined));
  findAddresses((address) => {
    unknown.add(address);
    const isThere = () => void unknown.delete(address);
    void isVagrant(address, isThere, signal).then((is) => {
      if (is) found.resolve(address);
    });
  }, signal);
  const address = await found.promise;
  over.abort();
  return { address, unreachable: [...unknown] };
}

const probeMs = 5_000;
/** A process may listen some time before it answers. */
const again = { first: 20, longest: 1_000 };

/** A command listens for other purposes too (its plugins do, with gRPC): only Vagrant's server knows this call. */
async function isVagrant(address: string, isThere: () => void, signal: AbortSignal): Promise<boolean> {
  const wait = backoff(again.first, again.longest);
  while (!signal.aborted) {
    const code = await askVersion(address);
    // A server that does not speak this protocol is UNAVAILABLE too, as is one that is gone.
    if (code !== status.UNAVAILABLE || (await accepts(address))) isThere();
    if (code === status.OK) return true;
    if (code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED) return false;
    await delay(wait.next(), signal);
  }
  return false;
}

/** The system accepts connections for a process that is ending, and resets them when its sockets are closed. */
const settlingMs = 100;

/** Whether connections are accepted there, and kept. */
async function accepts(address: string): Promise<boolean> {
  const [host = "", port = ""] = address.split(":");
  const socket = connect({ host, port: Number(port) });
  try {
    return await new Promise((resolve) => {
      socket.once("connect", () => startTimer(() => resolve(true), settlingMs));
      socket.once("close", () => resolve(false));
      // Without a reader the close is not reported.
      socket.on("error", () => {}).resume();
    });
  } finally {
    socket.destroy();
  }
}

async function askVersion(address: string): Promise<number> {
  const client = new VagrantClient(address, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
  });
  try {
    return await new Promise((resolve) => {
      client.getVersionInfo({}, new Metadata(), { deadline: Date.now() + probeMs }, (error) =>
        resolve(error?.code ?? status.OK),
      );
    });
  } finally {
    client.close();
  }
}
