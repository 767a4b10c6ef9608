import { type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Random } from "./random-scenario.ts";
import { type RktSession, uuid } from "./rkt-scenario.ts";
import type { Scenario } from "./scenario.ts";

/** Adds about `size` events: pods and images that come and go, with many descriptions between. */
export function randomHost(random: Random, script: Scenario, host: RktSession, size: number): void {
  const end = script.events.length + size;
  let next = 1;
  host.imported({ id: "sha512-0", name: "example.com/stage1" });
  host.described("images");
  host.described("pods");
  while (script.events.length < end) {
    const all = [...host.pods.values()];
    const pod = all[random(all.length)];
    const step = random(12);
    if (pod === undefined || (step < 2 && all.length < 60)) {
      host.prepared(uuid(next), ["web", "odd\0app", "n".repeat(600)].slice(0, 1 + random(3)));
      next += 1;
    } else if (step === 2) {
      host.imported({ id: `sha512-${random(20)}`, name: "example.com/web", size: BigInt(random(9_000)) });
    } else if (step === 3 && host.images.size > 0) {
      host.imageRemoved([...host.images.keys()][random(host.images.size)] ?? "");
    } else if (step === 4 && random(4) === 0) {
      host.described("pods", 1 + random(3), () => host.imported({ id: `sha512-${random(20)}` }));
    } else if (step === 5) {
      host.text(pod.id, "hello\n");
    } else {
      randomPodStep(random, host, pod);
    }
  }
}

function randomPodStep(random: Random, host: RktSession, { id, state, apps }: Pod): void {
  const app = apps[random(apps.length)]?.name ?? "web";
  const chance = random(8);
  if (state === PodState.POD_STATE_PREPARED) {
    if (chance === 0) host.removed(id);
    else if (chance === 1) host.failed(id);
    else host.started(id);
  } else if (state === PodState.POD_STATE_RUNNING) {
    if (chance === 0) host.appExited(id, app, 1 + random(9));
    else if (chance === 1) host.appStarted(id, app);
    else if (chance === 2) host.appRemoved(id, app);
    else if (chance === 3) host.removed(id);
    else host.exited(id, [random(3), 0, 0].slice(0, apps.length));
  } else if (state === PodState.POD_STATE_EXITED && chance === 7) host.contradicted(id);
  else if (state === PodState.POD_STATE_EXITED && chance > 2) host.marked(id);
  else if (state === PodState.POD_STATE_GARBAGE && chance > 2) host.deleting(id);
  else host.removed(id);
}
