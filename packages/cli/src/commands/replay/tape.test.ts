import { Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { eventPosition } from "@tapedeck/shared/testing/positions";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { tapeOf } from "./tape.ts";
import { tapeQuery } from "./tape-query.ts";

/** `ms`: the upstream's own time; undefined where it has said none. */
function eventsAt(...times: readonly (number | undefined)[]): readonly Event[] {
  return times.map((ms, index) =>
    Event.fromPartial({
      source: "default/alice/shop/skaffold",
      session: "S",
      channel: "v1",
      kind: "log.written",
      ordinal: BigInt(index + 1),
      ...(ms !== undefined && {
        occurred_at: timestampOfMs(ms),
        time_source: TimeSource.TIME_SOURCE_UPSTREAM,
      }),
    }),
  );
}

it("goes by the upstream's clock, and never back", () => {
  const tape = tapeOf(eventsAt(undefined, 1_000, 3_000, 2_000, undefined, 2_500, 4_000));
  expect(tape.events.map(({ recordedAt }) => recordedAt.getTime())).toEqual([
    ...[1_000, 1_000, 3_000, 3_000, 3_000, 3_000, 4_000],
  ]);
});

it("has at a time what happened then and before, as far as it was played", async () => {
  const tape = tapeOf(eventsAt(1_000, 2_000, 3_000));
  const query = tapeQuery(tape);
  const positionAt = async (ms: number) => {
    const { head } = await query.readState({ collection: "skaffold.v1", at: new Date(ms).toISOString() });
    return head.position;
  };
  tape.next();
  tape.next();
  expect(await Promise.all([999, 1_000, 1_999, 2_000, 3_000].map(positionAt))).toEqual([
    ...[...[0, 1, 1, 2, 2].map((seq) => eventPosition("replay", seq))],
  ]);
});
