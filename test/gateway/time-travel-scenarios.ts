import type { Operation_PhysicalState } from "@tapedeck/proto/vagrant/vagrant";
import { rktHost, rktSession, uuid } from "@tapedeck/query/testing/rkt-scenario";
import { type Scenario, scenario, shop } from "@tapedeck/query/testing/scenario";
import { ulid, vagrantSession, vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";

export const pod = uuid(1);
export const job = ulid(1);

/** What sessions begin with in each workspace. All other names and ids are the same. */
export const workspaces = { acme: "01", globex: "02" } as const;
export type Workspace = keyof typeof workspaces;

/** The source of the same name in that workspace. */
export const sourceIn = (workspace: Workspace, source: SourceName): SourceName =>
  sourceName({ ...sourceParts(source), workspace });

/** What was before, in so many events, and three chapters for each upstream: the beginning, a change, and the present state. */
export function chapters(workspace: Workspace, earlier: number): readonly (readonly Scenario["events"][])[] {
  const early = scenario(sourceName({ workspace, developer: "bob", project: "shop", upstream: "skaffold" }));
  for (let left = earlier; left > 0; left -= 1) early.add({ kind: "source.added" });
  const own = (source: SourceName) => scenario(sourceIn(workspace, source));
  const id = (name: string) => `${workspaces[workspace]}${name}`;
  const scripts = [own(shop), own(rktHost), own(vagrantShop)] as const;
  const [loops, host, server] = scripts;
  const skaffold = loops.session(id("S1"));
  const rkt = rktSession(id("R1"), host);
  const vagrant = vagrantSession(id("V1"), server);
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
  const again = loops.session(id("S2"));
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
