import { it } from "vitest";
import { rktKillsLeaveNoTrace } from "./kills.ts";

it("killing ingest between any polls of a rkt host changes nothing that is recorded", async () => {
  await rktKillsLeaveNoTrace({
    faults: ["answered", "hanging", "asked", "log", "both", "stopped"],
  });
}, 600_000);
