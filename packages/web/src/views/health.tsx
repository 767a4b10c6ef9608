import type { Source } from "@tapedeck/client";
import { ageText, agoText, bytesText, durationText, millis, plural, sourceText } from "@tapedeck/client/lanes/format";
import { useState } from "preact/hooks";
import { firstOf, useReading } from "../data/reading.ts";
import { useTitle } from "../data/tab.ts";
import { about, lostSince, tapedeck, tick } from "../data/tapedeck.ts";
import { nothingRecorded } from "../model/own.ts";
import { sourcePath } from "../model/route.ts";
import { type ParkedEvent, type Sink, Sinks } from "../parts/sinks.tsx";
import { Ago, ErrorNotice, Loading, Sign } from "../parts/small.tsx";
import { type Workspace, Workspaces } from "../parts/workspaces.tsx";

type Readiness = {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
  readonly details?: { readonly warnings?: readonly string[] };
};
type Status = {
  readonly behindMessages: number;
  /** null: the visitor's token is for one of several workspaces. */
  readonly log: (Amount & { readonly lastDay: Amount }) | null;
  /** null: what records does not answer. */
  readonly waiting: readonly Waiting[] | null;
  /** Sources with events that the tables could not take. */
  readonly setAside: readonly { readonly source: string; readonly events: number; readonly error: string }[];
};
type Amount = { readonly messages: number; readonly bytes: number };
type Waiting = {
  readonly source: string;
  readonly items: number;
  readonly bytes: number;
  readonly dropped: number;
};
type Token = {
  readonly id: string;
  readonly name: string;
  readonly machine?: true;
  readonly roles: readonly string[];
  readonly developer?: string;
  readonly createdAt: string;
  readonly expiresAt: string;
};
type Health = {
  readonly sources: readonly Source[];
  readonly readiness: Readiness;
  readonly answeredInMs: number;
  /** Undefined where the log or the tables do not answer. */
  readonly status: Status | undefined;
  /** How many readers follow the log's end. */
  readonly subscribers: number | undefined;
  /** For admins. */
  readonly tokens: readonly Token[] | undefined;
  readonly workspaces: readonly Workspace[];
  readonly sinks: readonly Sink[];
};

const everyMs = 5_000;
const maxSources = 1_000;

/** Is it recording? Read again every few seconds: nothing of this is an event. */
export function HealthView() {
  const [health, setHealth] = useState<Health>();
  const [error, setError] = useState<string>();
  useTitle("Health");
  useReading(
    [],
    async (signal) => {
      for (; !signal.aborted; await new Promise((resolve) => setTimeout(resolve, everyMs))) {
        setHealth(await readHealth(signal));
        lostSince.value = undefined;
      }
    },
    setError,
  );
  if (error !== undefined) return <ErrorNotice text={error} />;
  if (health === undefined) return <Loading what="the state of Tapedeck" />;
  const { readiness } = health;
  const warnings = readiness.details?.warnings ?? [];
  return (
    <div class="health">
      <h1>
        <Sign of={readiness.ready ? "succeeded" : "failed"} label="" />{" "}
        {readiness.ready ? (health.sources.length === 0 ? "Ready to record" : "Recording") : "Not everything works"}
      </h1>
      {warnings.map((text) => (
        <p key={text} class="notice">
          {text}
        </p>
      ))}
      <Checks health={health} />
      <Sources sources={health.sources} waiting={health.status?.waiting ?? []} />
      {health.sinks.length > 0 && <Sinks sinks={health.sinks} />}
      {health.workspaces.length > 0 && <Workspaces workspaces={health.workspaces} />}
      {health.tokens !== undefined && <Tokens tokens={health.tokens} />}
      <p class="quiet-text">
        {about.value?.docs !== undefined && (
          <>
            How to use and operate Tapedeck is in the <a href={about.value.docs}>manual</a>.{" "}
          </>
        )}
        Figures for monitoring are at <code>/metrics</code>, the reasons of a check that fails at <code>/readyz</code>.
      </p>
    </div>
  );
}

const checkNames: ReadonlyMap<string, string> = new Map([["query", "tables (projection)"]]);

function Checks({ health }: { readonly health: Health }) {
  return (
    <dl class="checks">
      {Object.entries(health.readiness.checks).map(([name, is]) => (
        <div key={name}>
          <dt>{checkNames.get(name) ?? name}</dt>
          <dd class={is === "ok" ? "good" : "bad"}>{is === "ok" ? "✓ ok" : `✕ ${is}`}</dd>
        </div>
      ))}
      {health.status !== undefined && <LogFigures status={health.status} />}
      {health.subscribers !== undefined && (
        <div>
          <dt>subscribers</dt>
          <dd>{health.subscribers}</dd>
        </div>
      )}
      <div>
        <dt>answers in</dt>
        <dd>{durationText(health.answeredInMs)}</dd>
      </div>
      <div>
        <dt>version</dt>
        <dd>{about.value?.version}</dd>
      </div>
    </dl>
  );
}

