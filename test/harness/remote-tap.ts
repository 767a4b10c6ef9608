import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { pushItems } from "@tapedeck/tap/push/push";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { taps } from "@tapedeck/tap/taps";
import { ulid } from "ulid";
import { inject } from "vitest";
import { bearing } from "../stack/token-stack.ts";
import { linkTo } from "./pushing-tap.ts";

export type RemoteTapOptions = {
  /** The gateway's "host:port", and a token of the recorder's workspace. */
  readonly grpc: string;
  readonly token: string;
  /** Skaffold's "host:port". */
  readonly address: string;
  readonly developer: string;
  readonly project: string;
};

/** Records a Skaffold as a laptop's tap does: over a gateway, until it is disposed. */
export async function startRemoteTap({ grpc, token, address, ...names }: RemoteTapOptions): Promise<AsyncDisposable> {
  const dir = join(await mkdtemp(join(inject("serversFolder"), "remote-")), "spill");
  const hello = { ...names, upstream: "skaffold", tap: ulid(), labels: {}, redact: "on" };
  const spill = await openSpill({ dir, hello });
  const over = new AbortController();
  const { signal } = over;
  const tap = (await taps.skaffold()).run({ address, emit: (item) => spill.append(item), signal });
  const { control } = tap;
  const log = { info: () => {}, warn: () => {} };
  const push = pushItems({ link: linkTo(grpc, bearing(token)), spill, control, signal, log });
  return {
    async [Symbol.asyncDispose]() {
      over.abort();
      await Promise.all([tap.done, push.done]);
      await spill[Symbol.asyncDispose]();
    },
  };
}
