import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import { stepOf } from "./pairing.ts";

it("has nothing that Postgres refuses: a NUL would stop the projection of all sources", () => {
  const odd = `a\0${"x".repeat(5_000)}`;
  const event = Event.fromPartial({
    session: "01A",
    kind: "job.started",
    subject: odd,
    operation: { kind: odd, subject: odd, instance: odd },
  });
  const {
    kind = "",
    subject = "",
    instance = "",
  } = stepOf({ event, offset: offsetOf(1), subject: "", recordedAt: new Date(0) })?.pairing ?? {};
  for (const value of [kind, subject, instance]) {
    expect(value).toMatch(/^a\uFFFDx/);
    expect(value.length).toBeLessThanOrEqual(500);
  }
});
