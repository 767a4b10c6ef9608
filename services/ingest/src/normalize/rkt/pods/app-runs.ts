import type { App } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Times } from "../../inventory/inventory-rules.ts";
import type { PodChange } from "./pod-change.ts";

type Change = Omit<PodChange, keyof Times>;

export type AppExit = {
  readonly app: App;
  /** Undefined: certainly unknown. 0: zero, or not known. */
  readonly code: number | undefined;
  /** The app was removed from a pod that keeps running. */
  readonly removed: boolean;
};

/**
 * Apps that were started since: all apps of a pod that was not known to run. rkt reports no starts in a pod that was; a new
 * name, or an exit code that is gone or has changed, can only mean a start.
 */
export function startedApps({ last, before, now }: Change): readonly App[] {
  if (last !== "RUNNING") return now.apps;
  const known = byName(before?.apps);
  return now.apps.filter(({ name, exit_code }) => {
    const code = known.get(name)?.exit_code;
    return code === undefined || (code !== 0 && code !== exit_code);
  });
}

/**
 * Apps whose exit is not recorded yet. An app of a running pod with a code is recorded; code 0 means nothing while the pod
 * runs. In the order of the pod's apps, then those that are not in it any more.
 */
export function exitedApps({ last, before, to, now }: Change): readonly AppExit[] {
  const running = last === "RUNNING" ? (before?.apps ?? []) : [];
  const reported = byName(running.filter(({ exit_code }) => exit_code !== 0));
  if (to === "UNDEFINED" || to === "absent") {
    // Such a pod has no codes any more, and maybe no apps.
    const apps = before !== undefined && before.apps.length > 0 ? before.apps : now.apps;
    return apps.filter(({ name }) => !reported.has(name)).map((app) => ({ app, code: undefined, removed: false }));
  }
  const listed = byName(now.apps);
  const exits = now.apps.filter(({ name, exit_code }) => {
    const code = reported.get(name)?.exit_code;
    return exit_code === 0 ? to !== "RUNNING" && code === undefined : exit_code !== code;
  });
  const removed = running.filter(({ name, exit_code }) => exit_code === 0 && !listed.has(name));
  return [
    ...exits.map((app) => ({ app, code: app.exit_code, removed: false })),
    ...removed.map((app) => ({ app, code: undefined, removed: true })),
  ];
}

function byName(apps: readonly App[] = []): ReadonlyMap<string, App> {
  return new Map(apps.map((app) => [app.name, app]));
}
