import { at, entries, type Json, list, text, words } from "./json-values.ts";
import { rktValues } from "./rkt-values.ts";
import type { Found, FoundByName, SideSummary } from "./side-summary.ts";

type StateSummary = Pick<SideSummary, "settings" | "artifacts" | "resources" | "ports" | "debuggers">;

const nothing: StateSummary = {
  settings: new Map(),
  artifacts: undefined,
  resources: new Map(),
  ports: new Map(),
  debuggers: new Map(),
};

/**
 * The comparable parts of an upstream's own state. `configuredAt`: where its configuration was recorded. `manifests`:
 * of pods, by their id.
 */
export function stateSummary(
  upstream: string,
  state: Json,
  position: string,
  configuredAt: string,
  manifests: ReadonlyMap<string, Json> = new Map(),
): StateSummary {
  const found = (value: string): Found => ({ value, position });
  const configured = (value: string): Found => ({ value, position: configuredAt });
  switch (upstream) {
    case "skaffold":
      return skaffold(state, found, configured);
    case "vagrant":
      return { ...nothing, ...vagrant(state, found) };
    case "rkt":
      return { ...nothing, ...rkt(state, manifests, found) };
    default:
      return nothing;
  }
}

type Make = (value: string) => Found;

function skaffold(state: Json, found: Make, configured: Make): StateSummary {
  const [v1, v2] = [at(state, "v1"), at(state, "v2")];
  // The second API knows more. Older Skaffolds have only the first, and so have those whose second one broke.
  const either = (...path: string[]) => (entries(at(v2, ...path)).length > 0 ? at(v2, ...path) : at(v1, ...path));
  const artifacts = list(at(v2, "metadata", "build", "artifacts"));
  const builds = fields(either("buildState", "artifacts"));
  const names = artifacts.length > 0 ? artifacts.map((one) => text(at(one, "name"))) : [...builds.keys()];
  return {
    settings: new Map([...settings(v1, v2)].map(([name, value]) => [name, configured(value)])),
    artifacts: names.length === 0 ? undefined : named(new Map(names.map((name) => [name, "configured"])), configured),
    resources: named(fields(either("statusCheckState", "resources")), (status) => found(resourceWord(status))),
    ports: named(new Map(entries(either("forwardedPorts")).map(([, port]) => portOf(port))), found),
    debuggers: named(new Map(list(either("debuggingContainers")).map(debuggerOf)), found),
  };
}

function settings(v1: Json, v2: Json): ReadonlyMap<string, string> {
  const metadata = at(v2, "metadata") ?? at(v1, "metadata");
  if (metadata === undefined || metadata === null) return new Map();
  const values = new Map<string, string>();
  const add = (name: string, value: Json) => {
    if (text(value) !== "") values.set(name, text(value));
  };
  add("build.type", at(metadata, "build", "type"));
  for (const artifact of list(at(metadata, "build", "artifacts"))) {
    const name = text(at(artifact, "name"));
    for (const field of ["type", "context", "dockerfile"]) add(`build.${name}.${field}`, at(artifact, field));
  }
  add("deploy.cluster", at(metadata, "deploy", "cluster"));
  for (const one of list(at(metadata, "deploy", "deployers")))
    add(`deploy.${text(at(one, "type")).toLowerCase()}`, at(one, "count"));
  for (const one of list(at(metadata, "render", "Renderers")))
    add(`render.${text(at(one, "type")).toLowerCase()}`, at(one, "count"));
  for (const one of list(at(metadata, "test", "Testers")))
    add(`test.${text(at(one, "type")).toLowerCase()}`, at(one, "count"));
  // Which phases begin by themselves is set by the command line and by calls.
  add("build.automatic", at(v1, "buildState", "autoTrigger"));
  add("deploy.automatic", at(v1, "deployState", "autoTrigger"));
  add("sync.automatic", at(v1, "fileSyncState", "autoTrigger"));
  return values;
}

function resourceWord(status: string): string {
  return /^succeeded$/i.test(status) ? "ready" : words(status);
}

function portOf(port: Json): readonly [string, string] {
  const target = text(at(port, "targetPort", "intVal")) || text(at(port, "remotePort"));
  const name = [text(at(port, "resourceType")), text(at(port, "resourceName"))].filter((part) => part !== "").join("/");
  return [`${name || text(at(port, "podName"))}:${target}`, `localhost:${text(at(port, "localPort"))}`];
}

function debuggerOf(container: Json): readonly [string, string] {
  const name = [
    text(at(container, "artifact")) || text(at(container, "podName")),
    text(at(container, "containerName")),
  ];
  return [name.filter((part) => part !== "").join("/"), text(at(container, "runtime")) || "attached"];
}

function vagrant(state: Json, found: Make): Partial<StateSummary> {
  const machines = list(at(state, "targets")).map((target) => {
    const described = text(at(target, "record", "state", "short_description"));
    return [text(at(target, "name")), words(described || text(at(target, "state")))] as const;
  });
  const boxes = list(at(state, "boxes")).map((box) => {
    const name = `box.${text(at(box, "name"))}.${text(at(box, "provider"))}`;
    return [name, text(at(box, "version"))] as const;
  });
  return { resources: named(new Map(machines), found), settings: named(new Map(boxes), found) };
}

function rkt(state: Json, manifests: ReadonlyMap<string, Json>, found: Make): Partial<StateSummary> {
  const { resources, settings } = rktValues(state, manifests);
  return { resources: named(resources, found), settings: named(settings, found) };
}

function named(values: ReadonlyMap<string, string>, make: Make): FoundByName {
  return new Map([...values].filter(([name]) => name !== "").map(([name, value]) => [name, make(value)]));
}

function fields(value: Json): ReadonlyMap<string, string> {
  return new Map(entries(value).map(([name, status]) => [name, text(status)]));
}
