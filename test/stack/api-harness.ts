import type { IncomingHttpHeaders } from "node:http";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario, startedAt } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

const sourceOf = (name: string) => {
  const [workspace = "", developer = "", project = ""] = name.split("/");
  return sourceName({ workspace, developer, project, upstream: "skaffold" });
};
/** Formats a scenario's milliseconds as the API writes times. */
export const time = (ms: number) => new Date(startedAt + ms).toISOString().replace(".000Z", "Z");

/** Alice builds in two sessions, on two days; Bob's first build runs; Carol is in another workspace. */
export const day = 86_400_000;
export const alice = scenario(sourceOf("acme/alice/shop"));
alice.add({
  kind: "source.added",
  detail: { $case: "source_detail", value: { developer_name: "Alice", project_name: "Shop" } },
});
alice.add({
  kind: "upstream.connected",
  session: "01A1",
  detail: { $case: "upstream", value: { address: "127.0.0.1:50051" } },
});
const first = alice.session("01A1");
first.started({ branch: "main", commit: "abc" }, 500);
first.configured();
first.loopStarted();
first.build("web", "started", 1_000);
first.build("web", "succeeded", 3_000);
first.build("api", "started", 3_000);
first.build("api", "failed", 9_000);
first.loopEnded("failed", 9_001);
alice.add({ kind: "upstream.lost", session: "01A1" });
first.ended("process ended", 10_000);
alice.add({ kind: "upstream.connected", session: "01A2" }, day);
const second = alice.session("01A2");
second.started({ branch: "fix" });
second.configured();
second.loopStarted();
second.cached("web");
second.build("web", "started", day + 20_000);
second.build("web", "succeeded", day + 24_000);

export const bob = scenario(sourceOf("acme/bob/shop"));
const running = bob.session("01B1");
running.started();
running.configured();
running.loopStarted();
running.build("web", "started", 30_000);

export const carol = scenario(sourceOf("globex/carol/site"));
const hers = carol.session("01C1");
hers.started({ branch: "main" });
hers.configured();
hers.loopStarted();
hers.build("secret", "started");
hers.build("secret", "succeeded");

export type Item = Readonly<Record<string, unknown>>;
/** Any answer; its fields depend on the request. */
export type Body = {
  readonly items: Item[];
  readonly nextPage?: string;
  readonly position: string;
  readonly error: Item;
} & Item;

export type ApiHarness = AsyncDisposable & {
  readonly on: SeededStack;
  /** Sequence of the last event of the workspace `acme`. */
  readonly lastSeq: number;
  get(path: string): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Body }>;
  items(path: string): Promise<Item[]>;
  /** The position of one of Alice's or Bob's events, by its index among them, or of the first that matches. */
  positionOf(event: number | ((event: Event) => boolean)): string;
};

/** A stack seeded with these scenarios, and helpers that call its API. */
export async function startApiHarness(): Promise<ApiHarness> {
  const on = await startSeededStack();
  const events = [...alice.events, ...bob.events];
  const seqs = await on.seed([...events, ...carol.events]);
  const get: ApiHarness["get"] = async (path) => {
    const { status, headers, body } = await on.stack.httpCall("GET", `/api/v1/${path}`);
    return { status, headers, body: JSON.parse(body) as Body };
  };
  return {
    on,
    lastSeq: seqs[events.length - 1] ?? 0,
    get,
    items: async (path) => (await get(path)).body.items,
    positionOf: (which) => on.at(seqs[typeof which === "number" ? which : events.findIndex(which)] ?? 0),
    [Symbol.asyncDispose]: () => on[Symbol.asyncDispose](),
  };
}

/** One field of each item. */
export const pick = (name: string, all: readonly Item[]) => all.map((item) => item[name]);
