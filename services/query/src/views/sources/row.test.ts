import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { SourceRow } from "../../db/schema.ts";
import { type Scenario, scenario } from "../../testing/scenario.ts";
import { rowAfter } from "./row.ts";

const addTo = (script: Scenario, kind: string, session = "", channel = "") =>
  script.add({ kind, session, detail: { $case: "upstream", value: { channel } } });

const connected = (script: Scenario, session = "A") => {
  addTo(script, "upstream.connected");
  addTo(script, "session.started", session);
};

const cases: { readonly title: string; readonly given: (script: Scenario) => void; readonly status: string }[] = [
  { title: "nobody has come yet", given: (script) => addTo(script, "source.added"), status: "waiting" },
  { title: "connected", given: connected, status: "recording" },
  {
    title: "hung up in mid-session",
    given: (script) => {
      connected(script);
      addTo(script, "upstream.lost", "A");
    },
    status: "lost",
  },
  {
    title: "one channel broke, the others go on",
    given: (script) => {
      connected(script);
      addTo(script, "upstream.lost", "A", "v2");
    },
    status: "recording",
  },
  {
    title: "found again",
    given: (script) => {
      connected(script);
      addTo(script, "upstream.lost", "A");
      addTo(script, "upstream.connected");
      addTo(script, "upstream.restored", "A");
    },
    status: "recording",
  },
  {
    title: "the process has ended",
    given: (script) => {
      connected(script);
      addTo(script, "upstream.lost", "A");
      addTo(script, "session.ended", "A");
    },
    status: "waiting",
  },
  {
    title: "another process is there, and only then the old session is known to be over",
    given: (script) => {
      connected(script);
      addTo(script, "upstream.lost", "A");
      addTo(script, "upstream.connected");
      addTo(script, "session.ended", "A");
      addTo(script, "session.started", "B");
    },
    status: "recording",
  },
  {
    title: "imported: begun and ended without a connection",
    given: (script) => {
      addTo(script, "session.started", "A");
      addTo(script, "session.ended", "A");
    },
    status: "waiting",
  },
];

it("reports when the source disconnected, or was last heard if its loss was not observed", () => {
  const seen = (script: Scenario) => {
    let row: SourceRow | undefined;
    return script.events.map((event, index) => {
      row = rowAfter(row, { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" });
      return row.not_heard_since?.slice(17, 23) ?? null;
    });
  };
  const hungUp = scenario();
  connected(hungUp);
  addTo(hungUp, "upstream.lost", "A");
  addTo(hungUp, "session.lost", "A");
  addTo(hungUp, "upstream.connected");
  expect(seen(hungUp)).toEqual([null, null, "00.003", "00.003", null]);

  const removed = scenario();
  connected(removed);
  const not_before = removed.events.at(-1)?.occurred_at;
  const detail = { $case: "upstream" as const, value: { unheard: true } };
  removed.add({ kind: "upstream.lost", session: "A", detail, ...(not_before && { not_before }) });
  removed.add({ kind: "upstream.restored", session: "A", detail });
  expect(seen(removed)).toEqual([null, null, "00.002", null]);
});

it("is not in a session when a connection without one is restored", () => {
  const script = scenario();
  addTo(script, "upstream.connected");
  addTo(script, "upstream.lost");
  addTo(script, "upstream.restored");
  addTo(script, "upstream.lost");
  let row: SourceRow | undefined;
  for (const [index, event] of script.events.entries()) {
    row = rowAfter(row, { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" });
  }
  expect(row?.status).toBe("waiting");
});

it.each(cases)("$title: $status", ({ given, status }) => {
  const script = scenario();
  given(script);
  let row: SourceRow | undefined;
  script.events.forEach((event, index) => {
    row = rowAfter(row, { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" });
  });
  expect(row).toMatchObject({ status, first_position: offsetOf(1), last_position: offsetOf(script.events.length) });
});
