import { Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { formatPosition } from "@tapedeck/shared/log/position";
import { expect, it } from "vitest";
import { firstOpening } from "../../testing/no-reader.ts";
import type { FormattedSink } from "../format.ts";
import { epoch, listedLog } from "../otlp/testing/listed-log.ts";
import { cdEvents } from "./cdevents.ts";

const sink: FormattedSink = {
  workspace: "default",
  name: "cd",
  mode: "structured",
  filter: {},
  live: false,
  secret: undefined,
  epoch,
  page: "http://tapedeck.example",
};

const event = (session: string, kind: string, more: Partial<Event> = {}) =>
  Event.fromPartial({ id: `${session}.${kind}`, source: "default/alice/shop/skaffold", session, kind, ...more });
const labelled = (session: string, kind: string, labels: Readonly<Record<string, string>>) =>
  event(session, kind, { detail: { $case: "session_detail", value: { labels } as never } });
const built = (session: string, more: Partial<Event> = {}) =>
  event(session, "build.succeeded", {
    subject: "web",
    outcome: Outcome.OUTCOME_SUCCEEDED,
    operation: { kind: "build", subject: "web", runner: 1, loop: 1 },
    ...more,
  });

/** The commits of the artifacts that the builds of a log have packaged. */
async function commitsIn(log: ReturnType<typeof listedLog>) {
  const pass = cdEvents.open(sink, log.reader, firstOpening);
  const commits: string[] = [];
  for (const recorded of log.recorded.filter(({ event: { kind } }) => kind === "build.succeeded")) {
    const position = formatPosition({ epoch, offset: recorded.offset });
    for (const { body } of await pass.requests([{ recorded, position }], new AbortController().signal)) {
      const { type, data } = JSON.parse(String(body));
      if (type.includes("artifact.packaged")) commits.push(data.subject.content.change.id);
    }
  }
  return commits;
}

it("the commit of a build is read from its session alone, however many others its source had", async () => {
  const before = Array.from({ length: 20_000 }, (_, index) =>
    labelled(`s${index}`, "session.started", { commit: `c${index}` }),
  );
  const log = listedLog([
    ...before,
    labelled("own", "session.started", { commit: "0a1b2c", dirty: "false" }),
    built("own"),
    labelled("own", "session.labelled", { commit: "0a1b2c", dirty: "true" }),
    built("own"),
    built("own"),
    labelled("own", "session.labelled", { commit: "3d4e5f", dirty: "" }),
    built("own"),
  ]);
  expect(await commitsIn(log)).toEqual(["0a1b2c", "0a1b2c-dirty", "0a1b2c-dirty", "3d4e5f"]);
  expect(log.reads.reduce((sum, { count }) => sum + count, 0)).toBeLessThan(150);
});

it("a build of which the session has no commit packages no artifact", async () => {
  expect(await commitsIn(listedLog([labelled("own", "session.started", {}), built("own")]))).toEqual([]);
  expect(await commitsIn(listedLog([built("own")]))).toEqual([]);
});

it("an event that a client has put into the upstream is no CDEvent", async () => {
  const log = listedLog([labelled("own", "session.started", { commit: "0a1b2c" }), built("own", { injected: true })]);
  const pass = cdEvents.open(sink, log.reader, firstOpening);
  const events = log.recorded.map((recorded) => ({
    recorded,
    position: formatPosition({ epoch, offset: recorded.offset }),
  }));
  expect(await pass.requests(events.slice(1), new AbortController().signal)).toEqual([]);
});
