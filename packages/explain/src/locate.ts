import type { Candidate } from "./candidate.ts";
import type { Line } from "./lines.ts";
import { type CodePlace, fileIn, isForeign, placesIn, subjectOf } from "./places.ts";
import { isExceptionHead, isFrame, ownPlace } from "./stacks.ts";

/** The most lines that belong to a report. */
const maxBelow = 40;
const maxAbove = 30;

/** The lines with a place that compilers, linters and runners put above or below a message. */
const pointer =
  /^(?:-->|❯|╭─*\[|┌─+|,-\[|on \S+ line \d+|# +at \S+ line \d+|The error appears to be in|# \.{0,2}\/?\S+:\d+|at \S+:\d+|\(at |\(?in test file|at: |[Ll]ocation *: |[Ff]ile *: |(?!package:)\S+ \d+:\d+ {2,}\S|\(file |\S+:\d+: [\w.!?]+\/\d+$)/;
/** A line that is only a place, or begins with one and says no more than the class of the error. */
const placeAlone =
  /^(?:\.{0,2}\/)?[^\s:("']{1,300}(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)):?(?: \w*(?:Error|Exception|Failure|error|panicked)?:?)?(?: (?:lint|assist)\/.{0,200}| \((?:[\w ]{1,40})\))?$/;

export function locate(lines: readonly Line[], { index, kind }: Candidate): CodePlace | undefined {
  const own = ownLine(lines, index, kind);
  if (own?.line != null) return own;
  const announced = underlined(lines, index) ?? lineOfNamed(lines, index);
  if (announced !== undefined) return announced;
  const apart = rowsApart(lines, index);
  if (apart !== undefined) return apart;
  if (kind === "hollow") return own;
  const isPython = lines.slice(Math.max(0, index - 6), index).some(({ bare }) => /^File "|^Traceback /.test(bare));
  const around = isPython
    ? (above(lines, index) ?? below(lines, index, kind))
    : (below(lines, index, kind) ?? above(lines, index));
  return around ?? own;
}

function ownLine(lines: readonly Line[], index: number, kind: Candidate["kind"]): CodePlace | undefined {
  const bare = lines[index]?.bare ?? "";
  const annotated = annotation(lines[index]?.text ?? "");
  if (annotated !== undefined) return annotated;
  const places = placesIn(bare).filter((place) => !isForeign(place));
  if (kind === "phrase" || kind === "error" || kind === "hollow") {
    const first = places[0];
    if (first !== undefined) return first;
  } else if (places[0] !== undefined) return places[0];
  return lineApart(bare) ?? subjectOf(bare) ?? conflictIn(bare);
}

/** What a workflow's command names: `::error file=src/a.ts,line=3::…`. */
function annotation(text: string): CodePlace | undefined {
  const { file, line } =
    /::error [^:]{0,100}?file=(?<file>[^,:]{1,300})(?:,line=(?<line>\d{1,7}))?/.exec(text)?.groups ?? {};
  return file === undefined ? undefined : { file, line: line === undefined ? null : Number(line) };
}

/** A file whose line stands further on: `error parsing deploy.yaml: yaml: line 9: …`. */
function lineApart(bare: string): CodePlace | undefined {
  const line = [...bare.matchAll(/\b[Ll]ine (\d{1,7})\b|\((\d{1,7}):\d+\)$/g)].at(-1);
  const file = line === undefined ? undefined : fileIn(bare);
  return file === undefined ? undefined : { file, line: Number(line?.[1] ?? line?.[2]) };
}

/** A place, its code and a caret that stand above a message: the frames below lead only there. */
function underlined(lines: readonly Line[], index: number): CodePlace | undefined {
  const before = lines.slice(Math.max(0, index - 6), index);
  const caret = before.findLastIndex(({ bare }) => /^[\^~]+$/.test(bare));
  const heading = before.slice(0, Math.max(0, caret)).findLast(({ bare }) => placeAlone.test(bare));
  return heading === undefined ? undefined : placesIn(heading.bare).find((place) => !isForeign(place));
}

/** A message about a line of the file that a script named just before: `applying schema.sql`. */
function lineOfNamed(lines: readonly Line[], index: number): CodePlace | undefined {
  const bare = lines[index]?.bare ?? "";
  const line = /\b(?:at|near|on) line (\d{1,7})\b/.exec(bare)?.[1];
  if (line === undefined || fileIn(bare) !== undefined) return undefined;
  const named = /^\w+ing:? (?<file>\S+)$/.exec(lines[index - 1]?.bare ?? "")?.groups?.file;
  const file = named === undefined ? undefined : fileIn(named);
  return file === undefined ? undefined : { file, line: Number(line) };
}

/** A report with a row for each fact: `Location : a.sql`, `Line : 2`. */
function rowsApart(lines: readonly Line[], index: number): CodePlace | undefined {
  const near = lines.slice(Math.max(0, index - 24), index + 8).map(({ bare }) => bare);
  const row = near.findIndex((bare) => /^(?:File|Location|Path|Source) *: /i.test(bare));
  const line = row < 0 ? undefined : /^Line *: *(\d{1,7})$/i.exec(near[row + 1] ?? "")?.[1];
  const file = line === undefined ? undefined : fileIn(near[row] ?? "");
  return file === undefined ? undefined : { file, line: Number(line) };
}

/** Files that a message names without a line. */
function conflictIn(bare: string): CodePlace | undefined {
  const file =
    /(?:conflict in|CONFLICT \(\w+\/\w+\):|" from|' from|migration file|would reformat|parsing|when \w{4,12}ing|in file|[Ii]nvalid|from|KONFLIKT .{1,40} in|\() ?["']?(?<file>[\w@./-]{3,300}\.\w{1,6})["'):,]*(?:$|\s)/i.exec(
      bare,
    )?.groups?.file;
  return file === undefined || fileIn(file) === undefined ? undefined : { file, line: null };
}

function below(lines: readonly Line[], index: number, kind: Candidate["kind"]): CodePlace | undefined {
  const start = lines[index];
  if (start === undefined) return undefined;
  const isShort = kind === "error" || kind === "phrase";
  let seenFrames = false;
  const following = lines.slice(index + 1, index + 1 + (isShort ? 14 : maxBelow));
  for (const [distance, line] of following.entries()) {
    if (isFrame(line)) {
      seenFrames = true;
      const place = ownPlace(line);
      if (place !== undefined) return place;
      continue;
    }
    const isPointer = pointer.test(line.bare) || placeAlone.test(line.bare);
    if (isPointer && (isOfBuilder(start) || !dockerfileLine.test(line.bare))) {
      const place = placesIn(line.bare).find((one) => !isForeign(one));
      if (place !== undefined) return place;
    }
    // The name of a call may stand above its place.
    const isInStack = following.slice(distance + 1, distance + 3).some(isFrame);
    if (!isInStack && endsReport(line, start, seenFrames)) break;
  }
  return undefined;
}

/** Another report begins. */
function endsReport(line: Line, start: Line, seenFrames: boolean): boolean {
  if (line.bare === "") return false;
  if (seenFrames && line.indent <= start.indent && !/^[{}\])]|^\w+: |^\[cause\]|^Caused by/.test(line.bare))
    return true;
  if (/^(?:warning|\w+ warning|CMake Warning|\d+\) |-{10,}|={10,})/.test(line.bare)) return true;
  return line.indent < start.indent && isExceptionHead(line);
}

function above(lines: readonly Line[], index: number): CodePlace | undefined {
  const start = lines[index];
  if (start === undefined) return undefined;
  const before = lines.slice(Math.max(0, index - maxAbove), index).reverse();
  for (const [distance, line] of before.entries()) {
    if (/^(?:Traceback|The above exception|During handling)/.test(line.bare)) break;
    if (/^File "/.test(line.bare)) {
      const place = ownPlace(line);
      if (place !== undefined) return place;
    }
    const heading = headingPlace(line, distance, start);
    if (heading !== undefined) return heading;
    if (line.bare === "" && distance > 8) break;
  }
  return undefined;
}

const dockerfileLine = /^\S*Dockerfile\S*:\d+$/;

function isOfBuilder({ bare }: Line): boolean {
  return /failed to (?:solve|compute|calculate|resolve|do request)|pull access|dockerfile parse/.test(bare);
}

/** Headings such as `CMake Error at CMakeLists.txt:4`, `ERROR in ./src/index.js 1:0`, or the file above eslint's rows. */
function headingPlace(line: Line, distance: number, start: Line): CodePlace | undefined {
  const row = /^(?<line>\d+)(?::\d+)? {1,}(?:error|warning|✖|×)|^(?<cell>\d+) {2,}\S/.exec(start.bare)?.groups;
  const number = row?.line ?? row?.cell;
  if (number !== undefined) {
    const file = /^(?:Line +|File:? +)?(?<file>[\w@~+./\\:-]{2,300}\.\w{1,10})$/.exec(line.bare)?.groups?.file;
    return file === undefined ? undefined : { file, line: Number(number) };
  }
  // Prettier lists the files above its verdict.
  if (line.level === "warning" && start.bare.startsWith("Code style issues")) {
    const file = fileIn(line.bare);
    return file === undefined ? undefined : { file, line: null };
  }
  // BuildKit shows the instruction that failed. It is the cause where the builder itself refuses it.
  if (dockerfileLine.test(line.bare)) return isOfBuilder(start) ? placesIn(line.bare)[0] : undefined;
  if (distance === 0 && line.bare.endsWith(":")) {
    const place = placesIn(line.bare).find((one) => !isForeign(one)) ?? lineApart(line.bare);
    if (place !== undefined) return place;
  }
  const titled = /^-- .{2,60} -{3,} (?<file>\S+)$/.exec(line.bare)?.groups?.file;
  if (titled !== undefined) return { file: titled, line: null };
  const isHeading =
    /^(?:In \S+\.\w*sh line \d+:|In \S+:\d+:\d+$|Build file '|[Ll]ocation: |CMake Error at |ERROR in |thread '.{1,200} panicked at|\S+:\d+: Failure|\S+:\d+: in \S|.{0,60}Error in |\S+ \[\S+:\d+\]:$|── \w+ \(|in "[^"]{1,200}", line|\w*ParserError: )/.test(
      line.bare,
    ) ||
    (placeAlone.test(line.bare) && distance < 4);
  return isHeading ? placesIn(line.bare).find((place) => !isForeign(place)) : undefined;
}
