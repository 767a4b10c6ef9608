import { type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";

/** The output of one app, or (app "") of everything in the pod. */
export type AppOutput = {
  readonly pod: string;
  readonly app: string;
  /** The latest second of a line that was emitted. */
  second: bigint;
  wasOpened: boolean;
  /** The pod has ended and its whole output was received. */
  isFinished: boolean;
  /** When the pod was missing for the first time since it was listed, in ms of `performance.now()`. */
  missingSince: number | undefined;
};

/** A host's output so far, over all connections to it. */
export class HostOutput {
  readonly texts = new Map<string, AppOutput>();
  #states: ReadonlyMap<string, PodState> | undefined;

  /** Takes a list of pods, and adds the texts of those whose output must be followed. */
  update(pods: readonly Pod[]): void {
    for (const pod of pods) if (this.#mustFollow(pod)) this.#addTexts(pod);
    this.#states = new Map(pods.map(({ id, state }) => [id, state]));
  }

  /**
   * The second from which a text is read. An app's stream goes back at least as far as its pod's, so that every line
   * of an app that the pod repeats can be matched.
   */
  since({ pod, app, second }: AppOutput): bigint {
    const ofPod = app === "" ? second : (this.texts.get(textKey(pod, ""))?.second ?? 0n);
    return ofPod < second ? ofPod : second;
  }

  /** True for pods that run, and for pods that ran and ended between two lists. Those that ended before the first are history. */
  #mustFollow({ id, state }: Pod): boolean {
    if (state === PodState.POD_STATE_RUNNING) return true;
    if (this.#states === undefined || !endStates.has(state)) return false;
    return !endStates.has(this.#states.get(id) ?? PodState.POD_STATE_UNDEFINED);
  }

  #addTexts({ id: pod, apps }: Pod): void {
    for (const app of [...apps.map(({ name }) => name), ""]) {
      const key = textKey(pod, app);
      const known = this.texts.get(key);
      if (known !== undefined) known.isFinished = false;
      else this.texts.set(key, { pod, app, second: 0n, wasOpened: false, isFinished: false, missingSince: undefined });
    }
  }
}

const endStates: ReadonlySet<PodState> = new Set([PodState.POD_STATE_EXITED, PodState.POD_STATE_GARBAGE]);

function textKey(pod: string, app: string): string {
  return `${pod}/${app}`;
}
