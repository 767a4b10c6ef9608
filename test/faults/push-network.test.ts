import { it } from "vitest";
import { comesAndGoes } from "./push-network.ts";

it("an unreliable network between a laptop and a team's Tapedeck changes nothing in the log", async () => {
  const recording = "10-status-check-port-forward-sync-app-logs";
  await comesAndGoes({ recording, faults: 6, kills: 1, isCompared: false });
}, 600_000);
