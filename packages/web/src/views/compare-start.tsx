import { causeText } from "@tapedeck/client/lanes/headline";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import { failedSince, groupOf, type Lane } from "@tapedeck/client/lanes/now";
import { type Loop, stepText } from "@tapedeck/client/lanes/step";
import { now } from "../data/shown.ts";
import { tick } from "../data/tapedeck.ts";
import { comparePath, loopSide } from "../model/route.ts";
import { Sign } from "../parts/small.tsx";

const maxPeers = 3;

/** Lists the sources that fail now, each with its last good loop and with others of its project that work. */
export function WhoFails() {
  const lanes = [...(now.value?.values() ?? [])];
  const failing = lanes.flatMap((lane) => {
    const failed = groupOf(lane, tick.value) === "failing" ? failedSince(lane).at(-1) : undefined;
    return failed === undefined ? [] : [{ lane, failed }];
  });
  if (failing.length === 0) return null;
  return (
    <section class="who-fails" aria-label="Who fails now">
      <h2 class="part">Who fails now</h2>
      <ul>
        {failing.map(({ lane, failed }) => (
          <Failing key={lane.source} lane={lane} failed={failed} peers={peersOf(lane, lanes)} />
        ))}
      </ul>
    </section>
  );
}

/** Those of the same project and tool for whom it works. */
function peersOf(lane: Lane, lanes: readonly Lane[]): readonly Lane[] {
  const project = lane.name.slice(lane.name.indexOf("/"));
  const works = (other: Lane) => other.loops.length > 0 && groupOf(other, tick.value) !== "failing";
  const isPeer = (other: Lane) =>
    other !== lane && other.upstream === lane.upstream && other.name.endsWith(project) && works(other);
  return lanes.filter(isPeer).slice(0, maxPeers);
}

type FailingProps = { readonly lane: Lane; readonly failed: Loop; readonly peers: readonly Lane[] };

function Failing({ lane, failed, peers }: FailingProps) {
  const step = firstFailure(failed.steps);
  const side = failed.kind === "loop" ? loopSide(failed) : `${failed.session}@${failed.endPosition ?? failed.position}`;
  const what = step === undefined ? (failed.kind === "loop" ? "" : stepText(failed)) : stepText(step);
  return (
    <li>
      <p>
        <Sign of="failed" /> <b>{lane.name}</b> {what !== "" && <b class="bad">{what}</b>} {causeText(step ?? failed)}
      </p>
      <p class="against">
        <span class="quiet-text">compare with</span> <a href={comparePath(side)}>its last good one</a>
        {peers.map(({ source, name, upstream }) => (
          <a key={source} href={comparePath(side, `${name}/${upstream}`)}>
            {name}
          </a>
        ))}
      </p>
    </li>
  );
}
