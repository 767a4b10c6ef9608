import { connect, TapedeckError } from "@tapedeck/client";
import { startTimer } from "@tapedeck/shared/sync/timers";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
import { filterOf, parametersOf } from "../../api/filter.ts";
import { reportUnrecorded } from "../../api/unrecorded.ts";
import { CommandError } from "../../command-error.ts";
import { type DisplayedEvent, eventLines } from "../../display/event-lines.ts";
import { isErrorTerminal, jsonText, outputColumns, print, printError } from "../../display/output.ts";
import { namedSources, sourcesOrFolder } from "../../sources/named-source.ts";

export type WaitOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly for: readonly string[];
  readonly orFail?: readonly string[];
  readonly source?: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly all?: boolean;
  readonly session?: readonly string[];
  readonly subject?: readonly string[];
  readonly outcome?: readonly string[];
  readonly timeout?: number;
  readonly after?: string;
};

/** The exit code of `timeout(1)`. */
const timedOut = 124;
const stoppedBy = { SIGINT: 130, SIGTERM: 143 } as const;

/** Ends this process with the exit code of the result. */
export async function wait(options: WaitOptions): Promise<void> {
  const api = apiAt(options.url);
  const { orFail = [], all, developer, project, session } = options;
  const isNarrowed = all || [developer, project, session].some((one) => one !== undefined);
  const sources = await (isNarrowed ? namedSources : sourcesOrFolder)(api, options.source);
  const filter = filterOf({ ...options, source: sources, kind: [...options.for, ...orFail] });
  const stop = new AbortController();
  let code: number | undefined;
  const end = (as: number) => {
    code ??= as;
    stop.abort();
  };
  for (const [signal, as] of Object.entries(stoppedBy)) process.once(signal, () => end(as));
  if (options.timeout !== undefined) startTimer(() => end(timedOut), options.timeout).unref();
  const after = options.after ?? (await positionNow(api, filter));
  await reportUnrecorded(api, sources);
  if (isErrorTerminal()) printError(`waiting for ${[...options.for, ...orFail].join(", ")} after ${after}`);
  using client = connect({ url: api.base, ...(api.token !== undefined && { token: api.token }) });
  try {
    for await (const event of client.events({ ...filter, after, signal: stop.signal })) {
      const came = event as unknown as DisplayedEvent;
      const lines = options.json ? [jsonText(came)] : eventLines(came, outputColumns());
      for (const line of lines) print(line);
      end(orFail.some((kind) => isOfKind(came.kind, kind)) ? 1 : 0);
    }
  } catch (error) {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  }
  if (code === timedOut) printError(`tapedeck: no matching event came in time; continue with --after ${after}`);
  process.exitCode = code ?? 0;
}

/** Position of the log's end. The request also reports an invalid filter before the wait begins. */
async function positionNow(api: ApiClient, filter: ReturnType<typeof filterOf>): Promise<string> {
  return (await api.get<Page<object>>("/api/v1/events", { ...parametersOf(filter), last: 1 })).position;
}

/** `build.failed`, `build.*` or `*.failed`. */
function isOfKind(kind: string, pattern: string): boolean {
  const [noun, verb] = kind.split(".");
  const [expectedNoun, expectedVerb] = pattern.split(".");
  return [noun, "*"].includes(expectedNoun ?? "") && [verb, "*"].includes(expectedVerb ?? "");
}
