import { durationText, millis, plural } from "@tapedeck/client/lanes/format";
import { Ago } from "./small.tsx";

/** See Sink of the API. */
export type Sink = {
  readonly name: string;
  readonly target: string;
  readonly state: "delivering" | "retrying" | "full" | "waiting" | "paused";
  readonly lagEvents: number;
  readonly lagSeconds: number;
  readonly parked: number;
  readonly error: string | null;
  readonly failure: "refused" | "away" | null;
  readonly failingSince: string | null;
  /** Those that are parked, the oldest first. */
  readonly parkedEvents?: readonly ParkedEvent[] | undefined;
};

/** See ParkedEvent of the API. */
export type ParkedEvent = {
  readonly position: string;
  readonly kind: string;
  readonly tries: number;
  readonly error: string;
  readonly at: string;
};

/** Where events are delivered, and how far that is. */
export function Sinks({ sinks }: { readonly sinks: readonly Sink[] }) {
  return (
    <>
      <h2 class="part">Sinks</h2>
      <div class="scrolls">
        <table class="list stacks">
          <thead>
            <tr>
              <th scope="col">sink</th>
              <th scope="col">target</th>
              <th scope="col">state</th>
              <th scope="col">behind</th>
              <th scope="col" class="number">
                parked
              </th>
              <th scope="col">last failure</th>
            </tr>
          </thead>
          <tbody>
            {sinks.map((sink) => (
              <SinkLine key={sink.name} {...sink} />
            ))}
          </tbody>
        </table>
      </div>
      {sinks.map(
        ({ name, parkedEvents = [] }) =>
          parkedEvents.length > 0 && <Parked key={name} name={name} events={parkedEvents} />,
      )}
    </>
  );
}

/** What its target refuses, and what to do about it. */
function Parked({ name, events }: { readonly name: string; readonly events: readonly ParkedEvent[] }) {
  return (
    <details>
      <summary>
        {plural(events.length, "event")} parked of {name}: <code>tapedeck sink retry {name}</code>, or{" "}
        <code>drop {name}</code>
      </summary>
      <div class="scrolls">
        <table class="list stacks">
          <thead>
            <tr>
              <th scope="col">event</th>
              <th scope="col">position</th>
              <th scope="col" class="number">
                tries
              </th>
              <th scope="col">answer</th>
              <th scope="col">parked</th>
            </tr>
          </thead>
          <tbody>
            {events.map(({ position, kind, tries, error, at }) => (
              <tr key={position}>
                <th scope="row">{kind}</th>
                <td data-name="position" class="mono">
                  {position}
                </td>
                <td data-name="tries" class="number">
                  {tries}
                </td>
                <td data-name="answer">{error}</td>
                <td data-name="parked">
                  <Ago at={millis(at) ?? 0} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

const stateTexts = {
  delivering: "✓ delivering",
  retrying: "✕ its target refuses",
  full: "✕ too many events are parked",
  waiting: "· waiting",
  paused: "· paused",
} as const satisfies Record<Sink["state"], string>;

function SinkLine({ name, target, state, lagEvents, lagSeconds, parked, error, failure, failingSince }: Sink) {
  const since = millis(failingSince);
  const isFailing = state === "retrying" || state === "full";
  return (
    <tr>
      <th scope="row">{name}</th>
      <td data-name="target" class="mono">
        {target}
      </td>
      <td data-name="state" class={isFailing ? "lost" : state === "delivering" ? "good" : ""}>
        {state === "retrying" && failure === "away" ? "✕ its target is away" : stateTexts[state]}
      </td>
      <td data-name="behind">{behindText(lagEvents, lagSeconds)}</td>
      <td data-name="parked" class={`number ${parked > 0 ? "warning" : ""}`}>
        {parked}
      </td>
      <td data-name="last failure">
        {error ?? "–"}
        {since !== undefined && (
          <>
            {" "}
            (<Ago at={since} />)
          </>
        )}
      </td>
    </tr>
  );
}

function behindText(messages: number, seconds: number): string {
  if (messages === 0) return "not at all";
  const text = plural(messages, "message");
  return seconds === 0 ? text : `${text}, ${durationText(seconds * 1_000)}`;
}
