import { credentials, Metadata, status } from "@grpc/grpc-js";
import { VagrantClient } from "@tapedeck/proto/vagrant/vagrant";
import { backoff, pause } from "@tapedeck/shared/streams/pause";
import type { Look } from "./sockets.ts";

/** The first of the addresses at which a Vagrant server answers; undefined when the command has ended before. */
export async function firstServer(look: Look, ended: AbortSignal): Promise<string | undefined> {
  const over = new AbortController();
  const signal = AbortSignal.any([ended, over.signal]);
  const found = Promise.withResolvers<string | undefined>();
  ended.addEventListener("abort", () => found.resolve(undefined));
  if (ended.aborted) return undefined;
  look((address) => {
    void isVagrant(address, signal).then((is) => {
      if (is) found.resolve(address);
    });
  }, signal);
  const address = await found.promise;
  over.abort();
  return address;
}

const probeMs = 5_000;
/** Somebody may listen some time before anybody answers. */
const again = { first: 20, longest: 1_000 };

/** A command listens for other purposes too (its plugins do, with gRPC): only Vagrant's server knows this call. */
async function isVagrant(address: string, signal: AbortSignal): Promise<boolean> {
  const wait = backoff(again.first, again.longest);
  while (!signal.aborted) {
    const code = await askVersion(address);
    if (code === status.OK) return true;
    if (code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED) return false;
    await pause(wait.next(), signal);
  }
  return false;
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
