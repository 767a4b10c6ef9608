import type { State } from "@tapedeck/client";
import { loopsOf } from "@tapedeck/client/lanes/now";
import type { Loop } from "@tapedeck/client/lanes/step";
import { useMemo, useState } from "preact/hooks";
import { reader } from "../data/reader.ts";
import { answered, firstOf, useReading } from "../data/reading.ts";
import { outputOf } from "../model/output.ts";
import { loopPath, sessionPath } from "../model/route.ts";
import { type ChangedState, isReset, stateChanges } from "../model/state-change.ts";
import { type StateRow, stateSections } from "../model/state-sections.ts";
import { deployedTags, shortTag, withUnchanged } from "../model/unchanged.ts";
import { StateValue, stateSigns } from "../parts/state-panel.tsx";
import { to } from "../router.ts";

type Props = { readonly source: string; readonly loop: Loop };
type BeforeAndAfter = {
  readonly before: State | undefined;
  readonly after: State | undefined;
  /** The loops of the session up to this one with their builds, oldest first. */
  readonly loops: readonly Loop[];
  /** By artifact. */
  readonly tags: ReadonlyMap<string, string>;
};

const maxBuilds = 1_000;

async function loopsUntil({ session, runner, position, endPosition }: Loop, signal: AbortSignal) {
  const kinds = ["loop", "build"] as const;
  const options = { sessions: [session], kinds, ...(endPosition !== undefined && { at: endPosition }), signal };
  const found = await firstOf(reader().operations(options), maxBuilds);
  return loopsOf(found, maxBuilds).filter((one) => one.runner === runner && one.position <= position);
}

/** What is another than when the loop began: the state of both moments, as the API gives it. */
export function StateChanges({ source, loop }: Props) {
  const [read, setRead] = useState<BeforeAndAfter>();
  const [error, setError] = useState<string>();
  useReading(
    [loop.position, loop.endPosition, loop.steps],
    async (signal) => {
      const at = async (position: string | undefined) => {
        const options = { session: loop.session, ...(position !== undefined && { at: position }), signal };
        return answered<State | undefined>(reader().state(source, options), undefined, signal);
      };
      const [before, after, loops] = await Promise.all([
        at(loop.position),
        at(loop.endPosition),
        answered<readonly Loop[]>(loopsUntil(loop, signal), [], signal),
      ]);
      const shown = { before: before.value, after: after.value, loops: loops.value };
      setRead({ ...shown, tags: new Map() });
      const tags = await answered(readTags(after.value, loops.value, signal), new Map(), signal);
      setRead({ ...shown, tags: tags.value });
      setError(before.error ?? after.error);
    },
    setError,
  );
  const changes = useMemo(() => read && changesOf(read, loop), [read]);
  const isKnown = read !== undefined && isOf(read.before, loop.position) && isOf(read.after, loop.endPosition);
  return (
    <section class="state-changes" aria-label="What changed in state">
      <h2 class="part">
        What changed in state{" "}
        <span class="quiet-text">
          {loop.endedAt === undefined ? "since it began" : "between its start and its end"}
        </span>
      </h2>
      {error !== undefined ? (
        <p class="quiet-text">The state of then could not be read. {error}</p>
      ) : changes === undefined || read === undefined ? (
        <p class="quiet-text">Reading the state …</p>
      ) : (
        <>
          {!isKnown && <p class="quiet-text">The state of one of these moments is that of an earlier one.</p>}
          <Changes changes={changes} loop={loop} />
          <Kept read={read} />
        </>
      )}
    </section>
  );
}

const maxLines = 5_000;
const onGap = () => {};

/** The tags of the artifacts that were not built again: the output of the loop that built them lists them. */
async function readTags(after: State | undefined, loops: readonly Loop[], signal: AbortSignal) {
  const rows = withUnchanged(sectionsOf(after), loops).flatMap((section) => section.rows);
  const tags = new Map<string, string>();
  for (const [index, built] of loops.entries()) {
    if (!rows.some(({ path }) => path === loopPath(built))) continue;
    const { session, position } = built;
    // Output may follow the end of its loop.
    const until = loops[index + 1]?.position ?? "now";
    const options = { sessions: [session], kinds: ["log.written"], after: position, until, onGap, signal } as const;
    const lines = await firstOf(reader().events(options), maxLines);
    const output = outputOf(lines, built).map(({ text }) => text);
    for (const { name } of rows.filter(({ path }) => path === loopPath(built))) {
      const tag = deployedTags(output.join("")).get(name);
      if (tag !== undefined) tags.set(name, tag);
    }
  }
  return tags;
}

