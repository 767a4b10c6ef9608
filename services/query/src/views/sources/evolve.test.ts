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

it.each(cases)("$title: $status", ({ given, status }) => {
  const tale = story();
  given(tale);
  let row: SourceRow | undefined;
  tale.events.forEach((event, index) => {
    row = evolve(row, { event, seq: index + 1, recordedAt: new Date(0), subject: "" });
  });
  expect(row).toMatchObject({ status, first_position: 1, last_position: tale.events.length });
});
