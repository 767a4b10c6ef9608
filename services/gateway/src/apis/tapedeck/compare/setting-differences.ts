import type { SideSummary } from "./side-summary.ts";
import { isMentioned, type Story } from "./story.ts";
import { compared, explained, named, type Pair } from "./value-differences.ts";
import { type Compared, nothing } from "./weighed.ts";

const deploying = ["deploy", "check", "verify", "exec", "render"];
/** Files are synced into what was built. */
const building = ["build", "sync"];

export function settingDifferences(left: SideSummary, right: SideSummary, story: Story): Compared {
  if (left.settings.size === 0 || right.settings.size === 0) return nothing;
  return compared("configuration", [left.settings, right.settings], right, (pair) => {
    // It comes just after the version.
    if (isVersionAgain(pair, left, right)) return 54;
    if (isSaidElsewhere(pair, left, right)) return undefined;
    const [area, name] = partsOf(pair);
    const place = ofApp.includes(area) ? name.slice(appOf(name).length + 1) : "";
    const isNamed = isMentioned(story, [pair.left?.value ?? "", pair.right?.value ?? "", place]);
    const isKnown =
      area === "arch" ? story.explains.has("platform") : story.explains.has("configuration") && isOfPhase(pair, story);
    const points = 58 + fit(pair, story) + (isKnown ? explained - 12 : 0) + (isNamed ? named : 0);
    // Another builder needs other files.
    return isOfOtherBuilder(pair, left, right) ? Math.min(points, 50) : points;
  });
}

/** "build.web.dockerfile", "box.debian/12.libvirt", "image.example.com/worker": the area, and what is behind it. */
function partsOf({ subject }: Pair): readonly [area: string, name: string] {
  const [area = ""] = subject.split(".");
  return [area, subject.slice(area.length + 1)];
}

/** The settings of an app of a rkt host: "mount.api./data", "network.api". */
const ofApp = ["network", "mount", "exec", "env", "limit"];
/** Names of apps have no dots. */
const appOf = (name: string) => name.split(".")[0] ?? "";

/**
 * Another version of an image has another content; an artifact or an app that only one side has is a difference of its own,
 * and an app that does not run has no network.
 */
function isSaidElsewhere(pair: Pair, left: SideSummary, right: SideSummary): boolean {
  const [area, name] = partsOf(pair);
  const isOnOneSide = (of: (summary: SideSummary) => boolean | undefined) => of(left) !== of(right);
  if (area === "build") {
    const isOfArtifact = ownOfArtifact.test(pair.subject);
    // Only v2 of Skaffold reports these, and it may have been silent until then.
    if (isOfArtifact && isMissing(pair) && !knowsArtifacts(pair.left === undefined ? left : right)) return true;
    return isOnOneSide(({ artifacts }) => artifacts?.has(name.replace(/\.[^.]*$/, "")));
  }
  if (area === "arch") return isMissing(pair);
  if (area === "content")
    return isMissing(pair) || isOther(`image.${name}`, left, right) || isOther(`arch.${name}`, left, right);
  if (!ofApp.includes(area)) return false;
  return isOnOneSide(({ resources }) => resources.has(appOf(name))) || (area === "network" && isMissing(pair));
}

const ownOfArtifact = /^build\..+\.(?:type|context|dockerfile)$/;

function knowsArtifacts({ settings }: SideSummary): boolean {
  return [...settings.keys()].some((setting) => ownOfArtifact.test(setting));
}

function isOfOtherBuilder({ subject }: Pair, left: SideSummary, right: SideSummary): boolean {
  const artifact = /^(?<artifact>build\..+)\.(?:context|dockerfile)$/.exec(subject)?.groups?.artifact;
  return artifact !== undefined && isOther(`${artifact}.type`, left, right);
}

function isOther(setting: string, left: SideSummary, right: SideSummary): boolean {
  return left.settings.get(setting)?.value !== right.settings.get(setting)?.value;
}

const isMissing = ({ left, right }: Pair) => left === undefined || right === undefined;

/** How well a setting explains the failure, apart from the texts. */
function fit(pair: Pair, story: Story): number {
  const [area, name] = partsOf(pair);
  const isOfImage = ["image", "content", "arch"].includes(area);
  if (isOfImage && story.subject !== "" && lastPart(name) === lastPart(story.subject)) return 25;
  if (ofApp.includes(area) && !isOfFailed(name, story)) return -28;
  // The value of a variable is another on most hosts, but not whether it is there.
  if (area === "env") return isMissing(pair) ? 5 : 0;
  if (ofApp.includes(area)) return 10;
  // An item that only one side has fetched is not used by anything that both have.
  if (isInventory(area)) return pair.left === undefined || pair.right === undefined ? -28 : 0;
  if (!story.isFailure) return isSlow(area, name, story) ? 12 : 0;
  if (area === "build" && story.subject !== "" && name.split(".")[0] === story.subject) return 25;
  if (isOfPhase(pair, story)) return 12;
  return area === "build" || building.includes(story.phase) ? -15 : 0;
}

function isOfPhase(pair: Pair, story: Story): boolean {
  const [area, name] = partsOf(pair);
  if (story.areas.has(area)) return true;
  if (ofApp.includes(area)) return isOfFailed(name, story);
  if (area === "build") return building.includes(story.phase);
  // A box is of the provider that the texts speak of, as "VirtualBox".
  if (area === "box") return story.words.some((word) => word.toLowerCase() === name.split(".").at(-1));
  return deploying.includes(story.phase);
}

/** Whether the steps that the setting is about take much longer than they should. */
function isSlow(area: string, name: string, { slow }: Story): boolean {
  // What begins a phase makes it no slower.
  if (name === "automatic") return false;
  if (area !== "build") return area === "deploy" && slow.some(({ kind }) => deploying.includes(kind));
  const [artifact, field] = name.split(".");
  return slow.some(({ kind, subject }) => kind === "build" && (field === undefined || subject === artifact));
}

const isInventory = (area: string) => area === "box" || area === "image";
const isOfFailed = (name: string, { subject }: Story) => appOf(name) === lastPart(subject);
const lastPart = (name: string) => name.split("/").at(-1);

/** rkt's own stage 1 is as new as rkt, and its APIs are. */
function isVersionAgain({ subject, left: one, right: other }: Pair, left: SideSummary, right: SideSummary): boolean {
  if (left.version.value === right.version.value) return false;
  return subject.startsWith("host.") || (one?.value === left.version.value && other?.value === right.version.value);
}
