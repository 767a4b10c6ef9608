import { type App, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";

/**
 * The known state of a pod after it was listed. rkt reads a pod's files one by one while the pod is moved and cleaned
 * up around it (docs/upstreams/rkt.md#races), so an answer can lack what an earlier one had; that must not undo it:
 *
 * - times, pid, and an app's image name stay as known where the answer has none;
 * - a non-zero exit code stays once the pod has ended (while it runs, zero means that the app was started again);
 * - exit code -1 says that it could not be read: it counts as the one known, else as 0, "zero or not known".
 *
 * A pod that is being deleted is taken as listed: rkt reports next to nothing of it, and neither do recordings.
 * `before` is undefined for a pod that was not there. Pure; neither argument is changed.
 */
export function acceptPod(before: Pod | undefined, listed: Pod): Pod {
  if (isDeleted(listed)) return listed;
  const ended = hasEnded(listed);
  const knownApps = new Map(before?.apps.map((app) => [app.name, app]));
  const apps = listed.apps.map((app) => acceptApp(knownApps.get(app.name), app, ended));
  if (before === undefined || !hasRun(listed)) return { ...listed, apps };
  return {
    ...listed,
    apps,
    pid: listed.pid > 0 ? listed.pid : before.pid > 0 ? before.pid : listed.pid,
    created_at: listed.created_at || before.created_at,
    started_at: listed.started_at || before.started_at,
  };
}

/** The pod ran and has stopped: EXITED, GARBAGE. */
export function hasEnded({ state }: Pod): boolean {
  return state === PodState.POD_STATE_EXITED || state === PodState.POD_STATE_GARBAGE;
}

/** The pod is being deleted; rkt answers UNDEFINED, although it has a name for that state. */
export function isDeleted({ state }: Pod): boolean {
  return state === PodState.POD_STATE_UNDEFINED || state === PodState.POD_STATE_DELETING;
}

function hasRun(pod: Pod): boolean {
  return pod.state === PodState.POD_STATE_RUNNING || hasEnded(pod);
}

function acceptApp(known: App | undefined, listed: App, ended: boolean): App {
  return { ...listed, ...acceptImage(known, listed), exit_code: acceptExitCode(known?.exit_code ?? 0, listed, ended) };
}

function acceptExitCode(known: number, { exit_code }: App, ended: boolean): number {
  if (exit_code === -1) return known;
  return exit_code === 0 && ended ? known : exit_code;
}

function acceptImage(known: App | undefined, { image }: App): Pick<App, "image"> {
  if (known?.image === undefined || image?.name) return image === undefined ? {} : { image };
  return {
    image: { ...known.image, ...image, name: known.image.name, version: image?.version || known.image.version },
  };
}
