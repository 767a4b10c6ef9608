import { expect, it } from "vitest";
import type { SourceRow } from "../../db/schema.ts";
import { type Story, story } from "../../testing/story.ts";
import { evolve } from "./evolve.ts";

const tell = (tale: Story, kind: string, session = "", channel = "") =>
  tale.tell({ kind, session, detail: { $case: "upstream", value: { channel } } });

const connected = (tale: Story, session = "A") => {
  tell(tale, "upstream.connected");
  tell(tale, "session.started", session);
};

const cases: { readonly title: string; readonly given: (tale: Story) => void; readonly status: string }[] = [
  { title: "nobody has come yet", given: (tale) => tell(tale, "source.added"), status: "waiting" },
  { title: "connected", given: connected, status: "recording" },
  {
    title: "hung up in mid-session",
    given: (tale) => {
      connected(tale);
      tell(tale, "upstream.lost", "A");
    },
    status: "lost",
  },
  {
    title: "one channel broke, the others go on",
    given: (tale) => {
      connected(tale);
      tell(tale, "upstream.lost", "A", "v2");
    },
    status: "recording",
  },
  {
    title: "found again",
    given: (tale) => {
      connected(tale);
      tell(tale, "upstream.lost", "A");
      tell(tale, "upstream.connected");
      tell(tale, "upstream.restored", "A");
    },
    status: "recording",
  },
  {
    title: "the process has ended",
    given: (tale) => {
      connected(tale);
      tell(tale, "upstream.lost", "A");
      tell(tale, "session.ended", "A");
    },
    status: "waiting",
  },
  {
    title: "another process is there, and only then the old session is known to be over",
    given: (tale) => {
      connected(tale);
      tell(tale, "upstream.lost", "A");
      tell(tale, "upstream.connected");
      tell(tale, "session.ended", "A");
      tell(tale, "session.started", "B");
    },
    status: "recording",
  },
  {
    title: "imported: begun and ended without a connection",
    given: (tale) => {
      tell(tale, "session.started", "A");
      tell(tale, "session.ended", "A");
    },
    status: "waiting",
  },
];

it("reports when the source disconnected, or was last heard if its loss was not observed", () => {
  const seen = (tale: Story) => {
    let row: SourceRow | undefined;
    return tale.events.map((event, index) => {
      row = evolve(row, { event, seq: index + 1, recordedAt: new Date(0), subject: "" });
      return row.not_heard_since?.slice(17, 23) ?? null;
    });
  };
  const hungUp = story();
  connected(hungUp);
  tell(hungUp, "upstream.lost", "A");
  tell(hungUp, "session.lost", "A");
  tell(hungUp, "upstream.connected");
  expect(seen(hungUp)).toEqual([null, null, "00.003", "00.003", null]);

  const gone = story();
  connected(gone);
  const not_before = gone.events.at(-1)?.occurred_at;
  const detail = { $case: "upstream" as const, value: { unheard: true } };
  gone.tell({ kind: "upstream.lost", session: "A", detail, ...(not_before && { not_before }) });
  gone.tell({ kind: "upstream.restored", session: "A", detail });
  expect(seen(gone)).toEqual([null, null, "00.002", null]);
});

it("is not in a session when a connection without one is restored", () => {
  const tale = story();
  tell(tale, "upstream.connected");
  tell(tale, "upstream.lost");
  tell(tale, "upstream.restored");
  tell(tale, "upstream.lost");
  let row: SourceRow | undefined;
  for (const [index, event] of tale.events.entries()) {
    row = evolve(row, { event, seq: index + 1, recordedAt: new Date(0), subject: "" });
  }
  expect(row?.status).toBe("waiting");
});

it.each(cases)("$title: $status", ({ given, status }) => {
  const tale = story();
  given(tale);
  let row: SourceRow | undefined;
  tale.events.forEach((event, index) => {
    row = evolve(row, { event, seq: index + 1, recordedAt: new Date(0), subject: "" });
  });
  expect(row).toMatchObject({ status, first_position: 1, last_position: tale.events.length });
});
