import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import { ownValue } from "@tapedeck/shared/own-value";
import type { z } from "zod";
import type { CallContext } from "../../call-context.ts";
import type { RecordApis } from "../../workspaces/routed-apis.ts";
import { exactJson, quoted } from "./answer.ts";

/** A call of a tool. */
export type McpCall = {
  readonly context: CallContext;
  readonly apis: Pick<RecordApis, "tapedeck" | "skaffold">;
  /** The address of the page as the caller reaches it, such as "http://127.0.0.1:7052". */
  readonly page: string;
  /** Counts the call among the caller's streams, because it waits. */
  readonly waits: () => void;
};

export type ToolCall = McpCall & {
  /** This call with these arguments instead of its own, as a caller writes it; undefined leaves one out. */
  readonly again: (pinned: Readonly<Record<string, unknown>>) => string;
};

export type Tool = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodObject;
  /** It changes the upstream. */
  readonly controls: boolean;
  /** The text of the answer. Throws TapedeckError, or the upstream's own refusal. */
  readonly answer: (input: unknown, call: McpCall) => Promise<string>;
};

type ToolOf<Input extends z.ZodObject> = Omit<Tool, "input" | "answer" | "controls"> & {
  readonly input: Input;
  readonly controls?: boolean;
  readonly answer: (input: z.infer<Input>, call: ToolCall) => Promise<string>;
};

export function tool<Input extends z.ZodObject>({ input, controls = false, answer, ...more }: ToolOf<Input>): Tool {
  return {
    ...more,
    input,
    controls,
    answer: async (given, call) => {
      const read = readArguments(input, given);
      const own = given as Readonly<Record<string, unknown>> | undefined;
      const again = (pinned: Readonly<Record<string, unknown>>) => {
        const all: Readonly<Record<string, unknown>> = { ...own, ...pinned };
        // In one order, so that the same question has the same text.
        return callText(
          more.name,
          Object.fromEntries(Object.keys(input.shape).map((key) => [key, ownValue(all, key)])),
          pinned,
        );
      };
      return answer(read, { ...call, again });
    },
  };
}

/** Longer arguments would take the place of the answer. */
const maxArgumentBytes = 300;

function callText(
  name: string,
  all: Readonly<Record<string, unknown>>,
  pinned: Readonly<Record<string, unknown>>,
): string {
  const json = exactJson(all);
  if (Buffer.byteLength(json) <= maxArgumentBytes) return `${name} ${json}`;
  return `${name} with the same arguments and ${exactJson(pinned)}`;
}

/** @throws TapedeckError invalid_argument, with all that is wrong */
function readArguments<Input extends z.ZodObject>(input: Input, given: unknown): z.infer<Input> {
  const result = input.safeParse(given ?? {}, { error: issueText });
  if (result.success) return result.data;
  throw invalidArgument(result.error.issues.map(argumentText).join("; "));
}

function argumentText(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys")
    return `there is no argument ${issue.keys.map((key) => quoted(key)).join(", ")}`;
  return issue.path.length === 0 ? issue.message : `\`${issue.path.join(".")}\` ${issue.message}`;
}
