import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { kindNoun } from "@tapedeck/shared/events/kinds";
import type { CdFact } from "./cdevent.ts";
import { appImagePurl, ociPurl } from "./purl.ts";

export type CdContext = {
  /** The address of the page, for links. */
  readonly page: string;
  readonly position: string;
  /** The commit of which the event's session builds; undefined: unknown. */
  readonly commit: string | undefined;
};

/** Skaffold's steps, each a task of its loop. */
const steps = ["init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync"];

/** The kinds that have a counterpart. */
export const mappedKinds = [
  ...["loop.*", ...steps.map((step) => `${step}.*`), "resource.ready", "port.forwarded"],
  ...["job.queued", "job.started", "job.succeeded", "job.failed", "job.canceled", "job.lost", "command.*"],
  ...["app.started", "app.exited", "image.imported"],
];

/** What an event is in CDEvents; empty: it has no counterpart, or a client has put it into the upstream, which did not do that. */
export function cdFacts(event: Event, context: CdContext): readonly CdFact[] {
  if (event.injected) return [];
  const noun = kindNoun(event.kind);
  if (noun === "loop") return [loopFact(event, context)];
  if (noun === "job") return [jobFact(event, context)];
  if (noun === "command") return [commandFact(event, context)];
  if (steps.includes(noun)) return stepFacts(event, context);
  return serviceFacts(event);
}

function loopFact(event: Event, { page }: CdContext): CdFact {
  const id = loopOf(event);
  const content = { pipelineName: projectOf(event.source), uri: `${page}/loops/${id}` };
  if (event.kind === "loop.started") return { type: "pipelinerun.started", id, content };
  return { type: "pipelinerun.finished", id, content: { ...content, ...endOf(event) } };
}

/** A step is a task of its loop. A build is a build, too, which has no outcome in CDEvents. */
function stepFacts(event: Event, context: CdContext): readonly CdFact[] {
  const { operation, kind } = event;
  if (operation === undefined) return [];
  const id = stepOf(event);
  const loop = operation.loop === 0 ? undefined : loopOf(event);
  const content = {
    taskName: [operation.kind, operation.subject].filter((part) => part !== "").join(" "),
    uri: loop === undefined ? sessionUri(event, context) : `${context.page}/loops/${loop}`,
    ...(loop !== undefined && { pipelineRun: { id: loop } }),
  };
  const isStart = kind.endsWith(".started");
  const task: CdFact = isStart
    ? { type: "taskrun.started", id, content }
    : { type: "taskrun.finished", id, content: { ...content, ...endOf(event) } };
  return operation.kind === "build" ? [...buildFacts(event, id, context), task] : [task];
}

function buildFacts(event: Event, id: string, { commit }: CdContext): readonly CdFact[] {
  if (event.kind === "build.started") return [{ type: "build.started", id, content: {} }];
  const isBuilt = event.kind === "build.succeeded" || event.kind === "build.cached";
  const artifact = event.subject === "" ? undefined : ociPurl(event.subject);
  const content = isBuilt && artifact !== undefined ? { artifactId: artifact } : {};
  const finished: CdFact = { type: "build.finished", id, content };
  if (event.kind !== "build.succeeded" || artifact === undefined || commit === undefined) return [finished];
  return [finished, { type: "artifact.packaged", id: artifact, content: { change: { id: commit } } }];
}

/** Vagrant's unit of work; the command that runs in it is its task. */
function jobFact(event: Event, context: CdContext): CdFact {
  const id = event.subject || event.id;
  const job = event.detail?.$case === "job" ? event.detail.value : undefined;
  const name = [job?.operation, job?.command].filter((part) => part !== undefined && part !== "").join(" ");
  const content = { pipelineName: name || "job", uri: sessionUri(event, context) };
  if (event.kind === "job.queued") return { type: "pipelinerun.queued", id, content };
  if (event.kind === "job.started") return { type: "pipelinerun.started", id, content };
  return { type: "pipelinerun.finished", id, content: { ...content, ...endOf(event) } };
}

function commandFact(event: Event, context: CdContext): CdFact {
  const job = event.subject || event.id;
  const command = event.detail?.$case === "command" ? event.detail.value.command : "";
  const content = {
    taskName: command === "" ? "vagrant" : `vagrant ${command}`,
    uri: sessionUri(event, context),
    pipelineRun: { id: job },
  };
  const id = `${job}/command`;
  if (event.kind === "command.started") return { type: "taskrun.started", id, content };
  return { type: "taskrun.finished", id, content: { ...content, ...endOf(event) } };
}

function serviceFacts({ kind, source, subject, detail }: Event): readonly CdFact[] {
  const id = subject || kind;
  if (detail?.$case === "port" && kind === "port.forwarded") {
    const { namespace, resource_type: type, resource_name: name } = detail.value;
    const service = name === "" ? id : [type, name].filter((part) => part !== "").join("/");
    const environment = namespace === "" ? {} : { environment: { id: namespace } };
    return [{ type: "service.published", id: service, content: environment }];
  }
  // Only a resource with an address is one that others can use.
  if (detail?.$case === "resource" && kind === "resource.ready") {
    return detail.value.url === "" ? [] : [{ type: "service.published", id, content: {} }];
  }
  if (detail?.$case === "image" && kind === "image.imported") {
    const { image, name, version } = detail.value;
    return [{ type: "artifact.downloaded", id: appImagePurl({ id: image || id, name, version }), content: {} }];
  }
  if (detail?.$case !== "app") return [];
  const { image_id, image_name: name, image_version: version } = detail.value;
  const environment = { id: hostOf(source) };
  if (kind === "app.exited") return [{ type: "service.removed", id, content: { environment } }];
  const artifactId = appImagePurl({ id: image_id || "unknown", name, version });
  return [{ type: "service.deployed", id, content: { environment, artifactId } }];
}

const outcomes = {
  [Outcome.OUTCOME_SUCCEEDED]: "success",
  [Outcome.OUTCOME_FAILED]: "failure",
  [Outcome.OUTCOME_CANCELED]: "cancel",
} as Readonly<Partial<Record<Outcome, string>>>;

/** How it ended; "error" where nobody knows. */
function endOf({ kind, outcome, error }: Event): Readonly<Record<string, string>> {
  const known = outcomes[outcome] ?? (kind === "build.cached" ? "success" : "error");
  const errors = error?.message ?? "";
  return { outcome: known, ...(known !== "success" && errors !== "" && { errors }) };
}

/** The name that the page has for the loop. */
function loopOf({ session, operation }: Event): string {
  return `${session}.${operation?.runner ?? 0}.${operation?.loop ?? 0}`;
}

/** A step that is tried again in its loop has the same id. */
function stepOf(event: Event): string {
  const { kind = "", subject = "", instance = "" } = event.operation ?? {};
  return [loopOf(event), kind, subject, instance].filter((part) => part !== "").join("/");
}

function sessionUri({ session }: Event, { page, position }: CdContext): string {
  return `${page}/sessions/${session}?at=${position}`;
}

function projectOf(source: string): string {
  return source.split("/")[2] ?? source;
}

function hostOf(source: string): string {
  return source.split("/")[1] ?? source;
}