type SourcesProps = { readonly sources: readonly Source[]; readonly waiting: readonly Waiting[] };

function Sources({ sources, waiting }: SourcesProps) {
  const { title, reason } = nothingRecorded(about.value?.token);
  return (
    <>
      <h2 class="part">Sources</h2>
      {sources.length === 0 && (
        <p class="quiet-text">
          {title}. {reason} <a href="/">How to record</a>
        </p>
      )}
      <div class="scrolls" hidden={sources.length === 0}>
        <table class="list stacks">
          <thead>
            <tr>
              <th scope="col">source</th>
              <th scope="col">tool</th>
              <th scope="col">status</th>
              <th scope="col">last event</th>
              <th scope="col" class="number">
                age
              </th>
              <th scope="col">waits to be recorded</th>
              <th scope="col" class="number">
                gaps
              </th>
              <th scope="col">address</th>
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <SourceLine
                key={source.source}
                source={source}
                waits={waiting.find((one) => one.source === source.source)}
              />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** An imported source is not waiting for more. */
function restText({ status, address }: Source): string {
  return /^(file:|session of )/.test(address) ? "imported" : status;
}

/** `waits`: what its tap has not recorded yet; undefined: its tap is away, or not known. */
function SourceLine({ source, waits }: { readonly source: Source; readonly waits: Waiting | undefined }) {
  const last = millis(source.lastEventAt);
  const since = millis(source.notHeardSince);
  const isLost = source.status === "lost";
  return (
    <tr>
      <th scope="row">
        <a href={sourcePath(`${sourceText(source.source)}/${source.upstream}`)}>{sourceText(source.source)}</a>
      </th>
      <td data-name="tool">{source.upstream}</td>
      <td
        data-name="status"
        class={isLost || since !== undefined ? "lost" : source.status === "recording" ? "good" : ""}
      >
        {isLost ? "? lost" : source.status === "recording" ? "✓ recording" : `· ${restText(source)}`}
        {since !== undefined && ` (last seen ${agoText(tick.value - since)})`}
        {source.clockOffsetMs !== null && <div class="warning">{clockText(source.clockOffsetMs)}</div>}
      </td>
      <td data-name="last event">{last === undefined ? "–" : <Ago at={last} />}</td>
      <td data-name="age" class="number" title={lastSeenText(source)}>
        {source.lagMs === null ? "–" : durationText(Math.max(0, source.lagMs))}
      </td>
      <td data-name="waits to be recorded" class={isMuch(waits) ? "warning" : ""}>
        {waits === undefined ? "–" : waitsText(waits)}
        {isMuch(waits) && " !"}
      </td>
      <td data-name="gaps" class={`number ${source.gaps > 0 ? "warning" : ""}`}>
        {source.gaps}
      </td>
      <td data-name="address" class="mono">
        {source.address || "–"}
      </td>
    </tr>
  );
}

/** A clock that is behind looks the same as events that were recorded late. */
function clockText(offsetMs: number): string {
  const off = durationText(Math.abs(offsetMs));
  return offsetMs > 0 ? `its clock is ${off} ahead !` : `its clock is ${off} behind, or its events came late !`;
}

/** When each collection of a polled source was heard last. */
function lastSeenText({ heardAt }: Source): string {
  const parts = Object.entries(heardAt).map(([name, at]) => `${name} ${agoText(tick.value - (millis(at) ?? 0))}`);
  return parts.length === 0 ? "" : `last seen: ${parts.join(", ")}`;
}

type Waits = Pick<Waiting, "items" | "bytes" | "dropped">;

function waitsText({ items, bytes, dropped }: Waits): string {
  const waiting = items === 0 ? "nothing" : `${plural(items, "item")}, ${bytesText(bytes)}`;
  return dropped === 0 ? waiting : `${waiting}; ${plural(dropped, "frame")} had no room`;
}

function isMuch(waits: Waits | undefined): boolean {
  return waits !== undefined && (waits.items > fewMessages || waits.dropped > 0);
}

/** A few messages are always on their way. */
const fewMessages = 1_000;

function LogFigures({ status: { behindMessages: behind, log, waiting, setAside } }: { readonly status: Status }) {
  return (
    <>
      <div>
        <dt>tables behind the log</dt>
        <dd class={behind > fewMessages ? "warning" : ""}>
          {behind === 0 ? "not at all" : plural(behind, "message")}
          {behind > fewMessages && " !"}
        </dd>
      </div>
      {setAside.map(({ source, events, error }) => (
        <div key={source}>
          <dt>not in the tables</dt>
          <dd class="warning">
            {plural(events, "event")} of {sourceText(source)} ! ({error})
          </dd>
        </div>
      ))}
      {log !== null && (
        <>
          <div>
            <dt>log size</dt>
            <dd>{amountText(log)}</dd>
          </div>
          <div>
            <dt>grew in 24 hours by</dt>
            <dd>{amountText(log.lastDay)}</dd>
          </div>
        </>
      )}
      {waiting !== null && waiting.length > 0 && <WaitingFigure waiting={waiting} />}
    </>
  );
}

/** A message may hold several events. */
function amountText({ bytes, messages }: Amount): string {
  return `${bytesText(bytes)}, ${plural(messages, "message")}`;
}

/** The events that wait while the log is unavailable, of all sources; a few items are always on their way. */
function WaitingFigure({ waiting }: { readonly waiting: readonly Waiting[] }) {
  const sum = (name: keyof Waits) => waiting.reduce((all, one) => all + one[name], 0);
  const all = { items: sum("items"), bytes: sum("bytes"), dropped: sum("dropped") };
  return (
    <div>
      <dt>waits to be recorded</dt>
      <dd class={isMuch(all) ? "warning" : ""}>
        {waitsText(all)}
        {isMuch(all) && " !"}
      </dd>
    </div>
  );
}

function Tokens({ tokens }: { readonly tokens: readonly Token[] }) {
  return (
    <>
      <h2 class="part">Tokens</h2>
      <div class="scrolls">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">name</th>
              <th scope="col">roles</th>
              <th scope="col">developer</th>
              <th scope="col">made</th>
              <th scope="col">ends</th>
              <th scope="col">id</th>
            </tr>
          </thead>
          <tbody>
            {tokens.map((token) => (
              <TokenLine key={`${token.id} ${token.createdAt}`} token={token} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function TokenLine({ token }: { readonly token: Token }) {
  const { id, name, machine, roles, developer, createdAt, expiresAt } = token;
  const left = (millis(expiresAt) ?? 0) - tick.value;
  return (
    <tr>
      <th scope="row">{machine ? `${name} (machine)` : name}</th>
      <td>{roles.join(", ")}</td>
      <td>{developer ?? "–"}</td>
      <td>
        <Ago at={millis(createdAt) ?? 0} />
      </td>
      <td class={left < 0 ? "lost" : left < soonMs ? "warning" : ""} title={expiresAt}>
        {left < 0 ? "has ended" : `in ${ageText(left)}`}
        {left >= 0 && left < soonMs && " !"}
      </td>
      <td class="mono">{id}</td>
    </tr>
  );
}

const soonMs = 7 * 86_400_000;

async function readHealth(signal: AbortSignal): Promise<Health> {
  const began = performance.now();
  const sources = await firstOf(tapedeck().sources({ signal }), maxSources);
  const answeredInMs = performance.now() - began;
  const { token } = about.value ?? {};
  const isAdmin = token?.roles.includes("admin") === true;
  const [readiness, status, subscribers, tokens, workspaces, sinks] = await Promise.all([
    fetch("/readyz", { signal }).then((answer): Promise<Readiness> => answer.json()),
    answerOf<Status>("/api/v1/status", signal),
    readSubscribers(signal),
    isAdmin ? answerOf<{ readonly items: readonly Token[] }>("/api/v1/tokens", signal) : undefined,
    // Without tokens everybody is an admin.
    isAdmin || token === undefined
      ? answerOf<{ readonly items: readonly Workspace[] }>("/api/v1/workspaces", signal)
      : undefined,
    readSinks(signal),
  ]);
  return {
    readiness,
    answeredInMs,
    status,
    subscribers,
    tokens: tokens?.items,
    workspaces: workspaces?.items ?? [],
    sinks,
    sources: sources.toSorted((a, b) => a.source.localeCompare(b.source)),
  };
}

async function readSinks(signal: AbortSignal): Promise<readonly Sink[]> {
  const { items = [] } = (await answerOf<{ readonly items: readonly Sink[] }>("/api/v1/sinks", signal)) ?? {};
  return Promise.all(
    items.map(async (sink) => {
      if (sink.parked === 0) return sink;
      const path = `/api/v1/sinks/${encodeURIComponent(sink.name)}/parked`;
      const parked = await answerOf<{ readonly items: readonly ParkedEvent[] }>(path, signal);
      return { ...sink, parkedEvents: parked?.items };
    }),
  );
}

/** Undefined if it is refused: the text beside it has the reason. */
async function answerOf<Body>(path: string, signal: AbortSignal): Promise<Body | undefined> {
  const answer = await fetch(path, { signal, headers: { accept: "application/json" } });
  return answer.ok ? await answer.json() : undefined;
}

async function readSubscribers(signal: AbortSignal): Promise<number | undefined> {
  const answer = await fetch("/metrics", { signal });
  const line = answer.ok ? /^tapedeck_gateway_subscriptions\S* (\d+)$/m.exec(await answer.text()) : null;
  return line === null ? undefined : Number(line[1]);
}
