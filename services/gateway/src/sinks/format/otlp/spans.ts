import {
  type ResourceSpans,
  type Span,
  Span_SpanKind,
  SpanFlags,
  type Status,
  Status_StatusCode,
} from "@tapedeck/proto/opentelemetry/proto/trace/v1/trace";
import { formatPosition } from "@tapedeck/shared/log/position";
import { ownValue } from "@tapedeck/shared/own-value";
import { parseTraceParent, type TraceParent, traceParentLabel } from "@tapedeck/shared/traceparent";
import { version } from "@tapedeck/shared/version";
import type { FormattedSink } from "../format.ts";
import { type Attributes, keyValues, labelAttributes, schemaUrl, vcsAttributes } from "./attributes.ts";
import type { Operation, Result } from "./operations.ts";
import type { SessionFacts } from "./session-facts.ts";
import { type RunKey, rootSpanIdOf, taskSpanIdOf, traceIdOf } from "./trace-ids.ts";

/** Tasks of one trace, at most. What is left out is counted in the root. */
const maxTasks = 5_000;

/** A run with its tasks, as far as they are known. */
export type Run = {
  readonly key: RunKey;
  readonly source: string;
  readonly session: SessionFacts;
  /** Undefined: a task alone, while it runs. */
  readonly root: Operation | undefined;
  readonly tasks: readonly Operation[];
  /** Whether its beginning is missing, why its end is, and how many events are left out. */
  readonly missing: {
    readonly beginning: boolean;
    readonly end?: "session_ended" | "session_lost" | "not_observed";
    readonly events?: number;
  };
};

type Sink = Pick<FormattedSink, "workspace" | "page" | "epoch">;

/** A trace, or as much of it as is known: the spans of a run. The same run gives the same bytes. */
export function resourceSpansOf(run: Run, sink: Sink): ResourceSpans {
  const parent = parseTraceParent(run.session.labels[traceParentLabel]);
  const traceId = parent === undefined ? traceIdOf(run.key) : Buffer.from(parent.traceId, "hex");
  // A span that is not sampled has no sampled children.
  const flags = parent === undefined ? sampled : parent.flags & SpanFlags.SPAN_FLAGS_TRACE_FLAGS_MASK;
  const trace = { traceId, flags, sink };
  const tasks = run.tasks.slice(0, maxTasks);
  const spans = [
    ...(run.root === undefined ? [] : [rootSpan(run, run.root, { ...trace, parent })]),
    ...tasks.map((task) => taskSpan(run, task, trace)),
  ];
  return {
    resource: { attributes: keyValues(resourceAttributes(run, sink)), dropped_attributes_count: 0, entity_refs: [] },
    scope_spans: [
      {
        scope: { name: "tapedeck", version, attributes: [], dropped_attributes_count: 0 },
        spans,
        schema_url: schemaUrl,
      },
    ],
    schema_url: schemaUrl,
  };
}

function resourceAttributes(run: Run, sink: Sink): Attributes {
  const { source, session, key } = run;
  const [, developer = "", project = "", upstream = ""] = source.split("/");
  return {
    "service.name": upstream,
    "service.version": session.upstreamVersion,
    "cicd.pipeline.name": pipelineName(run),
    "cicd.pipeline.run.id": runId(key),
    "cicd.pipeline.run.url.full": pageOf(run, sink),
    "cicd.worker.id": session.labels.host,
    ...vcsAttributes(session.labels),
    "tapedeck.workspace": sink.workspace,
    "tapedeck.developer": developer,
    "tapedeck.project": project,
    "tapedeck.source": source,
    "tapedeck.session": key.session,
    ...labelAttributes(session.labels),
  };
}

/** What the spans of a trace share. */
type Trace = { readonly traceId: Buffer; readonly flags: number; readonly sink: Sink };
type RootContext = Trace & { readonly parent: TraceParent | undefined };

function rootSpan(run: Run, root: Operation, { traceId, flags, parent, sink }: RootContext): Span {
  const { key, missing } = run;
  const action = key.kind === "session" && run.session.labels.command?.startsWith("skaffold build") ? "BUILD" : "RUN";
  const result = root.result;
  const dropped = run.tasks.length - maxTasks;
  return {
    ...timesOf(root),
    trace_id: traceId,
    span_id: rootSpanIdOf(key),
    trace_state: "",
    parent_span_id: parent === undefined ? Buffer.alloc(0) : Buffer.from(parent.spanId, "hex"),
    flags:
      SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK |
      (parent === undefined ? 0 : SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK) |
      flags,
    name: `${action} ${pipelineName(run)}`,
    kind: Span_SpanKind.SPAN_KIND_SERVER,
    attributes: keyValues({
      "cicd.pipeline.result": result,
      "cicd.pipeline.action.name": action,
      "error.type": errorType(root),
      "process.exit.code": root.exitCode,
      "tapedeck.kind": key.kind,
      "tapedeck.loop": key.kind === "loop" ? key.loop : undefined,
      "tapedeck.position": positionOf(root, sink),
      "tapedeck.missing.beginning": missing.beginning || undefined,
      "tapedeck.missing.end": missing.end,
      "tapedeck.missing.events": missing.events,
      "tapedeck.missing.tasks": dropped > 0 ? dropped : undefined,
    }),
    links: linksOf(run, traceId, flags),
    status: statusOf(root),
    ...nothingDropped,
  };
}

