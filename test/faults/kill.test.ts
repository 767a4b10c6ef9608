import { test } from "vitest";
import { killsLeaveNoTrace } from "./kills.ts";

test("kill -9 of any part at random moments changes neither log, tables nor what subscribers see", async () => {
  await killsLeaveNoTrace({
    recordings: ["01-dev-success-3-artifacts-5-iterations", "10-status-check-port-forward-sync-app-logs"],
    speed: 4,
    killsOfEach: 1,
  });
}, 300_000);
