import type { StatsRow } from "@tapedeck/client";
import { durationText, plural } from "@tapedeck/client/lanes/format";
import type { Answered } from "../../data/reading.ts";
import type { Pick } from "../../model/trends/choice.ts";
import {
  commandKey,
  commandText,
  type FlakyArtifact,
  nameOf,
  type SlowArtifact,
  shareText,
} from "../../model/trends/figures.ts";
import { Panel, type PanelSql } from "./panel.tsx";
import { Sparkline } from "./sparkline.tsx";

type ArtifactProps<Artifact> = {
  readonly answered: Answered<readonly Artifact[]>;
  readonly sql: PanelSql;
  readonly picked: Pick | undefined;
  readonly pick: (of: string) => void;
};

export function SlowPanel({ answered, sql, picked, pick }: ArtifactProps<SlowArtifact>) {
  const { value: artifacts, error } = answered;
  return (
    <Panel
      name="slow"
      title="Slowest artifacts"
      definition="How long builds of an artifact take that ran; those from the cache are left out."
      sql={sql}
      error={error}
    >
      {artifacts.length === 0 ? (
        <p class="nothing">Nothing was built in this time.</p>
      ) : (
        <table class="list artifacts">
          <thead>
            <tr>
              <th scope="col">artifact</th>
              <th scope="col" class="number">
                p50
              </th>
              <th scope="col" class="number">
                p90
              </th>
              <th scope="col" class="number">
                builds
              </th>
              <th scope="col" class="over-time">
                p50 over time
              </th>
            </tr>
          </thead>
          <tbody>
            {artifacts.map((one) => (
              <tr key={nameOf(one)} data-artifact={nameOf(one)}>
                <ArtifactName one={one} isPicked={picked?.of === nameOf(one)} pick={pick} />
                <td class="number" data-value={one.p50Ms ?? ""}>
                  {durationText(one.p50Ms ?? 0)}
                </td>
                <td class="number" data-value={one.p90Ms ?? ""}>
                  {durationText(one.p90Ms ?? 0)}
                </td>
                <td class="number" data-value={one.builds}>
                  {one.builds}
                </td>
                <td class="over-time">
                  <Sparkline values={one.series} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

export function FlakyPanel({ answered, sql, picked, pick }: ArtifactProps<FlakyArtifact>) {
  const { value: artifacts, error } = answered;
  return (
    <Panel
      name="flaky"
      title="Flaky artifacts"
      definition="Failed builds that the artifact's next build did not repeat. A repaired file counts too: flakes of several developers say more."
      sql={sql}
      error={error}
    >
      {artifacts.length === 0 ? (
        <p class="nothing">No build failed and then succeeded in this time.</p>
      ) : (
        <table class="list artifacts">
          <thead>
            <tr>
              <th scope="col">artifact</th>
              <th scope="col" class="number">
                flakes
              </th>
              <th scope="col" class="number">
                of builds
              </th>
              <th scope="col">seen by</th>
              <th scope="col" class="over-time">
                flakes over time
              </th>
            </tr>
          </thead>
          <tbody>
            {artifacts.map((one) => (
              <tr key={nameOf(one)} data-artifact={nameOf(one)}>
                <ArtifactName one={one} isPicked={picked?.of === nameOf(one)} pick={pick} />
                <td class="number" data-value={one.flakes}>
                  {one.flakes}
                </td>
                <td class="number" data-value={one.builds}>
                  {one.builds} ({shareText(one.flakes / one.builds)})
                </td>
                <td>{plural(one.developers, "developer")}</td>
                <td class="over-time">
                  <Sparkline values={one.series} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

type NameProps = {
  readonly one: { readonly project: string; readonly artifact: string };
  readonly isPicked: boolean;
  readonly pick: (of: string) => void;
};

function ArtifactName({ one, isPicked, pick }: NameProps) {
  return (
    <th scope="row" title={nameOf(one)}>
      <button type="button" class="quiet" aria-pressed={isPicked} onClick={() => pick(nameOf(one))}>
        {one.artifact}
      </button>{" "}
      <span class="quiet-text">{one.project}</span>
    </th>
  );
}

type CommandsProps = {
  readonly answered: Answered<readonly StatsRow<"commands">[]>;
  readonly sql: PanelSql;
  readonly picked: Pick | undefined;
  readonly pick: (of: string) => void;
};

export function CommandsPanel({ answered, sql, picked, pick }: CommandsProps) {
  const { value: commands, error } = answered;
  return (
    <Panel
      name="commands"
      title="Vagrant's commands"
      definition="How long commands take by machine, and how many of them fail."
      sql={sql}
      error={error}
    >
      <table class="list artifacts">
        <thead>
          <tr>
            <th scope="col">command</th>
            <th scope="col">machine</th>
            <th scope="col" class="number">
              p50
            </th>
            <th scope="col" class="number">
              p90
            </th>
            <th scope="col" class="number">
              runs
            </th>
            <th scope="col" class="number">
              failed
            </th>
          </tr>
        </thead>
        <tbody>
          {commands.map((row) => (
            <tr key={commandKey(row)} data-command={commandKey(row)}>
              <th scope="row">
                <button
                  type="button"
                  class="quiet"
                  aria-pressed={picked?.of === commandKey(row)}
                  aria-label={commandText(commandKey(row))}
                  onClick={() => pick(commandKey(row))}
                >
                  {row.command}
                </button>
              </th>
              <td>{row.machine || "–"}</td>
              <td class="number" data-value={row.p50Ms ?? ""}>
                {row.p50Ms === null ? "–" : durationText(row.p50Ms)}
              </td>
              <td class="number" data-value={row.p90Ms ?? ""}>
                {row.p90Ms === null ? "–" : durationText(row.p90Ms)}
              </td>
              <td class="number" data-value={row.runs}>
                {row.runs}
              </td>
              <td class={`number ${row.failed === 0 ? "" : "bad"}`} data-value={row.failed}>
                {row.failed}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
