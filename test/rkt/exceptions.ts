import type { RecordedUnary, RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import { InspectImageRequest, InspectPodRequest, type Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { answerOf } from "./steps.ts";

/** Why an answer differs from the recorded one, and how: as far as it is given here. */
export type Exception = {
  readonly why: string;
  readonly answer: (recording: RecordedUpstream, call: RecordedUnary) => object;
};

const raced = "the pod moved on between the poll before and the call";
const doubted = "an aborted preparation is believed when it is seen twice";
const missedOnce = "what is missing is gone when it is missed twice";
const stale = "an answer that had to wait for a pid file is stale: not believed";
const between = "what came and went between two polls nobody saw";
const neverListed = "no poll listed the pod";

/** By recording, then by the number of the call. All others are answered exactly as recorded. */
export const exceptions: Readonly<Record<string, Readonly<Record<number, Exception>>>> = {
  "02-fast-and-skipped-states": { 100: { why: missedOnce, answer: as(94) } },
  "03-prepare-aborted": {
    15: { why: raced, answer: listedIn(12) },
    18: { why: doubted, answer: listedIn(12) },
    39: { why: doubted, answer: as(31) },
  },
  "05-app-exit-codes": {
    14: { why: raced, answer: listedIn(12) },
    84: { why: raced, answer: listedIn(82) },
  },
  "07-errors": {
    33: { why: "the text of an image that was cached is the server's own affair", answer: as(34) },
  },
  "10-blocking-start": {
    20: { why: stale, answer: as(11) },
    21: { why: stale, answer: refused("unable to resolve UUID") },
    30: { why: stale, answer: refused("unable to resolve UUID") },
    31: { why: stale, answer: as(24) },
    38: { why: neverListed, answer: refused("unable to resolve UUID") },
    40: { why: neverListed, answer: refused("unable to resolve UUID") },
  },
  "11-image-cache": {
    16: { why: missedOnce, answer: as(10) },
    23: { why: between, answer: listedIn(19) },
    39: { why: missedOnce, answer: as(35) },
    40: { why: neverListed, answer: refused("unable to resolve UUID") },
    43: { why: neverListed, answer: refused("unable to resolve UUID") },
    55: {
      why: "a damaged image is not listed, so it is not there",
      answer: refused(
        'ACI info not found with blob key "sha512-1b245c2a6e5608c106c92878868c96293d574d70c677eb8a93d9197d53537f59"',
      ),
    },
  },
  "14-false-aborted-prepare": {
    13: { why: "exit code -1 says that it could not be read", answer: withoutCodes(13) },
    19: { why: doubted, answer: as(15) },
  },
};

/** Returns the recorded answer of that call. */
function as(n: number): Exception["answer"] {
  return (recording) => answerOf(callOf(recording, n));
}

/** The requested item as in that list. Lists have no manifests. */
function listedIn(n: number): Exception["answer"] {
  return (recording, { rpc, request }) => {
    const requested = (rpc === "InspectPod" ? InspectPodRequest : InspectImageRequest).decode(request).id;
    const found = resultOf<{ id: string; manifest: Buffer }>(recording, n).find(({ id }) => id === requested);
    if (found === undefined) throw new Error(`${recording.name} ${n} has no ${requested}`);
    const { manifest: _, ...result } = found;
    return { result };
  };
}

function withoutCodes(n: number): Exception["answer"] {
  return (recording) => {
    const zero = (pod: Pod) => ({ ...pod, apps: pod.apps.map((app) => ({ ...app, exit_code: 0 })) });
    return { result: resultOf<Pod>(recording, n).map(zero) };
  };
}

function refused(message: string): Exception["answer"] {
  return () => ({ code: 2, message });
}

function resultOf<T>(recording: RecordedUpstream, n: number): readonly T[] {
  return (answerOf(callOf(recording, n)) as { readonly result: readonly T[] }).result;
}

function callOf({ name, rows }: RecordedUpstream, n: number): RecordedUnary {
  const call = rows.find((row) => row.n === n);
  if (call?.kind !== "unary") throw new Error(`${name} ${n} is no call`);
  return call;
}
