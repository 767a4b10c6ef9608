import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { wrongWith } from "./history.ts";
import type { Message, StreamFilter } from "./transport.ts";
import { websocket } from "./websocket.ts";

const developers = Array.from({ length: 10 }, (_, index) => `dev-${index}`);
const projects = Array.from({ length: 10 }, (_, index) => `app-${index}`);
/** Each filter with a predicate for the events of one source that it selects. */
const kinds: readonly { readonly filter: StreamFilter; readonly wants: (event: Event) => boolean }[] = [
  { filter: {}, wants: () => true },
  { filter: { kinds: ["build.*"] }, wants: ({ kind }) => kind.startsWith("build.") },
  { filter: { kinds: ["build.started"] }, wants: ({ kind }) => kind === "build.started" },
  { filter: { kinds: ["*.failed"] }, wants: ({ kind }) => kind.endsWith(".failed") },
  { filter: { kinds: ["log.written", "loop.*"] }, wants: ({ kind }) => /^(log\.written|loop\..*)$/.test(kind) },
  { filter: { subjects: ["web"] }, wants: ({ subject }) => subject === "web" },
  { filter: { outcomes: ["succeeded"] }, wants: ({ outcome }) => outcome === 1 },
  {
    filter: { outcomes: ["failed"], subjects: ["api"] },
    wants: ({ outcome, subject }) => outcome === 2 && subject === "api",
  },
  { filter: { kinds: ["session.*"] }, wants: ({ kind }) => kind.startsWith("session.") },
  { filter: { upstreams: ["rkt"] }, wants: () => false },
];

it("1,000 WebSockets with a filter each get exactly their events, from history and live", async () => {
  await using cleanup = new AsyncDisposableStack();
  const seeded = cleanup.use(await startSeededStack());
  const scenarios = developers.flatMap((developer) =>
    projects.map((project) => {
      const writer = scenario(sourceName({ workspace: "acme", developer, project, upstream: "skaffold" }));
      const session = writer.session(`S-${developer}-${project}`);
      session.started();
      return { writer, session };
    }),
  );
  const written: { readonly event: Event; readonly seq: number }[] = [];
  const addEvents = async () => {
    for (const { writer, session } of scenarios) {
      session.configured();
      session.loopStarted();
      session.build("web", "started");
      session.build("web", "succeeded");
      session.build("api", "started");
      session.build("api", "failed");
      session.text("a line");
      session.loopEnded("failed");
      const seqs = await seeded.write(writer.events);
      written.push(...writer.events.splice(0).map((event, index) => ({ event, seq: seqs[index] ?? 0 })));
    }
  };
  await addEvents();

  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const endpoint = { grpc: seeded.stack.grpc, http: seeded.stack.http };
  const readers = developers.flatMap((developer) =>
    projects.flatMap((project) =>
      kinds.map(({ filter, wants }) => {
        const request = { after: "start", filter: { ...filter, developers: [developer], projects: [project] } };
        const received: Message[] = [];
        let failure: unknown;
        const run = async () => {
          for await (const message of websocket.read(endpoint, request, over.signal)) received.push(message);
        };
        run().catch((error: unknown) => {
          failure = over.signal.aborted ? undefined : error;
        });
        const isHis = ({ event }: { readonly event: Event }) =>
          event.source === `acme/${developer}/${project}/skaffold` && wants(event);
        return { request, received, isHis, failure: () => failure };
      }),
    ),
  );
  expect(readers).toHaveLength(1_000);
  const isCaughtUp = ({ received }: (typeof readers)[number]) => received.some(({ type }) => type === "caught_up");
  await until(() => readers.every(isCaughtUp), { message: "all to have caught up", deadlineMs: 300_000 });
  await addEvents();

  const byReader = readers.map(({ isHis }) => written.filter(isHis).map(({ event, seq }) => ({ id: event.id, seq })));
  const has = ({ received }: (typeof readers)[number], count: number) =>
    received.filter(({ type }) => type === "event").length >= count;
  await until(() => readers.every((reader, index) => has(reader, byReader[index]?.length ?? 0)), {
    message: "all to have what is theirs",
    deadlineMs: 300_000,
  });
  for (const [index, { request, received, failure }] of readers.entries()) {
    const wrong = wrongWith(received, byReader[index] ?? []).slice(0, 5);
    expect({ request, failure: failure(), wrong }).toEqual({ request, failure: undefined, wrong: [] });
  }
}, 600_000);
