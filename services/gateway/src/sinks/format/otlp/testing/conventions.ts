import type { ReceivedSpan } from "../../../testing/received-spans.ts";

// The attributes of these namespaces in the registry of OpenTelemetry's semantic conventions 1.44.0 (model/cicd, model/vcs, model/error,
// model/process, model/service), with the values that are listed for them, and what its two spans require (model/cicd/spans.yaml).

export const conventions = {
  schemaUrl: "https://opentelemetry.io/schemas/1.44.0",
  attributes: {
    "cicd.pipeline.name": { type: "string" },
    "cicd.pipeline.run.id": { type: "string" },
    "cicd.pipeline.run.url.full": { type: "string" },
    "cicd.pipeline.run.state": { type: "string", values: ["pending", "executing", "finalizing"] },
    "cicd.pipeline.task.name": { type: "string" },
    "cicd.pipeline.task.run.id": { type: "string" },
    "cicd.pipeline.task.run.url.full": { type: "string" },
    "cicd.pipeline.task.run.result": {
      type: "string",
      values: ["success", "failure", "error", "timeout", "cancellation", "skip"],
    },
    "cicd.pipeline.task.type": { type: "string", values: ["build", "test", "deploy"] },
    "cicd.pipeline.result": {
      type: "string",
      values: ["success", "failure", "error", "timeout", "cancellation", "skip"],
    },
    "cicd.pipeline.action.name": { type: "string", values: ["BUILD", "RUN", "SYNC"] },
    "cicd.worker.id": { type: "string" },
    "cicd.worker.name": { type: "string" },
    "cicd.worker.url.full": { type: "string" },
    "cicd.worker.state": { type: "string", values: ["available", "busy", "offline"] },
    "cicd.system.component": { type: "string" },
    "vcs.repository.url.full": { type: "string" },
    "vcs.repository.name": { type: "string" },
    "vcs.ref.base.name": { type: "string" },
    "vcs.ref.base.type": { type: "string", values: ["branch", "tag"] },
    "vcs.ref.base.revision": { type: "string" },
    "vcs.ref.head.name": { type: "string" },
    "vcs.ref.head.type": { type: "string", values: ["branch", "tag"] },
    "vcs.ref.head.revision": { type: "string" },
    "vcs.ref.type": { type: "string", values: ["branch", "tag"] },
    "vcs.revision_delta.direction": { type: "string", values: ["behind", "ahead"] },
    "vcs.line_change.type": { type: "string", values: ["added", "removed"] },
    "vcs.change.title": { type: "string" },
    "vcs.change.id": { type: "string" },
    "vcs.change.state": { type: "string", values: ["open", "wip", "closed", "merged"] },
    "vcs.owner.name": { type: "string" },
    "vcs.provider.name": { type: "string", values: ["github", "gitlab", "gitea", "bitbucket"] },
    "error.type": { type: "string", values: ["_OTHER"] },
    "process.exit.code": { type: "int" },
    "service.name": { type: "string" },
    "service.version": { type: "string" },
  },
  spans: {
    2: { name: "span.cicd.pipeline.run.server", result: "cicd.pipeline.result", required: ["cicd.pipeline.result"] },
    1: {
      name: "span.cicd.pipeline.task.internal",
      result: "cicd.pipeline.task.run.result",
      required: [
        "cicd.pipeline.task.name",
        "cicd.pipeline.task.run.id",
        "cicd.pipeline.task.run.url.full",
        "cicd.pipeline.task.run.result",
      ],
    },
  },
  resource: ["service.name", "cicd.pipeline.name", "cicd.pipeline.run.id"],
} as const;

type Attribute = { readonly type: string; readonly values?: readonly string[] };

const known: Readonly<Record<string, Attribute>> = conventions.attributes;

/** Lists of values are open; these are the ones that we add. */
const ownValues: readonly string[] = ["unknown"];
const lists: readonly string[] = ["cicd.pipeline.result", "cicd.pipeline.task.run.result"];

/** What is wrong with a span that has ended. */
export function violationsOf({ name, span, attributes, resource }: ReceivedSpan): readonly string[] {
  const kind = conventions.spans[span.kind as keyof typeof conventions.spans];
  if (kind === undefined) return [`${name}: has kind ${span.kind}`];
  const result = String(attributes[kind.result]);
  const isBad = result === "failure" || result === "error";
  const missing = [
    ...kind.required.filter((key) => attributes[key] === undefined),
    ...conventions.resource.filter((key) => resource[key] === undefined),
  ].map((key) => `has no ${key}`);
  const wrong = Object.entries({ ...attributes, ...resource }).flatMap(([key, value]) => wrongIn(key, value));
  const status = [
    ...(isBad === (attributes["error.type"] !== undefined) ? [] : [`error.type with ${result}`]),
    ...(isBad === (span.status?.code === 2) ? [] : [`status ${span.status?.code} with ${result}`]),
    ...(span.end_time_unix_nano >= span.start_time_unix_nano ? [] : ["ends before it begins"]),
  ];
  return [...missing, ...wrong, ...status].map((text) => `${name}: ${text}`);
}

function wrongIn(key: string, value: string | boolean | number): readonly string[] {
  if (key.startsWith("tapedeck.")) return [];
  const attribute = known[key];
  if (attribute === undefined) return [`${key} is not in the registry`];
  const type = typeof value === "number" ? "int" : typeof value;
  if (type !== attribute.type) return [`${key} is of type ${type}`];
  const { values } = attribute;
  // Any text may be the type of an error.
  if (values === undefined || key === "error.type" || values.includes(String(value))) return [];
  return lists.includes(key) && ownValues.includes(String(value)) ? [] : [`${key} is ${value}`];
}
