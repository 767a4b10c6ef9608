import { it } from "vitest";
import { killsLeaveNoTrace } from "./kills.ts";

it("killing any part at random moments changes neither the log, the tables nor what subscribers receive", async () => {
  await killsLeaveNoTrace({
    recordings: ["01-dev-success-3-artifacts-5-iterations", "10-status-check-port-forward-sync-app-logs"],
    speed: 4,
    killsOfEach: 1,
  });
}, 600_000);
