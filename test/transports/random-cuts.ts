import { readConfig } from "@tapedeck/gateway/config";
import { type Gateway, startGateway } from "@tapedeck/gateway/gateway";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario } from "@tapedeck/query/testing/scenario";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { expect } from "vitest";
import type { SeededStack } from "../stack/seeded-stack.ts";
import { gatewayEnv } from "../stack/stack.ts";
import { startTokenStack, withTokens } from "../stack/token-stack.ts";
import { transports } from "./all-transports.ts";
import { type CuttingProxy, cuttingProxy } from "./cutting-proxy.ts";
import { type Due, wrongWith } from "./history.ts";
import { ConnectionLost, type Message, Refused, type StreamFilter } from "./transport.ts";

/** Written at the same time. They have developers and projects of the same names; sessions begin with the number. */
const workspaces = { acme: "01", globex: "02" } as const;
type Workspace = keyof typeof workspaces;

/** Each filter with a predicate for the events that it selects, written independently of the product. */
const filtersIn = (
  workspace: Workspace,
): readonly { readonly filter: StreamFilter; readonly wants: (event: Event) => boolean }[] => [
  { filter: {}, wants: () => true },
  { filter: { kinds: ["build.*"] }, wants: ({ kind }) => kind.startsWith("build.") },
  { filter: { kinds: ["*.failed", "log.written"] }, wants: ({ kind }) => /\.failed$|^log\.written$/.test(kind) },
  { filter: { developers: ["bob"] }, wants: ({ source }) => source.includes("/bob/") },
  {
    filter: { sources: ["alice/shop"], kinds: ["build.succeeded", "deploy.*"] },
    wants: ({ source, kind }) => source.includes("/alice/shop/") && /^(build\.succeeded|deploy\..*)$/.test(kind),
  },
  { filter: { subjects: ["web"] }, wants: ({ subject }) => subject === "web" },
  { filter: { outcomes: ["failed"], developers: ["alice", "bob"] }, wants: ({ outcome }) => outcome === 2 },
  {
    filter: { sessions: [`${workspaces[workspace]}B1`] },
    wants: ({ session }) => session === `${workspaces[workspace]}B1`,
  },
];

export type CutsResult = {
  readonly seed: number;
  readonly cuts: number;
  /** The number of cuts by the kind of cut and by transport. */
  readonly by: Readonly<Record<string, number>>;
  readonly restarts: number;
  readonly events: number;
  readonly received: number;
};

/**
 * Readers with different filters follow the logs of two workspaces that are being written. Each connection is cut at a random
 * point: its reader leaves in the middle, the network breaks between two bytes, or the gateway is stopped and another one
 * started. The next connection resumes after the last position, on any transport. In the end every reader must have its history.
 */
