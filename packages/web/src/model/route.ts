/** The view that a URL names. Every view has one that reproduces it. */
export type Route =
  /** `filter`: which rows are shown. */
  | { readonly view: "now"; readonly source?: string; readonly filter?: string }
  /** `query`: the filters and the text. */
  | { readonly view: "history"; readonly query: string }
  /** The sessions of a source, "developer/project", by day. */
  | { readonly view: "source"; readonly source: string; readonly query: string }
  | ({ readonly view: "session"; readonly session: string } & SessionChoices)
  | { readonly view: "loop"; readonly loop: LoopName; readonly output: OutputChoices }
  | { readonly view: "compare"; readonly left?: string; readonly right?: string }
  /** `query`: all that was chosen there. */
  | { readonly view: "trends"; readonly query: string }
  | { readonly view: "health" }
  | { readonly view: "missing"; readonly path: string };

export type SessionChoices = {
  /** A position; without it, the newest one. */
  readonly at?: string;
  /** Which events are listed. */
  readonly filter?: string;
  /** How many times as fast it plays. */
  readonly speed?: string;
  readonly output: OutputChoices;
};

/** Which output is shown, and how. */
export type OutputChoices = {
  /** The position at which the step began. */
  readonly step?: string;
  /** Only lines with this text. */
  readonly find?: string;
  /** Scrolls to the first line that has this text, and marks it. */
  readonly line?: string;
  readonly wrap?: string;
};

export type LoopName = { readonly session: string; readonly runner: number; readonly loop: number };

export function routeOf({ pathname, search }: { readonly pathname: string; readonly search: string }): Route {
  const query = new URLSearchParams(search);
  const [first = "", second = "", ...rest] = pathname.split("/").filter((part) => part !== "");
  const missing = { view: "missing", path: pathname } as const;
  if (first === "sources" && second !== "" && rest.length === 1) {
    return {
      view: "source",
      source: `${decoded(second)}/${decoded(rest[0] ?? "")}`,
      query: search,
    };
  }
  if (rest.length > 0) return missing;
  const queryParameter = <Name extends string>(name: Name) => optional(name, query.get(name));
  if (first === "") return { view: "now", ...queryParameter("source"), ...queryParameter("filter") };
  if (first === "compare" && second === "") {
    return { view: "compare", ...queryParameter("left"), ...queryParameter("right") };
  }
  if (first === "trends" && second === "") return { view: "trends", query: search };
  if (first === "loops" && second === "") return { view: "history", query: search };
  if (first === "health" && second === "") return { view: "health" };
  const output = {
    ...queryParameter("step"),
    ...queryParameter("find"),
    ...queryParameter("line"),
    ...queryParameter("wrap"),
  };
  if (first === "sessions" && second !== "") {
    const chosen = { ...queryParameter("at"), ...queryParameter("filter"), ...queryParameter("speed"), output };
    return { view: "session", session: decoded(second), ...chosen };
  }
  const loop = first === "loops" ? loopNamed(second) : undefined;
  return loop === undefined ? missing : { view: "loop", loop, output };
}

/** A part of a path as it was meant; one that was typed wrong, such as "100%", as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A path of which some parameters are others; undefined leaves one out. */
export function changedPath(path: string, changes: Readonly<Record<string, string | undefined>>): string {
  const [place = "", search = ""] = path.split("?");
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = String(query).replaceAll("%2F", "/").replaceAll("%3A", ":");
  return text === "" ? place : `${place}?${text}`;
}

function optional<Name extends string>(name: Name, value: string | null): { readonly [N in Name]?: string } {
  return (value === null || value === "" ? {} : { [name]: value }) as { readonly [N in Name]?: string };
}

function loopNamed(text: string): LoopName | undefined {
  const found = /^(?<session>[0-9A-Za-z]+)\.(?<runner>\d+)\.(?<loop>\d+)$/.exec(text)?.groups;
  if (found === undefined) return undefined;
  return { session: found.session ?? "", runner: Number(found.runner), loop: Number(found.loop) };
}

export function loopPath({ session, runner, loop }: LoopName): string {
  return `/loops/${loopSide({ session, runner, loop })}`;
}

/** Sides as the API takes them; without a right one it is the last good loop before. */
export function comparePath(left: string | undefined, right?: string): string {
  const sides = [
    ["left", left],
    ["right", right],
  ].flatMap(([name, side]) =>
    side === undefined ? [] : [`${name}=${encodeURIComponent(side).replaceAll("%2F", "/")}`],
  );
  return `/compare${sides.length === 0 ? "" : `?${sides.join("&")}`}`;
}

export function loopSide({ session, runner, loop }: LoopName): string {
  return `${session}.${runner}.${loop}`;
}

type Side = LoopName & { readonly unit: string; readonly position: string };

/** A side as the API takes it that stays the same when newer loops come: a loop, or a session as of a position. */
export function exactSide(side: Side): string {
  return side.unit === "loop" ? loopSide(side) : `${side.session}@${side.position}`;
}

export function sessionPath(session: string, at?: string): string {
  return `/sessions/${session}${at === undefined ? "" : `?at=${encodeURIComponent(at)}`}`;
}

/** The sessions of a source by day; of several upstreams together. */
export function sourceDaysPath(source: string): string {
  const parts = source.split("/");
  const [developer = "", project = ""] = parts.length === 4 ? parts.slice(1) : parts;
  return `/sources/${encodeURIComponent(developer)}/${encodeURIComponent(project)}`;
}

export function sourcePath(source: string): string {
  return `/?source=${encodeURIComponent(source).replaceAll("%2F", "/")}`;
}
