import { type Scenario, scenario, startedAt, writeTogether } from "@tapedeck/query/testing/scenario";
import { ulid, vagrantSession } from "@tapedeck/query/testing/vagrant-scenario";
import { sourceName } from "@tapedeck/shared/source";
import type { SeededStack } from "../stack/seeded-stack.ts";

const hour = 3_600_000;
const day = 24 * hour;

/** The first and last day of the data from `writeWeeks`, in UTC. */
export const weeks = { from: dayOf(0), to: dayOf(17) };

function dayOf(index: number): string {
  return new Date(startedAt + index * day).toISOString().slice(0, 10);
}

/** More causes than a chart names. */
const codes = [
  "UNKNOWN",
  "PUSH_ACCESS_DENIED",
  "DOCKER_DAEMON_NOT_RUNNING",
  "CANCELLED",
  "DOCKERFILE_NOT_FOUND",
] as const;
const more = ["REGISTRY_GET_DIGEST_ERR", "BUILDPACKS_ERR", "JIB_GRADLE_DEP_NOT_FOUND"] as const;

/**
 * Writes working days of three developers whose loops differ in length and success, of one with Vagrant, and of one whose
 * Skaffold reports no loops.
 */
export async function writeWeeks(on: SeededStack): Promise<void> {
  const all = ["alice", "bob", "carol"].map((developer, index) => worked(developer, index));
  for (const { events } of [...all, vagrantWeeks(), withoutLoops()]) await writeTogether(on.log, events, 64);
  await on.stack.caughtUp();
}

function worked(developer: string, index: number): Scenario {
  const upstream = {
    workspace: "acme",
    developer,
    project: index === 2 ? "site" : "shop",
    upstream: "skaffold",
  } as const;
  const own = scenario(sourceName(upstream));
  for (let date = 0; date < 18; date++) {
    // Friday is the first day; there is no work at weekends, and none by Carol in the first week.
    if ([1, 2, 8, 9, 15, 16].includes(date) || (index === 2 && date < 5)) continue;
    const session = own.session(`0${developer.toUpperCase().replaceAll(/[ILOU]/g, "X")}${date}`);
    session.started({ branch: date % 3 === 0 ? "main" : "feature" }, date * day + index * 1_000);
    session.configured();
    for (let number = 0; number < 5 + index; number++)
      oneLoop(session, date * day + (number + 1) * 50 * 60_000, date, number, index);
    session.ended("process ended");
  }
  return own;
}

type Session = ReturnType<Scenario["session"]>;

function oneLoop(session: Session, began: number, date: number, number: number, index: number): void {
  const slow = 2_000 + date * 260 + number * 700 * (index + 1);
  const seed = date * 7 + number * 3 + index;
  const isBadBuild = seed % 11 === 0 || (date === 6 && number < 3);
  session.loopStarted(began);
  session.build("web", "started", began + 10);
  session.build("shop/api-with-a-long-name", "started", began + 20);
  session.build("shop/api-with-a-long-name", "succeeded", began + slow / 3);
  if (isBadBuild) {
    const code = [...codes, ...more][(seed + number) % (codes.length + more.length)];
    const error = { code: `BUILD_${code}`, message: `web does not build: ${code?.toLowerCase()}` };
    session.build("web", "failed", began + slow / 2, { error });
    return void session.loopEnded("failed", began + slow / 2 + 5);
  }
  session.build("web", "succeeded", began + slow / 2);
  session.phase("deploy", "started", began + slow / 2 + 5);
  session.phase("deploy", "succeeded", began + slow * 0.7);
  session.phase("check", "started", began + slow * 0.7 + 5);
  const isBadCheck = seed % 17 === 3;
  session.phase("check", isBadCheck ? "failed" : "succeeded", began + slow);
  session.loopEnded(isBadCheck ? "failed" : "succeeded", began + slow + 10);
  if (seed % 5 !== 0) return;
  // Another change came before that loop was ready.
  session.loopStarted(began + slow + 100);
  session.build("web", "started", began + slow + 110);
  session.build("web", "succeeded", began + slow + 1_900);
  session.loopEnded("succeeded", began + slow + 2_000);
}

function vagrantWeeks(): Scenario {
  const source = { workspace: "acme", developer: "dana", project: "machines", upstream: "vagrant" } as const;
  const own = scenario(sourceName(source));
  const server = vagrantSession("0VAGRANT", own);
  server.began();
  for (let index = 0; index < 6; index++) {
    const at = index * 2 * day + hour;
    server.queued(ulid(index), index % 3 === 2 ? "provision" : "up", { at });
    server.started(ulid(index), { at: at + 500 });
    server.finished(ulid(index), index === 4 ? 1 : undefined, { at: at + 60_000 + index * 9_000 });
  }
  return own;
}

/** Each day three rounds of builds, as a Skaffold before v1 reports them: the second fails, and the third does not. */
function withoutLoops(): Scenario {
  const source = { workspace: "acme", developer: "erin", project: "old", upstream: "skaffold" } as const;
  const own = scenario(sourceName(source));
  for (let date = 3; date < 6; date++) {
    const session = own.session(`0ERXN${date}`);
    session.started({ branch: "main" }, date * day);
    session.configured();
    for (const [round, outcome] of (["succeeded", "failed", "succeeded"] as const).entries()) {
      const began = date * day + round * 600_000 + 60_000;
      session.build("legacy", "started", began);
      session.build("legacy", outcome, began + 3_000 + round * 500);
    }
    session.ended();
  }
  return own;
}
