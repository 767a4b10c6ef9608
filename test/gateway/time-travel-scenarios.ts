import type { Operation_PhysicalState } from "@tapedeck/proto/vagrant/vagrant";
import { rktHost, rktSession, uuid } from "@tapedeck/query/testing/rkt-scenario";
import { type Scenario, scenario, shop } from "@tapedeck/query/testing/scenario";
import { ulid, vagrantSession, vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { sourceName } from "@tapedeck/shared/source";

export const pod = uuid(1);
export const job = ulid(1);

/** Three chapters for each upstream: the beginning, a change, and the present state. */
export function chapters(): readonly (readonly Scenario["events"][])[] {
  const early = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" }));
  early.add({ kind: "source.added" });
  const scripts = [scenario(shop), scenario(rktHost), scenario(vagrantShop)] as const;
  const [loops, host, server] = scripts;
  const skaffold = loops.session("01S1");
  const rkt = rktSession("01R1", host);
  const vagrant = vagrantSession("01V1", server);
  const written = new Map<Scenario, number>();
  const chapter = () =>
    scripts.map((script) => {
      const fresh = script.events.slice(written.get(script) ?? 0);
      written.set(script, script.events.length);
      return fresh;
    });
  const reportResources = (number: 1 | 2 | 3) => {
    const version = `1.${number}.0`;
    vagrant.reported("basis", "basis-1", { name: "default", path: `/b${number}` });
    vagrant.reported("project", "project-1", { name: "shop", path: `/p${number}` });
    vagrant.reported("target", "target-1", {
      name: `web${number}`,
      uuid: "4f5a",
      state: number as Operation_PhysicalState,
    });
    vagrant.reported("box", "box-1", { name: "debian", version, provider: "virtualbox" });
    vagrant.reported("runner", "runner-1", { components: [{ name: `runner ${number}` }] });
  };

  skaffold.started();
  skaffold.configured();
  skaffold.loopStarted();
  skaffold.build("web", "started");
  skaffold.mirrored("web", "InProgress");
  rkt.began("/one");
  rkt.imported({ id: "sha512-1", name: "example.com/web", size: 1n });
  rkt.prepared(pod, ["web"]);
  vagrant.began("2.3.1");
  reportResources(1);
  vagrant.queued(job);
  const first = chapter();

  skaffold.build("web", "succeeded");
  skaffold.mirrored("web", "Succeeded");
  rkt.began("/two");
  rkt.imported({ id: "sha512-1", size: 2n });
  rkt.started(pod);
  vagrant.began("2.3.2");
  reportResources(2);
  vagrant.assigned(job);
  const second = chapter();

  skaffold.ended();
  const again = loops.session("01S2");
  again.started();
  again.configured();
  again.loopStarted();
  again.build("web", "canceled");
  again.mirrored("web", "Canceled");
  rkt.began("/three");
  rkt.imported({ id: "sha512-1", size: 3n });
  rkt.exited(pod, [0]);
  vagrant.began("2.3.3");
  reportResources(3);
  vagrant.started(job);
  return [[early.events], first, second, chapter()];
}
