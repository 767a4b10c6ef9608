import type { HistoryItem } from "@tapedeck/client";
import { expect, it } from "vitest";
import { byDay, dayText, historyChoiceOf, historyPath, itemName, itemPath, searchOptionsOf } from "./history.ts";
import { routeOf, sourceDaysPath } from "./route.ts";

const item: HistoryItem = {
  kind: "loop",
  source: "acme/alice/shop/skaffold",
  session: "01ABC",
  runner: 1,
  loop: 14,
  subject: "",
  instance: "",
  startedAt: "2026-11-20T12:00:00Z",
  endedAt: "2026-11-20T12:00:03Z",
  durationMs: 3000,
  outcome: "failed",
  exitCode: null,
  cause: null,
  artifacts: ["web"],
  labels: {},
  startPosition: "2-x",
  endPosition: "5-x",
};
const hit = { place: "output", text: "  no such file & more ", step: "build", subject: "web", position: "3-x" };

it("all that is chosen is in the URL, and is asked for", () => {
  const path = historyPath({
    text: "no such file",
    kinds: ["loop", "session"],
    outcomes: ["failed"],
    reasons: ["type error"],
    labels: ["branch=a=b"],
    from: "2026-11-20",
    to: "2026-11-20",
  });
  expect(path).toBe(
    "/loops?q=no+such+file&kind=loop&kind=session&outcome=failed&reason=type+error&label=branch=a=b&from=2026-11-20&to=2026-11-20",
  );
  const choice = historyChoiceOf(path.slice(path.indexOf("?")));
  expect(historyPath(choice)).toBe(path);
  const { from, to, ...asked } = searchOptionsOf(choice);
  expect(asked).toEqual({
    text: "no such file",
    kinds: ["loop", "session"],
    outcomes: ["failed"],
    reasons: ["type error"],
    artifacts: [],
    developers: [],
    projects: [],
    labels: { branch: "a=b" },
  });
  // The whole day, here.
  expect([from, to]).toEqual([new Date(2026, 10, 20), new Date(2026, 10, 21)]);
});

it("parameters that are no choice are left out", () => {
  expect(historyPath(historyChoiceOf("?from=yesterday&label=branch&kind=&x=y"))).toBe("/loops");
  expect(searchOptionsOf(historyChoiceOf(""))).not.toHaveProperty("text");
});

it.each([
  [item, "/loops/01ABC.1.14"],
  [{ ...item, hit }, "/loops/01ABC.1.14?step=3-x&line=no+such+file+%26+more"],
  [{ ...item, hit: { ...hit, place: "label", step: "" } }, "/loops/01ABC.1.14"],
  [
    { ...item, kind: "command", loop: 0, hit: { ...hit, place: "cause", step: "" } },
    "/sessions/01ABC?at=5-x&line=no+such+file+%26+more",
  ],
  [{ ...item, kind: "session", loop: 0, endPosition: null }, "/sessions/01ABC"],
  [{ ...item, kind: "pod", loop: 0, endPosition: null }, "/sessions/01ABC?at=2-x"],
] as const)("%j is shown at %s", (one, path) => {
  expect(itemPath(one)).toBe(path);
  expect(routeOf(new URL(path, "http://page")).view).not.toBe("missing");
});

it("items have names, and stand under their days", () => {
  expect(itemName(item)).toBe("loop 14");
  expect(itemName({ ...item, kind: "session" })).toBe("session");
  expect(itemName({ ...item, kind: "session", subject: "skaffold build" })).toBe("skaffold build");
  expect(itemName({ ...item, kind: "command", subject: "up" })).toBe("up");
  const [newest = ["", []], ...others] = byDay([
    item,
    { ...item, startedAt: "2026-11-10T12:00:00Z" },
    { ...item, startedAt: null },
  ]);
  expect(newest[1]).toEqual([item]);
  const now = new Date(2026, 10, 21, 12).getTime();
  expect([newest, ...others].map(([day]) => dayText(day, now))).toEqual([
    "Yesterday",
    "Tue, 10 Nov 2026",
    "Unknown time",
  ]);
});

it("a source has a path for its days", () => {
  expect(routeOf(new URL(sourceDaysPath(item.source), "http://page"))).toMatchObject({
    view: "source",
    source: "alice/shop",
  });
  expect(routeOf(new URL("/loops?q=a", "http://page"))).toEqual({ view: "history", query: "?q=a" });
});
