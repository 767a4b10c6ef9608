import {
  type Component_Type,
  type Job,
  Job_State,
  type Operation_PhysicalState,
} from "@tapedeck/proto/vagrant/vagrant";
import { resourceKinds } from "../views/vagrant/resources.ts";
import type { Random } from "./random-scenario.ts";
import type { Scenario } from "./scenario.ts";
import { ulid, type VagrantSession } from "./vagrant-scenario.ts";

/**
 * Adds about `size` events: jobs, and resources that come and go, with many descriptions between. The id of `firstJob` is
 * greater than those of all earlier sessions.
 */
export function randomServer(
  random: Random,
  script: Scenario,
  server: VagrantSession,
  { size, firstJob }: { readonly size: number; readonly firstJob: number },
): void {
  const end = script.events.length + size;
  let next = firstJob;
  server.there("basis", "basis-0", { name: "default" });
  server.there("project", "project-0", { name: "shop" });
  server.described();
  while (script.events.length < end) {
    const jobs = [...server.jobs.values()];
    // Most events are about the newest ones.
    const job = jobs[Math.max(0, jobs.length - 1 - random(5))];
    const step = random(12);
    if (job === undefined || step < 2) {
      server.queued(ulid(next), ["up", "up", "box add", "halt", ""][random(5)]);
      next += 1;
    } else if (step < 7) {
      randomJobStep(random, server, job);
    } else if (step === 7 && random(3) === 0) {
      server.described(1 + random(3), () => randomResource(random, server));
    } else if (step === 8) {
      server.text(job.id, "==> web1: Booting VM...");
    } else {
      randomResource(random, server);
    }
  }
}

function randomJobStep(random: Random, server: VagrantSession, { id, state }: Job): void {
  const chance = random(10);
  if (state === Job_State.SUCCESS || state === Job_State.ERROR) server.text(id, "late\n");
  else if (chance === 0) server.cancelRequested(id);
  else if (chance === 1) server.canceled(id);
  else if (chance === 2) server.lost(id);
  else if (state === Job_State.QUEUED) server.assigned(id);
  else if (state === Job_State.WAITING) server.started(id);
  else if (chance === 3) server.failed(id);
  else server.finished(id, [undefined, undefined, 0, 1, 127][random(5)]);
}

function randomResource(random: Random, server: VagrantSession): void {
  const kind = resourceKinds[random(resourceKinds.length)] ?? "target";
  const id = ["odd\0id", "n".repeat(600), `${kind}-${random(9)}`, `${kind}-${random(9)}`][random(4)] ?? "";
  const name = `${id} ${random(3)}`;
  if (random(4) === 0) {
    server.removed(kind, id);
  } else if (kind === "target") {
    server.reported(kind, id, { name, provider: "virtualbox", state: random(7) as Operation_PhysicalState });
  } else if (kind === "box") {
    server.reported(kind, id, { name, version: "1.0\0", provider: "virtualbox" });
  } else if (kind === "runner") {
    server.reported(kind, id, { by_id_only: true, components: [{ type: random(17) as Component_Type, name }] });
  } else {
    server.reported(kind, id, { name, path: `/home/alice/${name}` });
  }
}
