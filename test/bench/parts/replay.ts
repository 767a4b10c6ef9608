import type { Bench } from "../frame/bench.ts";
import { tablesCaughtUp } from "../frame/caught-up.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { residentMiB } from "../frame/processor-time.ts";
import { perSecond, sampled } from "../frame/sample.ts";
import { type SeededSource, seed } from "../frame/seed.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { subscribeMessage } from "../frame/web-socket.ts";
import { startWorker } from "../frame/worker.ts";
import type * as bareGrpc from "../workers/bare-grpc.ts";
import type * as bareHttp from "../workers/bare-http.ts";
import type * as bareWebSocket from "../workers/bare-web-socket.ts";
import type * as grpcStream from "../workers/grpc-stream.ts";
import type * as httpStream from "../workers/http-stream.ts";
import type * as sockets from "../workers/sockets.ts";

/** One client reads a whole session, over each API. */
export async function replay(bench: Bench): Promise<void> {
  await using stack = await startStack(bench, { services: ["query", "gateway"] });
  const seeded = await seed(bench, stack.log, bench.part, bench.options.size);
  await tablesCaughtUp(stack);
  const holds = new LoopHolds(stack);
  const scene = { bench, stack, holds, seeded };
  await overGrpc(scene);
  await overWebSocket(scene);
  await overHttp(scene);
  holds.report(bench, "replay");
  bench.add(
    {
      name: "memory of the gateway after the replays",
      unit: "MiB",
      calibration: "a bare Node process",
      targets: [{ of: "value", atMost: 200 }],
    },
    [residentMiB(stack.processes.gateway ?? 0)],
    [residentMiB(stack.idlePid)],
  );
}

const grpcMethods = { v1: "/proto.SkaffoldService/Events", v2: "/proto.v2.SkaffoldV2Service/Events" };
const jsonTargets = [
  { of: "ratio", atLeast: 0.7 },
  { of: "value", atLeast: 80_000 },
] as const;

type Scene = {
  readonly bench: Bench;
  readonly stack: Stack;
  readonly holds: LoopHolds;
  readonly seeded: SeededSource;
};

async function overGrpc({ bench, stack, holds, seeded: { source, frames } }: Scene): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const client = cleanup.use(
    await startWorker<typeof grpcStream>(new URL("../workers/grpc-stream.ts", import.meta.url)),
  );
  const bare = cleanup.use(await startWorker<typeof bareGrpc>(new URL("../workers/bare-grpc.ts", import.meta.url)));
  const address = await bare.call("start");
  for (const channel of ["v1", "v2"] as const) {
    const [path, count] = [grpcMethods[channel], frames[channel]];
    await bench.compare({
      figures: [
        {
          name: `replay, gRPC ${channel}, one client`,
          unit: "messages/s",
          of: perSecond,
          calibration: "bare grpc-js server, same bytes, same client",
          targets: [{ of: "ratio", atLeast: 0.8 }],
        },
      ],
      clients: ["client"],
      run: () =>
        holds.during(() =>
          sampled({ ...stack.processes, client: client.pid }, () =>
            client.call("read", stack.grpc, path, { "tapedeck-source": source }, count),
          ),
        ),
      async calibrate() {
        await bare.call("serve", await client.call("firstMessages"), count);
        return sampled({ server: bare.pid, client: client.pid }, () =>
          client.call("read", address, "/bench.Bare/Read", {}, count),
        );
      },
    });
  }
}

async function overWebSocket({ bench, stack, holds, seeded: { source, events } }: Scene): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const client = cleanup.use(await startWorker<typeof sockets>(new URL("../workers/sockets.ts", import.meta.url)));
  const bare = cleanup.use(
    await startWorker<typeof bareWebSocket>(new URL("../workers/bare-web-socket.ts", import.meta.url)),
  );
  const address = await bare.call("start");
  const subscribe = subscribeMessage("start", { sources: [source] });
  await bench.compare({
    figures: [
      {
        name: "replay, WebSocket, full JSON",
        unit: "messages/s",
        of: perSecond,
        targets: jsonTargets,
        calibration: "JSON.stringify of ready objects, bare ws, uncorked",
      },
    ],
    clients: ["client"],
    run: () =>
      holds.during(() =>
        sampled({ ...stack.processes, client: client.pid }, () =>
          client.call("readOnce", stack.http, "/api/v1/ws", subscribe, events),
        ),
      ),
    async calibrate() {
      await bare.call("stringifyToNext", await client.call("firstEvents"), events);
      return sampled({ server: bare.pid, client: client.pid }, () =>
        client.call("readOnce", address, "/", undefined, events),
      );
    },
  });
}

type HttpFormat = { readonly accept: string; readonly around: readonly [string, string] };
const httpFormats: Readonly<Record<string, HttpFormat>> = {
  "server-sent events": { accept: "text/event-stream", around: ["data: ", "\n\n"] },
  NDJSON: { accept: "application/x-ndjson", around: ["", "\n"] },
};

async function overHttp({ bench, stack, holds, seeded: { source, events } }: Scene): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const client = cleanup.use(
    await startWorker<typeof httpStream>(new URL("../workers/http-stream.ts", import.meta.url)),
  );
  const bare = cleanup.use(await startWorker<typeof bareHttp>(new URL("../workers/bare-http.ts", import.meta.url)));
  const address = await bare.call("start");
  const [url, from] = [`http://${stack.http}/api/v1`, new URLSearchParams({ after: "start", source })];
  const page = await fetch(`${url}/events?${from}&limit=1000`);
  const { items } = (await page.json()) as { items: readonly { position: string }[] };
  const texts = items.map((event) => JSON.stringify({ type: "event", position: event.position, event }));
  for (const [name, { accept, around }] of Object.entries(httpFormats)) {
    await bare.call("serve", texts, events, around);
    await bench.compare({
      figures: [
        {
          name: `replay, ${name}, full JSON`,
          unit: "messages/s",
          of: perSecond,
          targets: jsonTargets,
          calibration: "JSON.stringify of ready objects, bare socket write, uncorked",
        },
      ],
      clients: ["client"],
      run: () =>
        holds.during(() =>
          sampled({ ...stack.processes, client: client.pid }, () =>
            client.call("read", `${url}/stream?${from}`, accept, events),
          ),
        ),
      calibrate: () =>
        sampled({ server: bare.pid, client: client.pid }, () =>
          client.call("read", `http://${address}/`, accept, events),
        ),
    });
  }
}
