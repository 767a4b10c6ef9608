import {
  AppState,
  GetInfoResponse,
  GetLogsResponse,
  Image,
  ImageType,
  ListImagesResponse,
  ListPodsResponse,
  Pod,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { uuid } from "@tapedeck/query/testing/rkt-scenario";
import type { Recording } from "./recording.ts";

export type StoredImage = {
  readonly name: string;
  readonly version: string;
  /** Distinguishes its content from another image of this name and version. */
  readonly content?: string;
  readonly arch?: string;
};

export type PodSetup = {
  readonly apps: Readonly<Record<string, StoredImage>>;
  /** Name and address. */
  readonly network?: readonly [string, string];
  /** Appended to the name of each program. */
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Such as "512M". */
  readonly memory?: string;
  readonly volumes?: readonly { readonly name: string; readonly source: string; readonly path: string }[];
};

let pods = 0;

/** A host whose API service is polled. */
export function rktHost(recording: Recording, { version = "1.30.0" } = {}) {
  const session = recording.begin({}, version);
  const present = new Map<string, Pod>();
  const info = {
    rkt_version: version,
    appc_version: "0.8.11",
    api_version: "1.0.0-alpha",
    global_flags: {
      dir: "/var/lib/rkt",
      system_config_dir: "/usr/lib/rkt",
      local_config_dir: "/etc/rkt",
      insecure_flags: "none",
    },
  };
  session.described("info", GetInfoResponse.encode(GetInfoResponse.fromPartial({ info })).finish());
  const poll = () => {
    recording.pass(1_000);
    const listed = [...present.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const value = Buffer.from(ListPodsResponse.encode({ pods: listed }).finish());
    session.observe("pods", { $case: "all", value });
  };
  const nanos = () => {
    const { seconds, nanos: rest } = recording.now();
    return seconds * 1_000_000_000n + BigInt(rest);
  };
  const change = (id: string, changed: (pod: Pod) => Partial<Pod>) => {
    const pod = present.get(id) ?? Pod.fromPartial({ id, pid: -1 });
    present.set(id, { ...pod, ...changed(pod) });
    poll();
  };

  return {
    poll,
    images(...images: readonly StoredImage[]) {
      const listed = images.map((image) =>
        Image.fromPartial({
          base_format: { type: ImageType.IMAGE_TYPE_APPC, version: "0.8.11" },
          id: idOf(image),
          name: image.name,
          version: image.version,
          size: 48_000_000n,
          import_timestamp: 1_795_000_000n,
          labels: [
            { Key: "version", value: image.version },
            { Key: "os", value: "linux" },
            { Key: "arch", value: image.arch ?? "amd64" },
          ],
        }),
      );
      const value = Buffer.from(ListImagesResponse.encode({ images: listed }).finish());
      session.observe("images", { $case: "all", value });
    },
    /** `rkt prepare`; returns the pod's id. */
    prepared({ apps, args = [], environment = {}, memory, volumes = [] }: PodSetup): string {
      pods += 1;
      const id = uuid(pods);
      const manifest = {
        acVersion: "0.8.11",
        acKind: "PodManifest",
        apps: Object.entries(apps).map(([name, image]) => ({
          name,
          image: { name: image.name, id: idOf(image), labels: [{ name: "version", value: image.version }] },
          app: {
            exec: [`/bin/${name}`, ...args],
            user: "0",
            group: "0",
            environment: Object.entries(environment).map(([variable, value]) => ({ name: variable, value })),
            isolators: memory ? [{ name: "resource/memory", value: { limit: memory } }] : [],
          },
          mounts: volumes.map(({ name: volume, path }) => ({ volume, path })),
        })),
        volumes: volumes.map(({ name, source }) => ({ name, kind: "host", source, readOnly: false })),
      };
      change(id, () => ({
        state: PodState.POD_STATE_PREPARED,
        created_at: nanos(),
        manifest: Buffer.from(JSON.stringify(manifest)),
        apps: Object.entries(apps).map(([name, image]) => ({
          name,
          state: AppState.APP_STATE_UNDEFINED,
          exit_code: 0,
          annotations: [],
          image: Image.fromPartial({ id: idOf(image), name: image.name, version: image.version }),
        })),
      }));
      return id;
    },
    /** Prepares and runs a pod; returns its id. */
    running(setup: PodSetup): string {
      const id = this.prepared(setup);
      const [name, ipv4] = setup.network ?? ["default", "172.16.28.7"];
      change(id, ({ apps }) => ({
        state: PodState.POD_STATE_RUNNING,
        pid: 4_000 + pods,
        cgroup: `/machine.slice/machine-rkt-${id}.scope`,
        started_at: nanos(),
        networks: [{ name, ipv4, ipv6: "" }],
        apps: apps.map((app) => ({ ...app, state: AppState.APP_STATE_RUNNING })),
      }));
      return id;
    },
    /** The pod ended: with these exit codes of its apps, 0 for the others. */
    exited(id: string, codes: Readonly<Record<string, number>> = {}) {
      change(id, ({ apps }) => ({
        state: PodState.POD_STATE_EXITED,
        cgroup: "",
        apps: apps.map((app) => ({ ...app, state: AppState.APP_STATE_EXITED, exit_code: codes[app.name] ?? 0 })),
      }));
    },
    /** `rkt rm`. */
    removed(id: string) {
      present.delete(id);
      poll();
      poll();
    },
    log(pod: string, app: string, lines: readonly string[]) {
      const { seconds } = recording.now();
      const time = new Date(Number(seconds) * 1_000).toISOString().replace("T", " ").replace("Z", " +0000 UTC");
      const value = {
        pod,
        app,
        reopened: false,
        bytes: Buffer.from(GetLogsResponse.encode({ lines: lines.map((line) => `${time} MESSAGE=${line}`) }).finish()),
      };
      session.observe("logs", { $case: "text", value });
    },
  };
}

/** Returns an id as long as a hash, unique for each content. */
function idOf({ name, version, content = "" }: StoredImage): string {
  return `sha512-${Buffer.from(`${content}/${version}/${name}`).toString("hex").padEnd(64, "0").slice(0, 64)}`;
}
