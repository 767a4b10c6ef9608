import { GetLogsRequest, GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { RecordedMessage, RecordedStatus, RecordedStream, RecordedUpstream } from "./recording.ts";

export type LogAnswer = {
  readonly messages: readonly RecordedMessage[];
  /** Absent: the stream stays open until the client leaves. */
  readonly end?: RecordedStatus;
};

const unsupported = "rkt built without logging support";

/**
 * GetLogs as recorded: the n-th of equal requests (`until_time` means nothing to rkt, a prefix is as good as the id)
 * gets the n-th answer, then the last one repeatedly. A request that was not recorded is answered by the rules of the
 * real one from all lines that were ever returned for that pod. A recording without logs is one of a build without
 * them.
 */
export function logAnswers(recording: RecordedUpstream): (request: Buffer) => LogAnswer {
  const rows = recording.rows
    .filter((row): row is RecordedStream => row.kind === "stream" && row.rpc === "GetLogs")
    .filter(({ end }) => end.details !== unsupported);
  const pods = new Set(
    rows.map(({ request }) => GetLogsRequest.decode(request).pod_id).filter((id) => id.length === 36),
  );
  const requests = new Map<string, number>();

  function podMeant(prefix: string): string | undefined {
    const [id, ...others] = [...pods].filter((each) => prefix !== "" && each.startsWith(prefix.toLowerCase()));
    return others.length > 0 ? undefined : id;
  }

  function keyOf(bytes: Buffer): string {
    const { pod_id, app_name, lines, follow, since_time } = GetLogsRequest.decode(bytes);
    return JSON.stringify([podMeant(pod_id) ?? pod_id, app_name, lines, follow, `${since_time}`]);
  }

  return (bytes) => {
    if (rows.length === 0) return failed(unsupported);
    const key = keyOf(bytes);
    const same = rows.filter(({ request }) => keyOf(request) === key);
    const count = requests.get(key) ?? 0;
    requests.set(key, count + 1);
    const row = same[count] ?? same.at(-1);
    if (row !== undefined) return asRecorded(row);
    const request = GetLogsRequest.decode(bytes);
    const pod = podMeant(request.pod_id);
    return pod === undefined ? failed("unable to resolve UUID") : byRule(pod, linesOf(rows, pod), request);
  };
}

/** A stream that was followed ended because the client left. */
function asRecorded({ messages, end }: RecordedStream): LogAnswer {
  return { messages, ...(!endsOfClients.has(end.code) && { end }) };
}

/** CANCELLED, DEADLINE_EXCEEDED. */
const endsOfClients: ReadonlySet<number> = new Set([1, 4]);

function failed(details: string): LogAnswer {
  return { messages: [], end: { code: 2, details } };
}

type LogLine = { readonly text: string; readonly app: string; readonly micros: bigint };

/** A line as the real rkt prints it. Only in this recording does the text start with the app's name. */
const printed = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))? \+0000 UTC MESSAGE=(\S+)/;

function linesOf(rows: readonly RecordedStream[], pod: string): LogLine[] {
  const printedLines = rows
    .filter(({ request }) => GetLogsRequest.decode(request).pod_id === pod)
    .flatMap(({ messages }) => messages.flatMap(({ bytes }) => GetLogsResponse.decode(bytes).lines));
  const lines = [...new Set(printedLines)].flatMap((text): LogLine[] => {
    const [, day, time, fraction = "", app = ""] = printed.exec(text) ?? [];
    if (day === undefined) return [];
    const seconds = Date.parse(`${day}T${time}Z`) / 1_000;
    return [{ text, app, micros: BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, "0")) }];
  });
  return lines.toSorted((a, b) => Number(a.micros - b.micros));
}

function byRule(pod: string, all: readonly LogLine[], request: GetLogsRequest): LogAnswer {
  if (all.length === 0) return failed(`logging unsupported for pod "${pod}"`);
  const { app_name, lines, follow, since_time } = request;
  const ofApp = all.filter(({ app }) => app_name === "" || app === app_name);
  const since = ofApp.filter(({ micros }) => since_time >= 0n && micros >= since_time * 1_000_000n);
  const last = lines === 0 ? ofApp : ofApp.slice(lines < 0 ? ofApp.length : -lines);
  const texts = (since_time === 0n ? last : since).map(({ text }) => text);
  if (follow) return { messages: texts.map((text) => message([text])) };
  return { messages: [message(texts)], end: { code: 0, details: "" } };
}

function message(lines: string[]): RecordedMessage {
  return { afterMs: 0, bytes: Buffer.from(GetLogsResponse.encode({ lines }).finish()) };
}
