import { searched } from "@tapedeck/shared/testing/searches";
import { describe, it } from "vitest";
import { killsLeaveNoTrace } from "./kills.ts";

/** All that speak v2 and can't be hung by it; several at once, so that one kill hits each at a different moment. */
const rounds = [
  {
    recordings: [
      "01-dev-success-3-artifacts-5-iterations",
      "05-control-api-auto-off",
      "10-status-check-port-forward-sync-app-logs",
      "10b-first-status-check-times-out",
    ],
    speed: 0.5,
    killsOfEach: 10,
  },
  {
    recordings: ["04-deploy-failure-then-recovery", "08-handle-custom-events", "20-old-v1.39.18", "21-old-v0.40.0"],
    speed: 0.2,
    killsOfEach: 10,
  },
  // The events come as fast as possible, with kills at once and again and again.
  {
    recordings: ["05-control-api-auto-off", "10-status-check-port-forward-sync-app-logs"],
    speed: 8,
    killsOfEach: searched({ short: 4, long: 10 }),
  },
];

describe("many kills (SIGKILL) of any part at random moments", () => {
  it.each(searched({ short: rounds.slice(-1), long: rounds }))(
    "while $recordings are played at $speed",
    killsLeaveNoTrace,
  );
});
