import { expect, it } from "vitest";
import { stateLines } from "./state-lines.ts";

it("prints each reason why nothing is recorded once, and every one that somebody has to mend", () => {
  const lines: string[] = [];
  const state = stateLines({
    upstream: "skaffold",
    address: "127.0.0.1:50051",
    target: { name: "here" },
    signal: new AbortController().signal,
    printLine: (line) => void lines.push(line),
  });
  const away = { why: "nothing listens", mends: true };
  const refused = { why: "no such role", mends: false };
  for (const failure of [away, undefined, away, refused, refused, away]) state.away(failure);
  state.welcomed("default/alice/shop/skaffold");
  for (const failure of [refused, refused]) state.away(failure);
  state.welcomed("default/alice/shop/skaffold");
  expect(lines).toEqual([
    "waiting for Skaffold at 127.0.0.1:50051; press Ctrl-C to stop",
    "not recorded yet: nothing listens; events are kept on this machine",
    "not recorded yet: no such role; events are kept on this machine",
    "recording as default/alice/shop/skaffold at here",
    "not recorded for now: no such role; events are kept on this machine",
    "here is available again",
  ]);
});
