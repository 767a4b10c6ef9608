import type { ErrorCode } from "@tapedeck/shared/errors/errors";
import type { z } from "zod";
import { backupParameters } from "../../../apis/maintain/maintain-api.ts";
import { retentionRequest } from "../../../apis/maintain/workspaces/set-retention.ts";
import type { answers } from "../../../apis/tapedeck/answers.ts";
import { parameters, statsParameters } from "../../../apis/tapedeck/parameters.ts";
import { type StatsName, statsKinds, statsNames } from "../../../apis/tapedeck/schemas/stats.ts";
import { auditParameters } from "../../../audit/audit-api.ts";
import { tokenRequest } from "../../../auth/token-api.ts";
import { headNames } from "../../../call-context.ts";
import { parkedRequest, rewindRequest, sinkRequest, targetRequest } from "../../../sinks/requests.ts";
import { subprotocol } from "../../websocket/protocol.ts";
import { cloudEventsBatch } from "../cloud-events.ts";

// All of our paths, as the API's description has them. apiRoutes serves these paths with these parameters.

export type DescribedRoute = {
  /** Default: `get`. */
  readonly method?: "get" | "post" | "delete";
  /** With names of parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  /** Query parameters. */
  readonly parameters?: z.ZodObject;
  /** Parameters in the path, with what they mean. */
  readonly inPath?: Readonly<Record<string, string>>;
  /** Headers of the request, with what they mean. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: z.ZodType;
  /** By status. */
  readonly answers: Readonly<Record<number, DescribedAnswer>>;
  readonly errors: readonly ErrorCode[];
  /** The path needs no token even with `auth: tokens`. */
  readonly isOpen?: boolean;
};

export type DescribedAnswer = {
  readonly description: string;
  readonly headers?: readonly (keyof typeof answerHeaders)[];
  /** By media type: the name of a schema; `lines`: text whose pieces each have the schema. */
  readonly content?: Readonly<
    Record<string, SchemaName | { readonly lines: SchemaName; readonly description: string }>
  >;
};

export type SchemaName = keyof typeof answers;

export const answerHeaders = {
  "tapedeck-position": "The position that the answer reflects, or after which the stream starts.",
  "tapedeck-session": "The session whose state it is.",
  "tapedeck-session-ended": "`true` when that session has ended.",
  "tapedeck-not-heard-since": "For a lost source, or where a list is late: when its upstream was last seen.",
  "tapedeck-heard-at": "For a polled source: when each of its collections was last seen, as `name=time, name=time`.",
  link: 'For CloudEvents: the address of the next page, if there is one, with `rel="next"` (RFC 8288).',
} as const satisfies Record<(typeof headNames)[number] | "link", string>;

export const json = "application/json";
export const ndjson = "application/x-ndjson";
export const eventStream = "text/event-stream";

const always: readonly ErrorCode[] = [
  "invalid_argument",
  "unauthenticated",
  "forbidden",
  "limit_exceeded",
  "not_ready",
  "internal",
];
const ofPlaces: readonly ErrorCode[] = ["position_future", "position_foreign"];
const ofSource: readonly ErrorCode[] = ["unknown_source", "unknown_session", "before_first", "ambiguous_source"];

const list = (what: string, schema: SchemaName): Pick<DescribedRoute, "answers" | "errors"> => ({
  answers: { 200: { description: what, headers: ["tapedeck-position"], content: { [json]: schema } } },
  errors: [...always, ...ofPlaces],
});

const ofTokens: readonly ErrorCode[] = ["unauthenticated", "forbidden", "limit_exceeded", "not_ready", "internal"];
const forAdminsOfAll = "For admins whose token is for all workspaces.";
const forAdminsOfSome = "For admins: that of their token, or all for a token of all workspaces.";
const ofWorkspace = { workspace: "The workspace." } as const;
const forAdmins = "For admins, with the setting `auth: tokens`.";

const ofSink = { sink: "The sink's name." } as const;

