import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { expect, it, onTestFinished, vi } from "vitest";
import { boundedAudit } from "./bounded-audit.ts";

it("writes so many entries of a caller in a window, and counts the rest in the next one", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const written: Omit<AuditEntry, "time">[] = [];
  const audit = boundedAudit((entry) => written.push(entry), { perCaller: 2, windowMs: 1_000 });
  const exported = (by: string) =>
    audit({
      action: "session.exported",
      who: "token",
      kind: "token",
      workspace: "acme",
      by,
      about: { sessions: ["S"] },
    });
  for (let times = 0; times < 5; times++) exported("one");
  exported("two");
  expect(written.map(({ by }) => by)).toEqual(["one", "one", "two"]);
  vi.setSystemTime(Date.now() + 1_000);
  exported("one");
  expect(written.slice(3)).toEqual([
    { action: "session.exported", who: "several", kind: "several", workspace: "-", about: { leftOut: 3 } },
    expect.objectContaining({ by: "one" }),
  ]);
});
