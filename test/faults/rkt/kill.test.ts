import { test } from "vitest";
import { rktKillsLeaveNoTrace } from "./kills.ts";

test("killing ingest between any polls of a rkt host changes nothing that is recorded", async () => {
  await rktKillsLeaveNoTrace({
    faults: ["answered", "hanging", "asked", "log", "both", "stopped"],
  });
}, 600_000);