export async function randomCuts(cuts: number): Promise<CutsResult> {
  const random = seeded("random cuts of subscriptions");
  await using cleanup = new AsyncDisposableStack();
  const { on: stack, token } = cleanup.use(await startTokenStack());
  const gateways = cleanup.use(restartable(stack));
  await gateways.start();
  const by: Record<string, number> = {};
  let left = cuts;
  let restarts = 0;

  const written = { acme: [] as WrittenEvent[], globex: [] as WrittenEvent[] };
  const names = Object.keys(workspaces) as Workspace[];
  const writing = Promise.all(
    names.map((workspace) =>
      write(stack, workspace, {
        goesOn: () => left > 0,
        below: random.below,
        done: (batch, seqs) =>
          written[workspace].push(...batch.map((event, index) => ({ event, id: event.id, seq: seqs[index] ?? 0 }))),
      }),
    ),
  );

  // Once writing stops, a reader that waits for its cut would wait for ever.
  const silent = new AbortController();
  void writing.finally(() => silent.abort());

  const readers = await Promise.all(
    names.map(async (workspace) => {
      const { text } = await token(workspace, ["viewer"]);
      return filtersIn(workspace).map((one) => ({ ...one, workspace, text }));
    }),
  );
  const histories = await Promise.all(
    readers.flat().map(async ({ workspace, text, filter, wants }, index) => {
      const received: Message[] = [];
      await using http = await cuttingProxy(() => gateways.now().http);
      await using grpc = await cuttingProxy(() => gateways.now().grpc);
      let after = "start";
      const read = async (max: number, cutAfter: number | undefined, isDone?: (message: Message) => boolean) => {
        const transport = transports[random.below(transports.length)] ?? transports[0];
        if (transport === undefined) throw new Error("no transport");
        const proxy: CuttingProxy = transport.name === "gRPC" ? grpc : http;
        proxy.cutAfter = cutAfter;
        const leaving = new AbortController();
        const signal = isDone === undefined ? AbortSignal.any([leaving.signal, silent.signal]) : leaving.signal;
        let count = 0;
        try {
          const endpoint = { http: http.address, grpc: grpc.address, token: text };
          for await (const message of transport.read(endpoint, { after, filter }, signal)) {
            received.push(message);
            after = message.position;
            if (isDone?.(message)) return true;
            if (++count >= max) break;
          }
        } catch (error) {
          // The gateway may answer that the log is not ready yet: try again.
          const isPassing =
            error instanceof ConnectionLost || (error instanceof Refused && error.body.code === "not_ready");
          if (!isPassing) throw new Error(`${transport.name}, reader ${index}`, { cause: error });
        } finally {
          leaving.abort();
          proxy.cutAfter = undefined;
        }
        const how = `${transport.name}, ${cutAfter === undefined ? "reader left" : "network cut"}`;
        by[how] = (by[how] ?? 0) + 1;
        return false;
      };
      while (left > 0) {
        const turn = --left;
        const isNetwork = random.below(2) === 0;
        await read(isNetwork ? 10_000 : 1 + random.below(40), isNetwork ? random.below(20_000) : undefined);
        if (turn > 0 && turn % 50 === 0) {
          restarts++;
          await gateways.restart();
        }
      }
      await writing;
      const end = written[workspace].at(-1)?.seq ?? 0;
      const isAtEnd = ({ type, position }: Message) => type === "caught_up" && seqIn(position) >= end;
      while (!(await read(Number.POSITIVE_INFINITY, undefined, isAtEnd)));
      return {
        received,
        due: written[workspace].filter(({ event }) => wants(event)),
        name: `${index}: ${JSON.stringify(filter)} in ${workspace}`,
      };
    }),
  );

  for (const { received, due, name } of histories) {
    expect({ name, wrong: wrongWith(received, due).slice(0, 10) }).toEqual({ name, wrong: [] });
  }
  const received = histories.reduce((sum, history) => sum + history.received.length, 0);
  const events = written.acme.length + written.globex.length;
  return { seed: random.seed, cuts, by, restarts, events, received };
}

type WrittenEvent = Due & { readonly event: Event };

type Writing = {
  readonly goesOn: () => boolean;
  readonly below: (bound: number) => number;
  readonly done: (batch: readonly Event[], seqs: readonly number[]) => void;
};

/** Writes builds, deploys and text of three sources, a few events at a time, while there are cuts left to make. */
async function write(stack: SeededStack, workspace: Workspace, { goesOn, below, done }: Writing): Promise<void> {
  const writers = ["alice/shop/A1", "bob/shop/B1", "bob/cart/C1"].map((name) => {
    const [developer = "", project = "", id = ""] = name.split("/");
    const writer = scenario(sourceName({ workspace, developer, project, upstream: "skaffold" }));
    const session = writer.session(`${workspaces[workspace]}${id}`);
    session.started();
    session.configured();
    session.loopStarted();
    return { writer, session, written: 0 };
  });
  let ordinal = 0;
  while (goesOn()) {
    const one = writers[below(writers.length)];
    if (one === undefined) return;
    const { session, writer } = one;
    // First a history to be cut in, then live.
    const many = ordinal++ < 10 ? 100 : 6;
    for (let count = 1 + below(many); count > 0; count--) {
      const artifact = ["web", "api"][below(2)] ?? "web";
      const verb = (["succeeded", "failed"] as const)[below(2)] ?? "failed";
      [
        () => session.build(artifact, "started"),
        () => session.build(artifact, verb),
        () => session.phase("deploy", verb),
        () => session.text(`line ${"x".repeat(below(400))}`),
      ][below(4)]?.();
    }
    const batch = writer.events.slice(one.written);
    one.written = writer.events.length;
    done(batch, await stack.write(batch));
  }
}

/** Runs gateways on the stack's log and query, one after the other. */
function restartable({ stack }: SeededStack) {
  let gateway: Gateway | undefined;
  let addresses = { grpc: "127.0.0.1:1", http: "127.0.0.1:1" };
  let restarting: Promise<void> | undefined;
  const start = async () => {
    const env = { ...gatewayEnv(stack.parts), ...withTokens };
    gateway = await startGateway(readConfig({ env }), silentLogger);
    addresses = { grpc: gateway.addresses.grpc ?? "", http: gateway.addresses.http ?? "" };
  };
  return {
    now: () => addresses,
    start,
    /** Concurrent calls share one restart. */
    restart() {
      restarting ??= (async () => {
        await gateway?.[Symbol.asyncDispose]();
        await start();
        restarting = undefined;
      })();
      return restarting;
    },
    async [Symbol.asyncDispose]() {
      await restarting;
      await gateway?.[Symbol.asyncDispose]();
    },
  };
}
