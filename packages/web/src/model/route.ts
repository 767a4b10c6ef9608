/** The view that a URL names. Every view has one that reproduces it. */
export type Route =
  | { readonly view: "now"; readonly source?: string }
  | { readonly view: "session"; readonly session: string; readonly at?: string }
  | { readonly view: "loop"; readonly loop: LoopName }
  | { readonly view: "compare"; readonly left?: string; readonly right?: string }
  /** `query`: all that was chosen there. */
  | { readonly view: "trends"; readonly query: string }
  | { readonly view: "health" }
  | { readonly view: "missing"; readonly path: string };

export type LoopName = { readonly session: string; readonly runner: number; readonly loop: number };

export function routeOf({ pathname, search }: { readonly pathname: string; readonly search: string }): Route {
  const query = new URLSearchParams(search);
  const [first = "", second = "", ...rest] = pathname.split("/").filter((part) => part !== "");
  const missing = { view: "missing", path: pathname } as const;
  if (rest.length > 0) return missing;
  if (first === "") return { view: "now", ...optional("source", query.get("source")) };
  if (first === "compare" && second === "") {
    return { view: "compare", ...optional("left", query.get("left")), ...optional("right", query.get("right")) };
  }
  if (first === "trends" && second === "") return { view: "trends", query: search };
  if (first === "health" && second === "") return { view: "health" };
  if (first === "sessions" && second !== "") {
    return { view: "session", session: decodeURIComponent(second), ...optional("at", query.get("at")) };
  }
  const loop = first === "loops" ? loopNamed(second) : undefined;
  return loop === undefined ? missing : { view: "loop", loop };
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

export function sourcePath(source: string): string {
  return `/?source=${encodeURIComponent(source).replaceAll("%2F", "/")}`;
}
