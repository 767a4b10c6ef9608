import { join } from "node:path";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry, State } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { justBefore, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import { type Logger, silentLogger } from "@tapedeck/shared/service/logger";
import type { ApiVersion } from "@tapedeck/shared/skaffold/methods";
import { sourceName } from "@tapedeck/shared/source";
import { type LossyProxy, lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "skaffold");
const truthful = [
  "01-dev-success-3-artifacts-5-iterations",
  "04-deploy-failure-then-recovery",
  "10-status-check-port-forward-sync-app-logs",
];

it("the drift check finds nothing in what real processes answered about themselves", async () => {
  await using on = await theatre(truthful.map((name) => ({ name })));
  await Promise.all(
    on.shows.map(async (show) => {
      for (const rest of rests(show.recording)) await on.compareAt(rest, show);
    }),
  );
  for (const { source } of on.shows) expect(await on.count("drift", source)).toBe(0);
  expect(on.drifts).toEqual([]);
});

it("the drift check reports a deviating GetState once, and answers as Skaffold does from then on", async () => {
  await using on = await theatre([{ name: "04-deploy-failure-then-recovery", lie: withFailedTests }]);
  const [show] = on.shows;
  if (show === undefined) throw new Error("no show");
  const { recording, source } = show;
  const testState = async (at?: string) => {
    const query = at === undefined ? "" : `&at=${at}`;
    const { body } = await on.stack.httpCall("GET", `/api/v1/state?source=${source}${query}`);
    const { position, state } = JSON.parse(body) as {
      readonly position: string;
      readonly state: { readonly v1: { readonly testState: { readonly status: string } } };
    };
    return { position, status: state.v1.testState.status };
  };
  for (const rest of rests(recording).slice(0, 2)) {
    const adoptions = async () => (await adopted(on.stack)).length;
    const before = await adoptions();
    await on.compareAt(rest, show);
    await until(async () => (await adoptions()) > before, { message: "the answer to be adopted" });
    await on.stack.caughtUp();
    expect((await testState()).status).toBe("Failed");
  }
  expect(await on.count("drift", source)).toBeGreaterThanOrEqual(2);
  const { position } = await testState();
  for (const { offset } of await adopted(on.stack)) {
    const epoch = parsePosition(position)?.epoch ?? "";
    const at = (place: Offset) => formatPosition({ epoch, offset: place });
    expect((await testState(at(justBefore(offset)))).status).toBe("Not Started");
    expect((await testState(at(offset))).status).toBe("Failed");
  }
  const session = (await on.stack.events()).find(({ event }) => event.kind === "session.started")?.event.session;
  const differences = ["v1 testState: Skaffold says Failed, its events Not Started"];
  expect(on.drifts).toEqual([{ source, session, differences }]);
});

async function adopted(stack: Stack): Promise<RecordedEvent[]> {
  return (await stack.events()).filter(
    ({ event: { detail } }) => detail?.$case === "session_detail" && detail.value.adopted === true,
  );
}

type Rest = { readonly v1: number; readonly v2: number };
type Show = {
  readonly recording: RecordedUpstream;
  readonly source: string;
  readonly fake: FakeSkaffold;
  readonly wire: LossyProxy;
};
type Cast = { readonly name: string; readonly lie?: (api: ApiVersion, state: Buffer) => Buffer };

/** An answer from a quiet moment is compared a second later. After this time no comparison follows. */
const comparedWithinMs = 5_000;

/** Starts a fake Skaffold for each, all recorded by one Tapedeck. */
async function theatre(cast: readonly Cast[]) {
  await using cleanup = new AsyncDisposableStack();
  const shows: Show[] = [];
  for (const [index, { name, lie }] of cast.entries()) {
    const recording = loadRecording(join(fixtures, name));
    const fake = cleanup.use(await startFakeSkaffold({ recording, leavingInReplayHangs: false, ...(lie && { lie }) }));
    const wire = cleanup.use(await lossyProxy(fake.port));
    const names = { workspace: "default", developer: `dev-${index}`, project: "shop", upstream: "skaffold" } as const;
    shows.push({ recording, source: sourceName(names), fake, wire });
  }
  const drifts: unknown[] = [];
  const logger: Logger = Object.assign(Object.create(silentLogger) as Logger, {
    warn: (fields: unknown, message: string) => message.startsWith("fold_drift") && drifts.push(fields),
  });
  const skaffold = shows.map(({ wire }, index) => ({
    address: `127.0.0.1:${wire.port}`,
    developer: `dev-${index}`,
  }));
  const stack: Stack = cleanup.use(await startStack({ skaffold, logger }));
  const owned = cleanup.move();
  const count = async (what: "checks" | "drift", source: string): Promise<number> => {
    const metrics = await (await fetch(`http://${stack.queryHealth}/metrics`)).text();
    const isIt = (line: string) =>
      line.startsWith(`tapedeck_query_fold_${what}_total{`) && line.includes(`source="${source}"`);
    return Number(metrics.split("\n").find(isIt)?.split(" ").at(-1) ?? 0);
  };
  return {
    shows,
    drifts,
    stack,
    count,
    /** Plays to the point where the tap calls GetState, and waits until both answers are compared. */
    async compareAt(rest: Rest, { recording, source, fake, wire }: Show): Promise<void> {
      const before = await count("checks", source);
      await fake.playUntil(rest);
      let observeAgainAt = performance.now() + comparedWithinMs;
      const areCompared = async () => {
        if ((await count("checks", source)) >= before + 2) return true;
        // On a busy machine an answer may not come in a quiet moment, and is not compared. A tap that reconnects calls
        // again.
        if (performance.now() > observeAgainAt) {
          wire.cut();
          observeAgainAt = performance.now() + comparedWithinMs;
        }
        return false;
      };
      await until(areCompared, {
        message: `both answers of ${recording.name} to be compared at ${JSON.stringify(rest)}`,
      });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The counts of messages at moments when a loop had ended and both answers of GetState were recorded undisturbed. */
function rests({ states, messages }: RecordedUpstream): Rest[] {
  const quiet = (api: ApiVersion) =>
    states.filter((state) => state.api === api && state.seenBefore === state.seenAfter);
  const v2 = new Map(quiet("v2").map(({ file, seenBefore }) => [stateName(file), seenBefore]));
  let after = 0;
  return quiet("v1").flatMap(({ file, seenBefore }) => {
    const other = v2.get(stateName(file));
    const loopEnded = messages.v1.slice(after, seenBefore).some(({ bytes }) => isLoopEnd(bytes));
    if (other === undefined || !loopEnded) return [];
    after = seenBefore;
    return [{ v1: seenBefore, v2: other }];
  });
}

/** "v1-state-02-after-sync.json" → "after-sync". */
function stateName(file: string): string {
  return file.replace(/^v[12]-state-\d+-/, "").replace(".json", "");
}

function isLoopEnd(bytes: Buffer): boolean {
  const event = LogEntry.decode(bytes).event?.event_type;
  return event?.$case === "devLoopEvent" && event.value.status !== "In Progress";
}

function withFailedTests(api: ApiVersion, state: Buffer): Buffer {
  if (api !== "v1") return state;
  const decoded = State.decode(state);
  if (decoded.testState === undefined) return state;
  return Buffer.from(State.encode({ ...decoded, testState: { ...decoded.testState, status: "Failed" } }).finish());
}
