import type { VagrantHarness } from "../../harness/vagrant-harness.ts";

/**
 * The faults, each on all fake servers at once; `steps` makes more happen in between:
 *
 * - answered: ingest is killed right after some steps, with their events perhaps in the log, perhaps not;
 * - hanging: ingest is killed when all that happened is in the log;
 * - away: ingest is killed, and comes back some steps later;
 * - stopped: ingest is ended by SIGTERM right after some steps;
 * - cut: the network is away for some steps;
 * - gateway: the gateway is killed, and comes back some steps later;
 * - log: NATS is killed, and comes back some steps later;
 * - both: NATS is killed, some steps are done, and ingest is killed before NATS is back.
 */
export const faults = ["answered", "hanging", "away", "stopped", "cut", "gateway", "log", "both"] as const;
export type Fault = (typeof faults)[number];

export async function strike(fault: Fault, harness: VagrantHarness, steps: () => void): Promise<void> {
  const { ingest, gateway, nats, hosts } = harness;
  switch (fault) {
    case "answered":
    case "stopped":
      steps();
      await turn();
      await ingest.kill(fault === "answered" ? "SIGKILL" : "SIGTERM");
      return await ingest.start();
    case "hanging":
      await harness.recorded();
      await ingest.kill();
      return await ingest.start();
    case "away":
      await ingest.kill();
      steps();
      return await ingest.start();
    case "cut":
      await Promise.all(hosts.map(({ fake }) => fake.cut()));
      steps();
      await Promise.all(hosts.map(({ fake }) => fake.mend()));
      return;
    case "gateway":
      await gateway.kill();
      steps();
      return await gateway.start();
    case "log":
      await nats.kill();
      steps();
      await nats.restart();
      return await harness.recorded();
    case "both":
      await nats.kill();
      steps();
      await turn();
      await ingest.kill();
      await nats.restart();
      return await ingest.start();
  }
}

/** Gives pending waits a chance to finish. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
