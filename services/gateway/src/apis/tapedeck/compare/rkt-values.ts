import { at, entries, type Json, list, text, words } from "./json-values.ts";

type Values = ReadonlyMap<string, string>;
type RktValues = { readonly resources: Values; readonly settings: Values };

/** An app, and the pod that it is in. */
type App = { readonly name: string; readonly app: Json; readonly pod: Json; readonly manifest: Json };

/** Apps by name, of the newest pod that has one of the name; images that they use, and others in the store. */
export function rktValues(state: Json, manifests: ReadonlyMap<string, Json>): RktValues {
  const pods = list(at(state, "pods")).toSorted((a, b) => createdAt(a) - createdAt(b));
  const apps = pods.flatMap((pod) => {
    const manifest = manifests.get(text(at(pod, "id")));
    return list(at(pod, "apps")).map((app): App => ({ name: text(at(app, "name")), app, pod, manifest }));
  });
  const newest = [...new Map(apps.map((one) => [one.name, one])).values()];
  const info = entries(at(state, "info")).filter(([name]) => /version$/i.test(name));
  return {
    resources: new Map(newest.map((one) => [one.name, statusOf(one)])),
    settings: new Map([
      ...imageSettings(list(at(state, "images")), newest),
      ...newest.flatMap(networkSetting),
      ...newest.flatMap(manifestSettings),
      ...info.map(([name, value]) => [`host.${name}`, text(value)] as const),
    ]),
  };
}

type Setting = readonly [name: string, value: string];

/** Nanoseconds since 1970; what is lost of them as a number does not count. */
function createdAt(pod: Json): number {
  return Number(text(at(pod, "created_at")) || "0");
}

/** Apps of a pod that has not run have no state. */
function statusOf({ app, pod }: App): string {
  const own = words(text(at(app, "state")).replace(/^APP_STATE_/, ""));
  const code = Number(text(at(app, "exit_code")) || "0");
  if (own === "exited") return `exited ${code}`;
  const isUnknown = own === "" || own === "undefined";
  return isUnknown ? words(text(at(pod, "state")).replace(/^POD_STATE_/, "")) : own;
}

/** The store may have several versions of an image; that of a running app counts. */
function imageSettings(images: readonly Json[], apps: readonly App[]): readonly Setting[] {
  const stored = images.map((image): Setting => [`image.${text(at(image, "name"))}`, text(at(image, "version"))]);
  const used = apps.flatMap(({ app }): readonly Setting[] => {
    const [name, version, id] = ["name", "version", "id"].map((field) => text(at(app, "image", field)));
    if (!name || !version) return [];
    // The ids may be of different lengths.
    const image = images.find(
      (one) => id && (text(at(one, "id")).startsWith(id) || id.startsWith(text(at(one, "id")))),
    );
    const arch = list(at(image, "labels")).find((label) => text(at(label, "Key")) === "arch");
    return [
      [`image.${name}`, version],
      ...(id ? [[`content.${name}`, id.slice(0, longestId)] as const] : []),
      ...(arch === undefined ? [] : [[`arch.${name}`, text(at(arch, "value"))] as const]),
    ];
  });
  return [...stored, ...used];
}

/** "sha512-" and enough digits to distinguish two images. */
const longestId = 19;

/** The names of its networks: addresses are others in each pod. */
function networkSetting({ name, pod }: App): readonly Setting[] {
  const networks = list(at(pod, "networks")).map((network) => text(at(network, "name")));
  return networks.length === 0 ? [] : [[`network.${name}`, networks.toSorted().join(", ")]];
}

/** How the app was asked to run: its program, environment, mounts and limits. */
function manifestSettings({ name, manifest }: App): readonly Setting[] {
  const own = list(at(manifest, "apps")).find((one) => text(at(one, "name")) === name);
  const volumes = new Map(list(at(manifest, "volumes")).map((volume) => [text(at(volume, "name")), volume]));
  const exec = list(at(own, "app", "exec"))
    .map(text)
    .join(" ");
  const mounts = [...list(at(own, "mounts")), ...list(at(own, "app", "mountPoints"))].flatMap((mount): Setting[] => {
    const volume = volumes.get(text(at(mount, "volume")) || text(at(mount, "name")));
    if (volume === undefined) return [];
    return [[`mount.${name}.${text(at(mount, "path"))}`, text(at(volume, "source")) || text(at(volume, "kind"))]];
  });
  return [
    ...(exec === "" ? [] : [[`exec.${name}`, exec] as const]),
    ...list(at(own, "app", "environment")).map(
      (one) => [`env.${name}.${text(at(one, "name"))}`, text(at(one, "value"))] as const,
    ),
    ...mounts,
    ...list(at(own, "app", "isolators")).map(
      (one) => [`limit.${name}.${text(at(one, "name"))}`, JSON.stringify(at(one, "value"))] as const,
    ),
  ];
}