function changesOf({ before, after, loops }: BeforeAndAfter, { position }: Loop): readonly ChangedState[] {
  const earlier = loops.filter((one) => one.position < position);
  return stateChanges(withUnchanged(sectionsOf(before), earlier), sectionsOf(after));
}

function sectionsOf(state: State | undefined) {
  return state === undefined ? [] : stateSections(state.upstream, state.state);
}

/** What the loop left as it was: the artifacts that it did not build, with their tags, and the ports to open. */
function Kept({ read: { after, loops, tags } }: { readonly read: BeforeAndAfter }) {
  const sections = withUnchanged(sectionsOf(after), loops);
  const rowsOf = (title: string) => sections.find((section) => section.title === title)?.rows ?? [];
  const kept = Map.groupBy(
    rowsOf("Artifacts").filter(({ path }) => path !== undefined),
    ({ value }) => value,
  );
  const ports = rowsOf("Ports");
  return (
    <>
      {[...kept].map(([value, rows]) => (
        <p key={value} class="kept">
          <a href={to(rows[0]?.path ?? "/")}>{value}</a>:{" "}
          {rows.map(({ name }, index) => (
            <span key={name}>
              {index > 0 && ", "}
              {name}
              {tags.has(name) && <code title={tags.get(name)}> {shortTag(tags.get(name) ?? "")}</code>}
            </span>
          ))}
        </p>
      ))}
      {ports.length > 0 && (
        <p class="kept">
          ports:{" "}
          {ports.map((row, index) => (
            <span key={`${row.name} ${row.value}`}>
              {index > 0 && ", "}
              {row.name} <StateValue row={row} />
            </span>
          ))}
        </p>
      )}
    </>
  );
}

/** Whether a state is of the moment that was asked for: a file may have only an earlier one. */
function isOf(state: State | undefined, position: string | undefined): boolean {
  return position === undefined || state?.at === position;
}

type ChangesProps = { readonly changes: readonly ChangedState[]; readonly loop: Loop };

function Changes({ changes, loop }: ChangesProps) {
  const isRunning = loop.endedAt === undefined;
  const changed = changes.filter((one) => !isReset(one, isRunning));
  // Artifacts that were not built again are listed below, with since when.
  const reset = changes.filter((one) => isReset(one, isRunning) && one.section !== "Artifacts");
  if (changed.length + reset.length === 0) return <p class="quiet-text">Nothing: it left everything as it was.</p>;
  return (
    <>
      {changed.length > 0 && <ChangeTable changes={changed} loop={loop} />}
      {reset.length > 0 && (
        <p class="quiet-text">
          Not run again{isRunning && " yet"}: {reset.map(({ name }) => name).join(", ")}
        </p>
      )}
    </>
  );
}

function ChangeTable({ changes, loop }: ChangesProps) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">what</th>
          <th scope="col">
            <a href={to(sessionPath(loop.session, loop.position))}>before</a>
          </th>
          <th scope="col">
            {loop.endPosition === undefined ? (
              "now"
            ) : (
              <a href={to(sessionPath(loop.session, loop.endPosition))}>after</a>
            )}
          </th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ section, name, before, after }, index) => (
          <tr key={`${section} ${name} ${index}`}>
            <th scope="row">
              {name} <span class="quiet-text">{section.toLowerCase()}</span>
            </th>
            <Value row={before} />
            <Value row={after} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Value({ row }: { readonly row: StateRow | undefined }) {
  if (row === undefined) return <td class="quiet-text">–</td>;
  return (
    <td class={row.tone}>
      <span aria-hidden="true">{stateSigns[row.tone]}</span> <StateValue row={row} />
    </td>
  );
}