function taskSpan(run: Run, task: Operation, { traceId, flags, sink }: Trace): Span {
  const { key } = run;
  const name = taskName(task);
  return {
    ...timesOf(task),
    trace_id: traceId,
    span_id: taskSpanIdOf(key, task.id),
    trace_state: "",
    parent_span_id: rootSpanIdOf(key),
    flags: SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | flags,
    name,
    kind: Span_SpanKind.SPAN_KIND_INTERNAL,
    attributes: keyValues({
      "cicd.pipeline.task.name": name,
      "cicd.pipeline.task.type": ownValue(taskTypes, task.kind),
      "cicd.pipeline.task.run.id": task.id,
      "cicd.pipeline.task.run.url.full": `${pageOf(run, sink)}?step=${positionOf(task, sink)}`,
      "cicd.pipeline.task.run.result": task.result,
      "error.type": errorType(task),
      "process.exit.code": task.exitCode,
      "tapedeck.kind": task.kind,
      "tapedeck.subject": task.subject,
    }),
    links: [],
    status: statusOf(task),
    ...nothingDropped,
  };
}

const sampled = 1;

const nothingDropped = {
  events: [] as Span["events"],
  dropped_attributes_count: 0,
  dropped_events_count: 0,
  dropped_links_count: 0,
};

/** Kinds that have a type in the conventions. */
const taskTypes: Readonly<Record<string, string>> = { build: "build", test: "test", verify: "test", deploy: "deploy" };

function taskName({ kind, subject, detail }: Operation): string {
  // The name of a job is its id.
  if (detail?.$case === "job") return `job ${detail.value.command || detail.value.operation}`.trim();
  if (detail?.$case === "app") return `app ${detail.value.app}`;
  return subject === "" ? kind : `${kind} ${subject}`;
}

/** A low number of names for many runs. */
function pipelineName({ key, source, root, session }: Run): string {
  const [, , project = ""] = source.split("/");
  const detail = root?.detail;
  if (key.kind === "session") return session.labels.command ?? project;
  if (detail?.$case === "command") return `vagrant ${detail.value.command}`;
  if (detail?.$case !== "pod") return project;
  const { name, pod, apps } = detail.value;
  return name !== pod && name !== "" ? name : apps.join(" ") || "pod";
}

/** Before it has ended, its end is 0. */
function timesOf({ startedAt, endedAt, result }: Operation): Pick<Span, "start_time_unix_nano" | "end_time_unix_nano"> {
  const start = startedAt ?? endedAt ?? 0n;
  const end = result === undefined ? 0n : (endedAt ?? start);
  return { start_time_unix_nano: start, end_time_unix_nano: result !== undefined && end < start ? start : end };
}

function errorType({ result, error }: Operation): string | undefined {
  return isBad(result) ? error?.code || "_OTHER" : undefined;
}

function statusOf({ result, error }: Operation): Status {
  if (!isBad(result)) return { message: "", code: Status_StatusCode.STATUS_CODE_UNSET };
  return { message: error?.message ?? "", code: Status_StatusCode.STATUS_CODE_ERROR };
}

function isBad(result: Result | undefined): boolean {
  return result === "failure" || result === "error";
}

/** The loop before and after; the one after may never come. */
function linksOf({ key, missing, root }: Run, ownTrace: Buffer, flags: number): Span["links"] {
  if (key.kind !== "loop") return [];
  const isLast = root?.result === undefined || missing.end !== undefined;
  const others = [
    ...(key.loop > 1 ? [{ loop: key.loop - 1, link: "previous" }] : []),
    ...(isLast ? [] : [{ loop: key.loop + 1, link: "next" }]),
  ];
  return others.map(({ loop, link }) => {
    const other = { ...key, loop };
    const isShared = !ownTrace.equals(traceIdOf(key));
    return {
      trace_id: isShared ? ownTrace : traceIdOf(other),
      span_id: rootSpanIdOf(other),
      trace_state: "",
      attributes: keyValues({ "tapedeck.link": link }),
      dropped_attributes_count: 0,
      flags: SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | flags,
    };
  });
}

function runId({ kind, session, runner, loop, instance }: RunKey): string {
  return kind === "loop" ? `${session}.${runner}.${loop}` : instance || session;
}

function pageOf({ key }: Run, { page }: Sink): string {
  return `${page}/${key.kind === "loop" ? `loops/${runId(key)}` : `sessions/${key.session}`}`;
}

function positionOf({ offset }: Operation, { epoch }: Sink): string {
  return formatPosition({ epoch, offset });
}
