import type { State, TapedeckEvent } from "@tapedeck/client";
import type { Lane } from "@tapedeck/client/lanes/now";
import { timeOf } from "@tapedeck/client/lanes/step";
import { useState } from "preact/hooks";
import { inFrames, useReading } from "../data/reading.ts";
import { tapedeck } from "../data/tapedeck.ts";
import { forgePath } from "../model/forge.ts";
import { sessionPath, sourceDaysPath } from "../model/route.ts";
import { stateSections } from "../model/state-sections.ts";
import { withUnchanged } from "../model/unchanged.ts";
import { Ago } from "../parts/small.tsx";
import { StateSections } from "../parts/state-panel.tsx";

const maxEvents = 30;
/** Output is in the session; here is what it led to. */
const isVisible = ({ kind }: TapedeckEvent) => !/^(log|terminal|mirror)\./.test(kind);

/** A source's state and newest events, kept up to date. */
function useSourceNow(source: string) {
  const [state, setState] = useState<State>();
  const [events, setEvents] = useState<readonly TapedeckEvent[]>([]);
  const [error, setError] = useState<string>();
  useReading(
    [source],
    async (signal) => {
      const client = tapedeck();
      const at = await client.state(source, { signal });
      setState(at);
      const messages = client.subscribe({ sources: [source], after: at.position, signal, onGap: () => {} });
      let isRequested = false;
      await inFrames(messages, signal, (batch) => {
        const found = batch.flatMap((message) => (message.type === "event" ? [message.event] : [])).filter(isVisible);
        if (found.length === 0) return;
        setEvents((before) => [...found.toReversed(), ...before].slice(0, maxEvents));
        // The state is the upstream's own; the gateway folds it, and one question at a time is enough.
        if (isRequested) return;
        isRequested = true;
        void client
          .state(source, { signal })
          .then(setState, () => {})
          .finally(() => {
            isRequested = false;
          });
      });
    },
    setError,
  );
  return { state, events, error };
}

/** A source's present state and its events as they come, beside the list. */
export function SourcePanel({ row }: { readonly row: Lane }) {
  const { state, events, error } = useSourceNow(row.source);
  return (
    <aside class="panel" aria-label={`State of ${row.name}`}>
      <header>
        <h2>{row.name}</h2>
        <span class="quiet-text">{row.upstream}</span>
        <a class="close" href="/" aria-label="Close" title="Close (Escape)">
          ×
        </a>
      </header>
      <p>
        {row.session !== undefined && (
          <>
            <a href={sessionPath(row.session)}>Open the session</a> ·{" "}
          </>
        )}
        <a href={sourceDaysPath(row.source)}>all its sessions</a>
      </p>
      <LabelList labels={row.labels} />
      {error !== undefined && <p class="notice">{error}</p>}
      {state === undefined && error === undefined && <p class="quiet-text">Reading the state …</p>}
      {state !== undefined && (
        <StateSections sections={withUnchanged(stateSections(state.upstream, state.state), row.loops)} />
      )}
      {events.length > 0 && (
        <section class="state">
          <h3>Events</h3>
          <ol class="events-short">
            {events.map((event) => (
              <li key={event.position} class={`changes ${event.outcome ?? ""}`}>
                <span class="what">{event.summary}</span> <Ago at={timeOf(event)} />
              </li>
            ))}
          </ol>
        </section>
      )}
    </aside>
  );
}

/** The labels of a session or loop. Branch and commit lead to the forge, where the remote is known. */
export function LabelList({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return null;
  return (
    <p class="label-list">
      {entries.map(([name, value]) => {
        const path = forgePath(labels, name);
        return (
          <span key={name}>
            <i>{name}</i>{" "}
            {path === undefined ? (
              value
            ) : (
              <a href={path} target="_blank" rel="noreferrer">
                {value.replace(/^https:\/\//, "")}
              </a>
            )}
          </span>
        );
      })}
    </p>
  );
}
