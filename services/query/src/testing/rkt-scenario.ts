import {
  AppState,
  type DeepPartial,
  GetInfoResponse,
  Image,
  ListImagesResponse,
  ListPodsResponse,
  Pod,
  PodState,
  podStateToJSON,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { type AppDetail, Outcome, type PodDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { sourceName } from "@tapedeck/shared/source";
import { type Fields, type Scenario, startedAt } from "./scenario.ts";
import { describeInParts, type Fact, framesOf, original, type When } from "./session-frames.ts";

export const rktHost = sourceName({ workspace: "acme", developer: "node1", project: "host", upstream: "rkt" });

/** The events of a rkt host. `at`: milliseconds since the scenario's start. */
export function rktSession(session: string, { add }: Pick<Scenario, "add">) {
  const pods = new Map<string, Pod>();
  const images = new Map<string, Image>();
  /** Pods whose collection was recorded. */
  const collected = new Set<string>();

  const frame = framesOf(session, { add });
  const known = (id: string): Pod => pods.get(id) ?? Pod.fromPartial({ id, pid: -1 });
  const of = (kind: string, pod: Pod, value: DeepPartial<PodDetail> = {}, more: Fields = {}): Fact => ({
    kind,
    subject: pod.id,
    operation: runOf(kind, pod.id),
    detail: { $case: "pod", value: { pod: pod.id, state: podStateToJSON(pod.state).slice(10), ...value } },
    ...more,
  });
  const ofApp = (kind: string, pod: Pod, app: string, value: DeepPartial<AppDetail> = {}, more: Fields = {}): Fact => ({
    kind,
    subject: `${pod.id}/${app}`,
    operation: runOf(kind, `${pod.id}/${app}`),
    detail: { $case: "app", value: { pod: pod.id, app, ...value } },
    ...more,
  });
  const exit = (pod: Pod, app: string, exit_code: number | undefined): Fact => {
    const value = exit_code === undefined ? {} : { exit_code };
    if (!exit_code) return ofApp("app.exited", pod, app, value, { outcome: Outcome.OUTCOME_UNKNOWN });
    const error = { code: String(exit_code), message: `exited with ${exit_code}` };
    return ofApp("app.exited", pod, app, value, { outcome: Outcome.OUTCOME_FAILED, error });
  };
  const exits = (pod: Pod, codes: readonly (number | undefined)[]): Fact[] => {
    const outcome = codes.some((code) => (code ?? 0) !== 0) ? Outcome.OUTCOME_FAILED : Outcome.OUTCOME_UNKNOWN;
    return [
      ...pod.apps.map(({ name }, index) => exit(pod, name, codes[index])),
      of("pod.exited", pod, { started: true }, { outcome }),
    ];
  };
  const observed = (changed: DeepPartial<Pod> & { readonly id: string }, facts: (pod: Pod) => Fact[], when: When) => {
    const pod = Pod.fromPartial({ ...known(changed.id), ...changed });
    pods.set(pod.id, pod);
    frame("pods", original("v1alpha.Pod", Pod.encode(pod).finish()), facts(pod), when);
  };

  return {
    session,
    pods: pods as ReadonlyMap<string, Pod>,
    images: images as ReadonlyMap<string, Image>,
    began(dir = "/var/lib/rkt") {
      add({ session, kind: "session.started", detail: { $case: "session_detail", value: { labels: { dir } } } });
      const info = GetInfoResponse.encode(GetInfoResponse.fromPartial({ info: { global_flags: { dir } } })).finish();
      add({
        session,
        kind: "session.described",
        detail: { $case: "session_detail", value: { states: { info: Buffer.from(info) } } },
      });
    },
    ended: (at?: number) => add({ session, kind: "session.ended" }, at),
    /** A description in parts; `between` runs after each part but the last. */
    described(channel: "pods" | "images", parts = 1, between: (part: number) => void = () => {}) {
      const all = channel === "pods" ? [...pods.values()] : [...images.values()];
      const originalOf = (part: number) => {
        const entries = all.filter((_, index) => index % parts === part);
        return channel === "pods"
          ? original(
              "v1alpha.ListPodsResponse",
              ListPodsResponse.encode(ListPodsResponse.fromPartial({ pods: entries as Pod[] })).finish(),
            )
          : original(
              "v1alpha.ListImagesResponse",
              ListImagesResponse.encode(ListImagesResponse.fromPartial({ images: entries as Image[] })).finish(),
            );
      };
      describeInParts(frame, channel, { parts, entries: all.length, originalOf, between });
    },
    /** A pod as it is listed, without a fact. */
    seen: (pod: DeepPartial<Pod> & { readonly id: string }, when: When = {}) =>
      observed(pod, (now) => [of("pod.changed", now)], when),
    prepared(id: string, apps: readonly string[], when: When = {}) {
      const listed = apps.map((name) => ({
        name,
        image: { id: `sha512-${name}`, name: `example.com/${name}`, version: "1.0.0" },
      }));
      const state = PodState.POD_STATE_PREPARED;
      const manifest = Buffer.from(JSON.stringify({ acKind: "PodManifest", apps }));
      const pod = { id, pid: -1, state, apps: listed, manifest, created_at: nanos(when.at ?? 0) };
      observed(pod, (now) => [of("pod.prepared", now)], when);
    },
    started(id: string, when: When = {}) {
      const running = {
        id,
        pid: 4_711,
        state: PodState.POD_STATE_RUNNING,
        apps: known(id).apps.map((app) => ({ ...app, state: AppState.APP_STATE_RUNNING })),
        networks: [{ name: "default", ipv4: "172.16.28.2" }],
        cgroup: `/machine.slice/${id}`,
        started_at: nanos(when.at ?? 0),
      };
      const facts = (pod: Pod) => [
        of("pod.started", pod),
        ...pod.apps.map(({ name }) => ofApp("app.started", pod, name)),
      ];
      observed(running, facts, when);
    },
    /** An app of a pod that keeps running. */
    appExited(id: string, app: string, exit_code: number, when: When = {}) {
      const apps = known(id).apps.map((one) => (one.name === app ? { ...one, exit_code } : one));
      observed({ id, apps }, (pod) => [exit(pod, app, exit_code)], when);
    },
    appStarted(id: string, app: string, when: When = {}) {
      const apps = known(id).apps.map((one) => (one.name === app ? { ...one, exit_code: 0 } : one));
      observed({ id, apps }, (pod) => [ofApp("app.started", pod, app, {}, { inferred: true })], when);
    },
    appRemoved(id: string, app: string, when: When = {}) {
      const apps = known(id).apps.filter(({ name }) => name !== app);
      const outcome = Outcome.OUTCOME_UNKNOWN;
      observed({ id, apps }, (pod) => [ofApp("app.exited", pod, app, { removed: true }, { outcome })], when);
    },
    exited(id: string, codes: readonly number[] = [], when: When = {}) {
      const apps = known(id).apps.map((app, index) => ({
        ...app,
        state: AppState.APP_STATE_EXITED,
        exit_code: codes[index] ?? 0,
      }));
      const over = { id, state: PodState.POD_STATE_EXITED, cgroup: "", apps };
      observed(over, (pod) => exits(pod, codes.length === 0 ? pod.apps.map(() => 0) : codes), when);
    },
    /** The pod ended before it started. */
    failed(id: string, when: When = {}) {
      const facts = (pod: Pod) => [of("pod.exited", pod, { started: false }, { outcome: Outcome.OUTCOME_UNKNOWN })];
      observed({ id, state: PodState.POD_STATE_EXITED }, facts, when);
    },
    /** The host keeps reporting the pod as running after its end was recorded. */
    contradicted(id: string, when: When = {}) {
      const apps = known(id).apps.map((app) => ({ ...app, state: AppState.APP_STATE_RUNNING, exit_code: 0 }));
      const running = { id, state: PodState.POD_STATE_RUNNING, cgroup: `/machine.slice/${id}`, apps };
      observed(running, (pod) => [of("pod.contradicted", pod)], when);
    },
    marked(id: string, when: When = {}) {
      collected.add(id);
      const garbage = { id, state: PodState.POD_STATE_GARBAGE, networks: [], gc_marked_at: nanos(when.at ?? 0) };
      observed(garbage, (pod) => [of("pod.collected", pod, { phase: "marked" })], when);
    },
    /** rkt reports almost nothing about such a pod. */
    deleting(id: string, when: When = {}) {
      const first = !collected.has(id);
      collected.add(id);
      const apps = known(id).apps.map(({ name, image }) => ({ name, ...(image && { image }) }));
      const almostNothing = Pod.fromPartial({ id, pid: -1, apps, manifest: known(id).manifest });
      const facts = (pod: Pod) => [first ? of("pod.collected", pod, { phase: "deleting" }) : of("pod.changed", pod)];
      observed(almostNothing, facts, when);
    },
    /** The item is no longer listed. */
    removed(id: string, when: When = {}) {
      const pod = known(id);
      pods.delete(id);
      const ran = pod.state === PodState.POD_STATE_RUNNING ? exits(pod, []) : [];
      const phase = pod.state === PodState.POD_STATE_PREPARED ? "never-ran" : "removed";
      const last = collected.has(id) ? of("pod.changed", pod, { removed: true }) : of("pod.collected", pod, { phase });
      frame("pods", undefined, [...ran, last], when);
    },
    imported(image: DeepPartial<Image> & { readonly id: string }, when: When = {}) {
      const kind = images.has(image.id) ? "image.changed" : "image.imported";
      const full = Image.fromPartial({ ...images.get(image.id), ...image });
      images.set(full.id, full);
      const detail = { $case: "image" as const, value: { image: full.id, name: full.name } };
      const listed = original("v1alpha.Image", Image.encode(full).finish());
      frame("images", listed, [{ kind, subject: full.id, detail }], when);
    },
    imageRemoved(id: string, when: When = {}) {
      images.delete(id);
      frame("images", undefined, [{ kind: "image.removed", subject: id }], when);
    },
    text: (id: string, line: string) =>
      add({
        session,
        channel: "logs",
        kind: "log.written",
        detail: { $case: "text", value: { text: line, pod: id } },
      }),
  };
}

export type RktSession = ReturnType<typeof rktSession>;

/** A pod's id. */
export function uuid(number: number): string {
  const hex = (number * 2_654_435_761).toString(16).padStart(12, "0").slice(-12);
  return `${hex.slice(4)}-0000-4000-8000-${hex}`;
}

function runOf(kind: string, subject: string): Fields["operation"] {
  const [noun = "", verb] = kind.split(".");
  return verb === "started" || verb === "exited" ? { kind: noun, subject, runner: 0, loop: 0 } : undefined;
}

function nanos(at: number): bigint {
  return BigInt(startedAt + at) * 1_000_000n;
}