/** A call that is about one sink. */
const sinkCall = <Schema extends SchemaName>(
  name: string,
  summary: string,
  { answer, description, ...more }: { answer: Schema; description: string; body?: z.ZodType },
) => ({
  method: "post" as const,
  path: `/api/v1/sinks/{sink}/${name}`,
  inPath: ofSink,
  summary,
  description: `${description} For admins.`,
  ...more,
  answers: { 200: { description: "What holds from now on.", content: { [json]: answer } } },
  errors: [...always, "not_found"] as const,
});

const lines = { lines: "Message", description: "One Message per line." } as const;

export const statsRoute = (name: StatsName) => ({
  path: `/api/v1/stats/${name}`,
  summary: statsKinds[name].summary,
  parameters: statsParameters(statsKinds[name]),
  ...list("One row for each group.", `${statsKinds[name].schema}List`),
});

export const routes = {
  sources: {
    path: "/api/v1/sources",
    summary: "Recorded sources",
    parameters: parameters.sources,
    ...list("Sources, newest first.", "Sources"),
  },
  sessions: {
    path: "/api/v1/sessions",
    summary: "Sessions: the lifetimes of the upstreams",
    parameters: parameters.sessions,
    ...list("Sessions, newest first: an imported one stands where it was imported.", "Sessions"),
  },
  operations: {
    path: "/api/v1/operations",
    summary: "Builds, tests, deploys, loops, pods, jobs …",
    parameters: parameters.operations,
    ...list("Operations, newest first.", "Operations"),
  },
  search: {
    path: "/api/v1/search",
    summary: "Loops, commands and sessions of all times, and where a text stands in them",
    description:
      "The newest first, by when they began: an imported one stands where it was. Each item has the first line with `q`. " +
      "Up to 2,000 matches are counted.",
    parameters: parameters.search,
    ...list("Items, newest first.", "History"),
  },
  ...Object.fromEntries(statsNames.map((name) => [name, statsRoute(name)])),
  compare: {
    path: "/api/v1/compare",
    summary: "Why does it fail here, and not there?",
    description:
      "What differs between two loops, what may explain a failure first, each with the positions where it was recorded. With " +
      "one side it is the newest loop that failed against the last good one before it. Vagrant's commands are compared like loops.",
    parameters: parameters.compare,
    answers: {
      200: {
        description: "Both sides, and the differences.",
        headers: ["tapedeck-position"],
        content: { [json]: "Comparison" },
      },
    },
    errors: [...always, ...ofPlaces, ...ofSource, "not_found", "out_of_range"],
  },
  status: {
    path: "/api/v1/status",
    summary: "How far the tables are behind the log, and how large the log is",
    parameters: parameters.status,
    answers: {
      200: { description: "Of all workspaces.", headers: ["tapedeck-position"], content: { [json]: "Status" } },
    },
    errors: always,
  },
  state: {
    path: "/api/v1/state",
    summary: "State of a source, now or at a past time",
    parameters: parameters.state,
    answers: {
      200: {
        description: "The state, and the position that it reflects.",
        headers: headNames,
        content: { [json]: "State" },
      },
    },
    errors: [...always, ...ofPlaces, ...ofSource],
  },
  events: {
    path: "/api/v1/events",
    summary: "History",
    description:
      `A page of events, ascending. With \`Accept: ${ndjson}\` one answer has all events, and ends at the log's end (or at ` +
      `\`until\`) with \`complete\`. With \`Accept: ${cloudEventsBatch}\` a page is a batch of CloudEvents; the header ` +
      "`link` has the address of the next page, which begins after `tapedeck-position`. A page may have fewer events than " +
      "`limit`, or none, and still be followed by another page.",
    parameters: parameters.events,
    answers: {
      200: {
        description: "Matching events.",
        headers: ["tapedeck-position", "link"],
        content: { [json]: "Events", [ndjson]: lines, [cloudEventsBatch]: "CloudEvents" },
      },
    },
    errors: [...always, ...ofPlaces, "out_of_range"],
  },
  stream: {
    path: "/api/v1/stream",
    summary: "History, then live events, without an end",
    description:
      "Server-sent events for EventSource: `id` is the position, so that a client that reconnects continues where it was. " +
      "Events have no `event:` line, so that `onmessage` fires; other messages have their type there. After 15 s without a " +
      `message the stream has a comment. With \`Accept: ${ndjson}\` the same messages come line by line. An error after the ` +
      "start is the last message. With `Accept: text/event-stream`, which EventSource sends, or with `Last-Event-ID`, " +
      "temporary errors (`not_ready`, `limit_exceeded`) are such a message too, with status 200 and `retry`. On any other " +
      "status EventSource gives up for good, as it should for permanent errors.",
    parameters: parameters.stream,
    headers: { "Last-Event-ID": "The position after which to continue; takes precedence over `after`." },
    answers: {
      200: {
        description: "Messages, until the client disconnects.",
        headers: ["tapedeck-position"],
        content: {
          [eventStream]: { lines: "Message", description: "Server-sent events, the `data` of each one Message." },
          [ndjson]: lines,
        },
      },
    },
    errors: [...always, ...ofPlaces, "out_of_range", ...ofSource],
  },
  ws: {
    path: "/api/v1/ws",
    summary: "Subscriptions over a WebSocket",
    description:
      `Several subscriptions on one socket, subprotocol \`${subprotocol}\`. Its messages and close codes are described in ` +
      "services/gateway/src/transports/websocket/PROTOCOL.md. A browser gives its token as a second subprotocol, " +
      "`tapedeck.bearer.<token>`.",
    answers: {
      101: { description: "The protocol switches to WebSocket." },
      426: { description: "The request was not a WebSocket handshake.", content: { [json]: "Error" } },
    },
    errors: ["unauthenticated", "forbidden", "limit_exceeded", "not_ready"],
  },
  tokens: {
    path: "/api/v1/tokens",
    summary: "Tokens of the workspace",
    description: `Newest first, including expired ones. ${forAdmins}`,
    answers: { 200: { description: "Tokens, without their secret texts.", content: { [json]: "Tokens" } } },
    errors: ofTokens,
  },
  createToken: {
    method: "post",
    path: "/api/v1/tokens",
    summary: "Create a token",
    description: forAdmins,
    body: tokenRequest,
    answers: {
      201: {
        description: "The token with its secret text, which only this answer has.",
        content: { [json]: "NewToken" },
      },
    },
    errors: ["invalid_argument", ...ofTokens],
  },
  renewToken: {
    method: "post",
    path: "/api/v1/tokens/renew",
    summary: "Renew the token of the request",
    description:
      "For its holder, whatever its roles, if it was created as `renewable`, in the second half of its life. The new token has " +
      "the same id, rights and length of life. The old one is valid for another hour at most. Revoking the id revokes both.",
    answers: {
      201: {
        description: "The new token with its secret text, which only this answer has.",
        content: { [json]: "NewToken" },
      },
    },
    errors: ofTokens,
  },
  revokeToken: {
    method: "delete",
    path: "/api/v1/tokens/{id}",
    inPath: { id: "The token's id." },
    summary: "Revoke a token",
    description: `Its open streams end within 5 s. ${forAdmins}`,
    answers: { 200: { description: "The revoked token.", content: { [json]: "Token" } } },
    errors: ["not_found", ...ofTokens],
  },
  eraseSession: {
    method: "delete",
    path: "/api/v1/sessions/{session}",
    inPath: { session: "The session's id." },
    summary: "Erase a session permanently",
    description:
      "Erases a session of the caller's workspace from log and tables. From the first line on, which comes at once, none of it can be read. The server removes it even if the caller disconnects: repeat the request to see the progress. For admins.",
    answers: {
      200: {
        description: "The progress, until everything is erased.",
        content: { [ndjson]: { lines: "Erasing", description: "One line each, the last one `complete` or `error`." } },
      },
    },
    errors: [...always, "unknown_session"],
  },
  eraseDeveloper: {
    method: "delete",
    path: "/api/v1/developers/{developer}",
    inPath: { developer: "The developer, as in the names of sources." },
    summary: "Erase a developer permanently",
    description:
      "Erases all sessions and sources of a developer of the caller's workspace from log and tables, the oldest first, and then the name in the audit log. Refused while one of the sessions goes on. The server continues if the caller disconnects: repeat the request to see the progress. For admins.",
    answers: {
      200: {
        description: "The progress, until everything is erased.",
        content: {
          [ndjson]: { lines: "ErasingDeveloper", description: "One line each, the last one `complete` or `error`." },
        },
      },
    },
    errors: [...always, "not_found"],
  },
  workspaces: {
    path: "/api/v1/workspaces",
    summary: "List workspaces",
    description: `Every workspace with its log, its tables and its retention. ${forAdminsOfSome}`,
    answers: { 200: { description: "In alphabetical order.", content: { [json]: "Workspaces" } } },
    errors: always,
  },
  workspace: {
    path: "/api/v1/workspaces/{workspace}",
    inPath: ofWorkspace,
    summary: "Get a workspace",
    description: `One of the list. ${forAdminsOfSome}`,
    answers: { 200: { description: "The workspace.", content: { [json]: "Workspace" } } },
    errors: [...always, "not_found"],
  },
  removeWorkspace: {
    method: "delete",
    path: "/api/v1/workspaces/{workspace}",
    inPath: ofWorkspace,
    summary: "Remove a workspace permanently",
    description: `Removes the log of a workspace and its tables, in seconds whatever their size. Refused while something is recorded there. The server goes on if the caller disconnects: repeat the request to see the progress. Tokens, logins of the database, the retention and the audit log stay. What is recorded there later begins a new log, in which older positions are foreign. ${forAdminsOfSome}`,
    answers: {
      200: {
        description: "The progress, until nothing of it is answered any more.",
        content: {
          [ndjson]: { lines: "RemovingWorkspace", description: "One line each, the last one `complete` or `error`." },
        },
      },
    },
    errors: [...always, "not_found"],
  },
  setRetention: {
    method: "post",
    path: "/api/v1/workspaces/{workspace}/retention",
    inPath: ofWorkspace,
    summary: "Change how long a workspace is kept",
    description: `Overrides \`retention.facts\` and \`retention.text\` of the settings for a workspace. That of text holds for what is recorded from the next connection of a tap on. ${forAdminsOfSome}`,
    body: retentionRequest,
    answers: { 200: { description: "What holds from now on.", content: { [json]: "WorkspaceRetention" } } },
    errors: always,
  },
  sinks: {
    path: "/api/v1/sinks",
    summary: "List sinks",
    description: "The sinks of the workspace, without their secrets. For viewers.",
    answers: { 200: { description: "In alphabetical order.", content: { [json]: "Sinks" } } },
    errors: always,
  },
  addSink: {
    method: "post",
    path: "/api/v1/sinks",
    summary: "Add a sink",
    description:
      "From now on, or from `start` on, events are delivered to `target` as they are recorded. Without a `secret` one is made. For admins.",
    body: sinkRequest,
    answers: { 201: { description: "The sink.", content: { [json]: "NewSink" } } },
    errors: [...always, ...ofPlaces, "out_of_range"],
  },
  removeSink: {
    method: "delete",
    path: "/api/v1/sinks/{sink}",
    inPath: ofSink,
    summary: "Remove a sink",
    description: "With its cursor and its parked events. One of the settings is removed there first. For admins.",
    answers: { 200: { description: "It is removed.", content: { [json]: "RemovedSink" } } },
    errors: [...always, "not_found"],
  },
  pauseSink: sinkCall("pause", "Pause a sink", {
    answer: "Sink",
    description: "It stands still, and keeps its place.",
  }),
  resumeSink: sinkCall("resume", "Resume a sink", { answer: "Sink", description: "It goes on where it stood." }),
  rewindSink: sinkCall("rewind", "Set the place of a sink", {
    answer: "Sink",
    description: "It goes on from there: events after it are delivered again, with the same ids.",
    body: rewindRequest,
  }),
  setTarget: sinkCall("target", "Change where a sink delivers", {
    answer: "Sink",
    description:
      "It keeps its place, and what waited is delivered to the new target at once. One of the settings is changed there.",
    body: targetRequest,
  }),
  testSink: sinkCall("test", "Test a sink", {
    answer: "SinkTest",
    description: "Sends one request without an event.",
  }),
  parkedEvents: {
    path: "/api/v1/sinks/{sink}/parked",
    inPath: ofSink,
    summary: "List the parked events of a sink",
    description: "Events that its target refuses; the sink has gone on after them. For admins.",
    answers: { 200: { description: "In the order of the log.", content: { [json]: "ParkedEvents" } } },
    errors: [...always, "not_found"],
  },
  retryParked: sinkCall("parked/retry", "Deliver parked events", {
    answer: "RetriedEvents",
    description: "Sends each once. What is accepted is parked no longer.",
    body: parkedRequest,
  }),
  dropParked: sinkCall("parked/drop", "Give parked events up", {
    answer: "DroppedEvents",
    description: "They stay in the log.",
    body: parkedRequest,
  }),
  rebuild: {
    method: "post",
    path: "/api/v1/rebuild",
    summary: "Rebuild the tables from the log",
    description: `Rebuilds the tables of all workspaces; the present tables answer until it ends. ${forAdminsOfAll}`,
    answers: {
      200: {
        description: "The progress, until the new tables are in place.",
        content: {
          [ndjson]: { lines: "Rebuilding", description: "One line each, the last one `complete` or `error`." },
        },
      },
    },
    errors: always,
  },
  backup: {
    path: "/api/v1/backup",
    summary: "Back up the logs",
    description:
      `The logs of all workspaces as of now, the hashes of tokens, and the sinks with their secrets. ${forAdminsOfAll} A frame is a letter, a ` +
      "length (32 bits, big endian) and that many bytes: `w` (JSON, `workspace`) begins the log of a workspace, `p` is a piece " +
      "of NATS's snapshot of it, and `s` is JSON that its restore needs; the last frame is `z` (JSON, `tokens` and `sinks`) or `e`, an " +
      "Error. `tapedeck backup` stores the frames in a folder.",
    parameters: backupParameters,
    answers: { 200: { description: "The frames, as application/vnd.tapedeck.backup." } },
    errors: always,
  },
  audit: {
    path: "/api/v1/audit",
    summary: "Who did what",
    description:
      "Sign-ins by the identity provider, control calls, tokens, exports, erasures, rebuilds and backups, the oldest first. For " +
      "admins: those of their workspace; of all workspaces for admins of all.",
    parameters: auditParameters,
    answers: {
      200: {
        description: "The entries up to now.",
        content: {
          [ndjson]: { lines: "AuditLine", description: "One line each, the last one `complete` or `error`." },
        },
      },
    },
    errors: always,
  },
  healthz: {
    path: "/healthz",
    summary: "Is the gateway alive?",
    answers: { 200: { description: "The gateway is alive.", content: { [json]: "Health" } } },
    errors: [],
    isOpen: true,
  },
  readyz: {
    path: "/readyz",
    summary: "Is the gateway ready?",
    answers: {
      200: { description: "Everything that the gateway needs is available.", content: { [json]: "Readiness" } },
      503: { description: "Something is not available, with the reason.", content: { [json]: "Readiness" } },
    },
    errors: [],
    isOpen: true,
  },
} as const satisfies Record<string, DescribedRoute>;
