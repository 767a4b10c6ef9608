import type {
  ComparedSide,
  ComparedSide_Failure,
  CompareResponse,
  Difference,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { sourceParts } from "@tapedeck/shared/source";
import type { CallContext } from "../../../call-context.ts";
import { nameOf } from "../../resolve-source.ts";
import { refuseTwoDevelopers } from "../side-by-side.ts";
import { differencesOf } from "./differences.ts";
import { readSummary, type SummaryDeps } from "./read-summary.ts";
import { lastGood, resolveSide, type Side } from "./side.ts";
import { sideNamed } from "./side-name.ts";
import type { SideSummary } from "./side-summary.ts";
import { unreadFiles } from "./value-differences.ts";
import type { Weighed } from "./weighed.ts";

export type CompareRequest = {
  /** A loop, a session or a source; see `sideNamed`. Without it: the only source there is. */
  readonly left?: string | undefined;
  /** Without it: the last good loop before the one on the left. */
  readonly right?: string | undefined;
  /** A position or time: nothing that was recorded later is in the answer. Without it: now. */
  readonly at?: string | undefined;
};

/** The most differences: later ones explain nothing. */
const maxDifferences = 200;
const maxSame = 500;

export type CompareDeps = SummaryDeps & {
  /** Whether the sides can be of two developers. */
  readonly compareDevelopers: boolean;
};

export type CompareApi = (context: CallContext, request: CompareRequest) => Promise<CompareResponse>;

/**
 * The differences between two sides, the most informative first. With two sides, each is the newest loop (or command of
 * Vagrant) that is over; with one, it is the newest that failed. Everything throws TapedeckError.
 */
export function compareApi(deps: CompareDeps): CompareApi {
  return async (context, { left = context.source, right, at }) => {
    const sideName = (name: string | undefined, field: "left" | "right") =>
      name === undefined ? ({ type: "source", source: undefined, at: undefined } as const) : sideNamed(name, field);
    const [leftName, rightName] = [sideName(left, "left"), right === undefined ? undefined : sideName(right, "right")];
    const position = await positionAt(deps, context, at);
    const request = { workspace: context.workspace, at: position };
    const [one, named] = await Promise.all([
      resolveSide(deps, request, leftName, rightName === undefined ? "failed" : "newest"),
      rightName && resolveSide(deps, request, rightName, "newest"),
    ]);
    const other = named ?? (await lastGood(deps, request, one));
    if (other !== undefined && !deps.compareDevelopers) refuseTwoDevelopers(one.session.source, other.session.source);
    const call = { ...callOf(context), ...request };
    const [leftSummary, rightSummary] = await Promise.all([
      readSummary(deps, call, one, peopleName(one, other)),
      other && readSummary(deps, call, other, peopleName(other, one)),
    ]);
    const { differences, same } = differencesOf(leftSummary, rightSummary);
    return {
      left: sideOf(one, {
        ...leftSummary,
        unread: [...(leftSummary.unread ?? []), ...unreadFiles(leftSummary, rightSummary)],
      }),
      right: other && rightSummary && sideOf(other, rightSummary),
      differences: differences
        .slice(0, maxDifferences)
        .map((difference) => differenceOf(difference, leftSummary, rightSummary)),
      equal: same.length,
      same: same.slice(0, maxSame),
      omitted: Math.max(0, differences.length - maxDifferences),
      position,
    };
  };
}

/** The position of the moment, or the one that the tables have come to. */
async function positionAt(
  { query }: CompareDeps,
  { workspace, minPosition = "" }: CallContext,
  at: string | undefined,
): Promise<string> {
  if (at !== undefined) return (await query.listSources({ workspace, at, limit: 1 })).position;
  const { position } = await query.position(workspace);
  // Positions sort as the log does.
  return minPosition > position ? minPosition : position;
}

/** The call without the source, session and moment that it names: sides have their own. */
function callOf({
  source: _,
  session: _session,
  at: _at,
  after: _after,
  minPosition: _least,
  ...call
}: CallContext): CallContext {
  return call;
}

/** "loop 14" beside a loop of the same session, "alice/shop" beside another source. */
function peopleName(side: Side, other: Side | undefined): string {
  const { session, unit } = side;
  if (other !== undefined && other.session.source !== session.source) {
    const { developer, project, upstream } = sourceParts(nameOf(session));
    const isClear = sourceParts(nameOf(other.session)).upstream === upstream;
    return isClear ? `${developer}/${project}` : `${developer}/${project}/${upstream}`;
  }
  const what = unit === undefined ? "" : unit.kind === "loop" ? `loop ${unit.loop}` : `${unit.kind} ${unit.subject}`;
  const isSameSession = other === undefined || other.session.session === session.session;
  const isSameRunner = other === undefined || other.unit?.runner === unit?.runner;
  if (unit !== undefined && isSameSession)
    return isSameRunner || unit.kind !== "loop" ? what : `${what} of runner ${unit.runner}`;
  // A request may name a side by the same text.
  const isTwice = unit === undefined && other !== undefined && isSameSession;
  const ofSession = isTwice ? `${session.session}@${side.position}` : `session ${session.session}`;
  return what === "" ? ofSession : `${what} of ${ofSession}`;
}

function sideOf({ session, unit, position }: Side, { name, outcome, failure, unread = [] }: SideSummary): ComparedSide {
  const { started_at, ended_at } = unit ?? session;
  const isLoop = unit?.kind === "loop";
  return {
    name,
    source: session.source,
    upstream: sourceParts(nameOf(session)).upstream,
    session: session.session,
    unit: unit === undefined ? "session" : isLoop ? "loop" : "command",
    runner: unit?.runner ?? 0,
    loop: isLoop ? unit.loop : 0,
    subject: isLoop ? "" : (unit?.subject ?? ""),
    outcome: outcome ?? "",
    started_at,
    ended_at,
    duration_ms: unit?.duration_ms,
    start_position: unit?.start_position ?? session.start_position,
    position,
    failure: failure && failureOf(failure),
    unread: [...unread],
  };
}

function failureOf(failure: NonNullable<SideSummary["failure"]>): ComparedSide_Failure {
  const { phase, subject, code, text, cause, suggestions, position, tries, output } = failure;
  return {
    phase,
    subject,
    error_code: code,
    error: text,
    position,
    tries,
    cause,
    suggestions: [...suggestions],
    output: output.map(({ value, position, isCause }) => ({ text: value, position, is_cause: isCause })),
  };
}

function differenceOf(
  { kind, subject, text, left, right, more = [] }: Weighed,
  { session }: SideSummary,
  other: SideSummary | undefined,
): Difference {
  const sessions = { left: session, right: other?.session ?? "" };
  const found = [
    ...(left === undefined ? [] : [{ side: "left" as const, ...left }]),
    ...(right === undefined ? [] : [{ side: "right" as const, ...right }]),
    ...more,
  ];
  return {
    kind,
    subject,
    text,
    left: left?.value,
    right: right?.value,
    evidence: found.map(({ side, value, position }) => ({ side, session: sessions[side], position, text: value })),
  };
}
