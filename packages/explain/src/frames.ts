export type Level = "error" | "warning" | "info";

type Frame = { readonly pattern: RegExp; readonly level?: Level };

/** What wraps lines. Each stands at the beginning, and may stand inside of another. */
const frames: readonly Frame[] = [
  // Builders: BuildKit's step with its time, the time alone, buildpacks and kaniko.
  { pattern: /^#\d{1,4} (?:\d{1,6}\.\d{1,4} ?)?/ },
  { pattern: /^\d{1,6}\.\d{2,4} (?=\S)/ },
  { pattern: /^(?:FATA|ERRO)\[\d{4}\] ?/, level: "error" },
  { pattern: /^WARN\[\d{4}\] ?/, level: "warning" },
  { pattern: /^(?:INFO|DEBU|TRAC)\[\d{4}\] ?/, level: "info" },
  // Times.
  {
    pattern:
      /^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d| [A-Z]{3,4}(?= \[))?\]?:? ?(?:\[\d{1,7}\] (?=[A-Z]))?/,
  },
  { pattern: /^\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]? +/ },
  { pattern: /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} [\w./-]{1,60}(?:\[\d+\])?: / },
  // Containers, services and machines.
  { pattern: /^ *> \[[^\]]{1,160}\] ?/ },
  { pattern: /^(?=[^|\s]{0,60}[a-z])[\w.-]{1,60} *\| (?! *\d* *\|)/ },
  { pattern: /^(?:==> | {4})(?!at:|in:)[a-z][\w-]{0,40}: (?=\S)/ },
  { pattern: /^remote: +/ },
  { pattern: /^@?[\w./-]{1,60}:(?:build|test|lint|dev|check|typecheck|start|compile|deploy): ?(?=\S|$)/ },
  // Levels of loggers.
  { pattern: /^\[(?:ERROR|FATAL|SEVERE|error|fatal|emerg|crit|alert)\] ?/, level: "error" },
  { pattern: /^\[(?:WARN|WARNING|warn|warning|notice|NOTICE)\] ?/, level: "warning" },
  { pattern: /^\[(?:INFO|DEBUG|TRACE|info|debug|trace)\] ?/, level: "info" },
  { pattern: /^(?:ERROR|FATAL|SEVERE|CRITICAL) +(?=\S)(?!in |at |collecting )/, level: "error" },
  { pattern: /^(?:WARN|WARNING) +(?=\S)/, level: "warning" },
  { pattern: /^(?:INFO|DEBUG|TRACE) +(?=\S)/, level: "info" },
  { pattern: /^[EF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,8} [\w.-]{1,80}:\d{1,6}\] ?/, level: "error" },
  { pattern: /^W\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,8} [\w.-]{1,80}:\d{1,6}\] ?/, level: "warning" },
  { pattern: /^I\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,8} [\w.-]{1,80}:\d{1,6}\] ?/, level: "info" },
  { pattern: /^\[FAILED\] ?/, level: "error" },
  { pattern: /^##\[error\]/, level: "error" },
  { pattern: /^::error[^:]{0,200}::/, level: "error" },
  { pattern: /^npm (?:error|ERR!) ?/, level: "error" },
  { pattern: /^npm (?:warn|WARN|notice) ?/, level: "warning" },
  // The name of the program that prints, and marks.
  {
    pattern:
      /^\[(?![^\]]{0,80} [0-9a-f]{7,40}\])(?!Help |INFO|WARN|ERROR)(?=[^\]]{0,60}[a-z])[\w./ :@-]{1,60}\](?: (?!\()|$)/,
  },
  { pattern: /^ *[│┃] (?=\S| )/ },
  { pattern: /^ *- (?=[A-Za-z])/ },
  // Gradle's reasons, each inside of the one before.
  { pattern: /^ *> (?=[A-Z]|\w{1,40}\.\w{1,40}\.)/ },
];

const maxFrames = 5;

const logfmt = /^(?:time=\S{1,80} )?level="?(?<level>\w{4,8})"? msg="(?<message>(?:[^"\\]|\\.){1,480})/;
const levels: ReadonlyMap<string, Level> = new Map([
  ["error", "error"],
  ["fatal", "error"],
  ["panic", "error"],
  ["critical", "error"],
  ["warn", "warning"],
  ["warning", "warning"],
  ["info", "info"],
  ["debug", "info"],
  ["trace", "info"],
]);

export function unframed(text: string): { readonly rest: string; readonly level: Level | undefined } {
  let rest = text;
  let level: Level | undefined;
  for (let round = 0; round < maxFrames; round += 1) {
    const found = frames.find(({ pattern }) => pattern.test(rest));
    if (found === undefined) break;
    level = found.level ?? level;
    rest = rest.replace(found.pattern, "");
  }
  const logged = structured(rest);
  return logged === undefined ? { rest, level } : { rest: logged.rest, level: logged.level ?? level };
}

/** Loggers that write fields: logfmt and JSON. */
function structured(text: string): { readonly rest: string; readonly level: Level | undefined } | undefined {
  const groups = logfmt.exec(text)?.groups;
  if (groups !== undefined)
    return { rest: (groups.message ?? "").replace(/\\(["\\])/g, "$1"), level: levels.get(groups.level ?? "") };
  if (!text.startsWith('{"')) return undefined;
  const level = /"(?:level|severity|lvl)": ?"(?<level>\w{4,8})"/.exec(text)?.groups?.level;
  const message = /"(?:msg|message)": ?"(?<message>(?:[^"\\]|\\.){1,480})"/.exec(text)?.groups?.message;
  if (level === undefined || message === undefined) return undefined;
  return { rest: message, level: levels.get(level.toLowerCase()) };
}
