import { test } from "vitest";
import { rktKillsLeaveNoTrace } from "./kills.ts";

test("kill -9 of ingest between any looks at a rkt host changes nothing that is recorded of it", async () => {
  await rktKillsLeaveNoTrace({
    faults: ["answered", "hanging", "asked", "log", "both", "stopped"],
  });
}, 300_000);
