import type { Source } from "@tapedeck/client";
import { agoText, durationText, millis, sourceText } from "@tapedeck/client/lanes/format";
import { useEffect, useState } from "preact/hooks";
import { firstOf, useReading } from "../data/reading.ts";
import { about, lostSince, tapedeck, tick } from "../data/tapedeck.ts";
import { sourcePath } from "../model/route.ts";
import { Ago, Loading, Problem, Sign } from "../parts/small.tsx";

type Readiness = {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
  readonly details?: { readonly warnings?: readonly string[] };
};
type Health = { readonly sources: readonly Source[]; readonly readiness: Readiness; readonly answeredInMs: number };

const everyMs = 5_000;
const mostSources = 1_000;

/** Is it recording? Read again every few seconds: nothing of this is an event. */
export function HealthView() {
  const [health, setHealth] = useState<Health>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    document.title = "Health · Tapedeck";
  }, []);
  useReading(
    [],
    async (signal) => {
      for (; !signal.aborted; await new Promise((resolve) => setTimeout(resolve, everyMs))) {
        setHealth(await readHealth(signal));
        lostSince.value = undefined;
      }
    },
    setProblem,
  );
  if (problem !== undefined) return <Problem text={problem} />;
  if (health === undefined) return <Loading what="the state of Tapedeck" />;
  const { sources, readiness } = health;
  const warnings = readiness.details?.warnings ?? [];
  return (
    <div class="health">
      <h1>
        <Sign of={readiness.ready ? "succeeded" : "failed"} label="" />{" "}
        {readiness.ready ? "Recording" : "Not everything works"}
      </h1>
      {warnings.map((text) => (
        <p key={text} class="notice">
          {text}
        </p>
      ))}
      <dl class="checks">
        {Object.entries(readiness.checks).map(([name, is]) => (
          <div key={name}>
            <dt>{checkNames[name] ?? name}</dt>
            <dd class={is === "ok" ? "good" : "bad"}>{is === "ok" ? "✓ ok" : `✕ ${is}`}</dd>
          </div>
        ))}
        <div>
          <dt>answers in</dt>
          <dd>{durationText(health.answeredInMs)}</dd>
        </div>
        <div>
          <dt>version</dt>
          <dd>{about.value?.version}</dd>
        </div>
      </dl>
      <h2 class="part">Sources</h2>
      <div class="scrolls">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">source</th>
              <th scope="col">tool</th>
              <th scope="col">status</th>
              <th scope="col">last event</th>
              <th scope="col" class="number">
                gaps
              </th>
              <th scope="col">address</th>
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <SourceLine key={source.source} source={source} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet-text">
        Figures for monitoring are at <code>/metrics</code>, the reasons of a check that fails at <code>/readyz</code>.
      </p>
    </div>
  );
}

const checkNames: Readonly<Record<string, string>> = {
  log: "log",
  recording: "recording",
  query: "tables (projection)",
};

function SourceLine({ source }: { readonly source: Source }) {
  const last = millis(source.lastEventAt);
  const since = millis(source.notHeardSince);
  const isLost = source.status === "lost";
  return (
    <tr>
      <th scope="row">
        <a href={sourcePath(`${sourceText(source.source)}/${source.upstream}`)}>{sourceText(source.source)}</a>
      </th>
      <td>{source.upstream}</td>
      <td class={isLost ? "lost" : source.status === "recording" ? "good" : ""}>
        {isLost ? "? lost" : source.status === "recording" ? "✓ recording" : `· ${source.status}`}
        {since !== undefined && ` (last heard ${agoText(tick.value - since)})`}
      </td>
      <td>{last === undefined ? "–" : <Ago at={last} />}</td>
      <td class={`number ${source.gaps > 0 ? "warning" : ""}`}>{source.gaps}</td>
      <td class="mono">{source.address}</td>
    </tr>
  );
}

async function readHealth(signal: AbortSignal): Promise<Health> {
  const began = performance.now();
  const sources = await firstOf(tapedeck().sources({ signal }), mostSources);
  const answeredInMs = performance.now() - began;
  const readiness: Readiness = await (await fetch("/readyz", { signal })).json();
  return { sources: sources.toSorted((a, b) => a.source.localeCompare(b.source)), readiness, answeredInMs };
}
